"""Ray with a worker process: Arrays and native tensors through its object store."""

import gc
import os

import numpy as np
import pytest

import arraybridge as ab
import arraybridge.pickling
from tests.support.optional import optional
from tests.support.pickles import megabyte, values
from tests.support.processes import ROOT

torch = optional("torch")

pytestmark = [pytest.mark.heavy, pytest.mark.filterwarnings("ignore")]  # Ray's own, and at fork

MB = 1 << 20


@pytest.fixture(scope="module")
def ray():
    """Ray on this machine alone: one worker, 200 MB of object store."""
    module = pytest.importorskip("ray")
    options = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    before = {name: os.environ.get(name) for name in options}
    os.environ.update(options)
    module.init(
        num_cpus=1,
        object_store_memory=200 * MB,
        include_dashboard=False,
        _node_ip_address="127.0.0.1",
        log_to_driver=False,
        logging_level="error",
        runtime_env={
            "env_vars": {"PYTHONPATH": str(ROOT)},
            "worker_process_setup_hook": _set_up,
        },
    )
    try:
        yield module
    finally:
        module.shutdown()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value


def _set_up():
    import arraybridge.pickling

    arraybridge.pickling.register("torch")


@pytest.fixture
def registered(ray):
    with arraybridge.pickling.register("torch", "jax"):
        yield


LIBRARIES = ["numpy", "torch", "jax"]


class TestArrays:
    @pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn"])
    @pytest.mark.parametrize("library", LIBRARIES)
    def test_zero_copy_and_read_only(self, ray, library, dtype):
        x = ab.from_dlpack(megabyte(library, dtype))
        ref = ray.put(x)
        first, second = ray.get(ref), ray.get(ref)
        assert first.library == library
        assert first.readonly
        assert first.dtype == x.dtype
        assert first.info.pointer == second.info.pointer  # both are the object store
        np.testing.assert_array_equal(values(first), values(x))

    @pytest.mark.parametrize("library", LIBRARIES)
    def test_no_write_gets_to_the_store(self, ray, library):
        ref = ray.put(ab.from_dlpack(megabyte(library)))
        x, before = ray.get(ref), values(ray.get(ref))
        if library != "jax":
            with pytest.raises(ValueError, match="read-only"):
                x.native.__iadd__(1)
        with pytest.raises(ab.ConversionError):
            ab.copyto(x, np.zeros(x.shape, np.float32))
        x[1:] = 0.0  # refers to a copy from then on
        y = ray.get(ref)
        y += 1
        assert not values(x)[1:].any()
        np.testing.assert_array_equal(values(y), before + 1)
        np.testing.assert_array_equal(values(ray.get(ref)), before)

    def test_a_view_keeps_the_object(self, ray):
        x = megabyte("torch", shape=(10, MB))
        view = ray.get(ray.put(ab.from_dlpack(x))).native[3]
        gc.collect()
        for _ in range(20):  # 800 MB through a store of 200
            ray.put(np.ones(10 * MB, np.float32))
        assert torch.equal(view.clone(), x[3])

    @pytest.mark.parametrize("library", LIBRARIES)
    def test_to_a_task_and_back(self, ray, library):
        @ray.remote
        def work(x):
            import arraybridge as ab

            readonly = x.readonly
            x *= 2
            return os.getpid(), readonly, ab.namespace(x).flip(x)

        x = ab.from_dlpack(megabyte(library))
        pid, readonly, back = ray.get(work.remote(x), timeout=60)
        assert pid != os.getpid()
        assert readonly
        assert (back.library, back.readonly) == (library, True)
        np.testing.assert_array_equal(values(back), values(x)[::-1, ::-1] * 2)


class TestNative:
    @pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
    @pytest.mark.parametrize("library", ["torch", "jax"])
    def test_zero_copy(self, ray, registered, library, dtype):
        x = megabyte(library, dtype)
        ref = ray.put({"x": [x]})
        first, second = (ray.get(ref)["x"][0] for _ in range(2))
        assert isinstance(first, torch.Tensor if library == "torch" else type(x))
        assert ab.inspect(first).pointer == ab.inspect(second).pointer
        np.testing.assert_array_equal(values(first), values(x))

    def test_a_tensor_refuses_to_be_written(self, ray, registered):
        ref = ray.put(megabyte("torch"))
        with pytest.raises(ValueError, match="read-only"):
            ray.get(ref).zero_()
        with pytest.raises(ValueError, match="read-only"):
            ray.get(ref).numpy()[0] = 0
        assert torch.equal(ray.get(ref).clone(), megabyte("torch"))

    def test_as_a_copy(self, ray):
        with arraybridge.pickling.register("torch", readonly=False):
            ref = ray.put(megabyte("torch"))
        x = ray.get(ref)
        assert type(x) is torch.Tensor
        x.zero_()
        assert torch.equal(ray.get(ref), megabyte("torch"))

    def test_a_worker_registers_by_its_hook(self, ray, registered):
        @ray.remote
        def work(x):
            return type(x).__name__, x * 2

        name, back = ray.get(work.remote(megabyte("torch")), timeout=60)
        assert name == type(back).__name__ == "ReadOnlyTensor"
        assert torch.equal(back.clone(), megabyte("torch") * 2)

    def test_a_module_computes_on_the_store(self, ray, registered):
        module = torch.nn.Linear(512, 512)
        ref = ray.put(module)
        first, second = ray.get(ref), ray.get(ref)
        assert first.weight.data_ptr() == second.weight.data_ptr()
        x = torch.ones(2, 512)
        assert torch.equal(first(x), module(x))
        first(x).sum().backward()
        with pytest.raises(ValueError, match="read-only"):
            torch.optim.SGD(first.parameters(), 0.1).step()

    def test_without_it_nothing_is_left(self, ray):
        x = ray.get(ray.put(megabyte("torch")))
        assert type(x) is torch.Tensor
