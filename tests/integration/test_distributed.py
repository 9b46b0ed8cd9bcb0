"""Two worker processes of Dask's distributed: Arrays sent, gathered, spilled, computed with."""

import numpy as np
import pytest

import arraybridge as ab
import arraybridge.pickling
from tests.support.optional import optional
from tests.support.pickles import megabyte, values

torch = optional("torch")
da = pytest.importorskip("dask.array")

pytestmark = [pytest.mark.heavy, pytest.mark.filterwarnings("ignore")]  # at fork, and its own

LIBRARIES = ["numpy", "torch", "jax"]
NUMBERS = np.random.default_rng(7).random((60, 80)).astype("float32")


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
            memory_limit=0,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_frames_are_the_memory(library, dtype):
    protocol = pytest.importorskip("distributed.protocol")
    x = ab.from_dlpack(megabyte(library, dtype))
    header, frames = protocol.serialize(x)
    place = np.frombuffer(frames[1], np.uint8)
    assert place.ctypes.data == x.info.pointer
    assert len(bytes(frames[0])) < 500
    arrived = bytearray(frames[1])
    again = protocol.deserialize(header, [frames[0], arrived])
    assert again.dtype == x.dtype
    np.testing.assert_array_equal(values(again), values(x))
    if library != "jax":  # of unaligned memory JAX makes a copy
        assert again.info.pointer == np.frombuffer(arrived, np.uint8).ctypes.data


@pytest.mark.parametrize("library", LIBRARIES)
def test_spilled_to_disk(library, tmp_path):
    spill = pytest.importorskip("distributed.spill")
    buffer = spill.SpillBuffer(str(tmp_path), target=1)  # all goes to disk
    made = {f"x{i}": ab.from_dlpack(megabyte(library) + i) for i in range(4)}
    for key, x in made.items():
        buffer[key] = x
    assert not buffer.fast
    assert len(buffer.slow) == len(made)
    for key, x in made.items():
        again = buffer[key]
        assert again.library == library
        assert again.readonly == x.readonly
        np.testing.assert_array_equal(values(again), values(x))


class TestWorkers:
    @pytest.mark.parametrize("library", LIBRARIES)
    def test_there_and_back(self, client, library):
        x = ab.from_dlpack(megabyte(library))
        workers = list(client.scheduler_info()["workers"])
        there = client.scatter(x, workers=workers[:1])
        # on the other worker, so that it goes from one to the other as well
        made = client.submit(_doubled, there, workers=workers[1:], pure=False)
        name, back = made.result(timeout=60)
        assert name == library
        assert back.library == library
        np.testing.assert_array_equal(values(back), values(x)[::-1, ::-1] * 2)

    @pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
    def test_native_tensors(self, client, dtype):
        x = megabyte("torch", dtype)
        with arraybridge.pickling.register("torch"):
            there = client.scatter(x)
            assert client.submit(_sum, there, pure=False).result(timeout=60) == values(x).sum()

    def test_what_dask_refuses_without(self):
        protocol = pytest.importorskip("distributed.protocol")
        x = megabyte("torch", "bfloat16")
        with pytest.raises(TypeError, match="serialize"):
            protocol.serialize(x, on_error="raise")
        with arraybridge.pickling.register("torch"):
            again = protocol.deserialize(*protocol.serialize(x, on_error="raise"))
        assert torch.equal(again, x)
        with pytest.raises(TypeError, match="serialize"):
            protocol.serialize(x, on_error="raise")


def _doubled(x):
    return x.library, ab.namespace(x).flip(x) * 2


def _sum(x):
    return float(x.double().sum())


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_two_workers(client, library):
    x = ab.convert(da.from_array(NUMBERS, chunks=(20, 40)), library)
    results = {
        "itself": (x, NUMBERS),
        "sum": (x.sum(axis=0), NUMBERS.sum(axis=0)),
        "std": (x.std(), NUMBERS.std()),
        "matmul": (x @ x.T, NUMBERS @ NUMBERS.T),
        "concatenate": (
            da.concatenate([x, da.sqrt(x)]),
            np.concatenate([NUMBERS, np.sqrt(NUMBERS)]),
        ),
        "mask": (x[x > 0.5], None),
    }
    for found, expected in results.values():
        computed = found.compute()
        assert ab.convert(computed, library) is computed
        if expected is not None:
            np.testing.assert_allclose(np.asarray(computed), expected, rtol=1e-4)
    where = client.run(lambda dask_worker: list(dask_worker.data))
    assert len(where) == 2


def test_adapted_functions_and_arrays_on_two_workers(client):
    from distributed import wait

    x = da.from_array(NUMBERS, chunks=(20, 40))
    softmax = ab.adapt("torch", signature="(i)->(i)")(lambda t: torch.softmax(t, -1))
    found = softmax(x.rechunk((20, 80))).compute()
    assert type(found) is np.ndarray
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-5)
    y = da.from_array(ab.from_dlpack(torch.from_numpy(NUMBERS)), chunks=(20, 40))
    mean = y.mean(axis=0).compute()
    assert isinstance(mean, ab.Array)
    assert mean.library == "torch"
    np.testing.assert_allclose(np.asarray(mean), NUMBERS.mean(0), rtol=1e-5)
    kept = client.persist(ab.convert(x, "torch"))
    wait(kept)
    sizes = client.run(
        lambda dask_worker: sum(task.nbytes or 0 for task in dask_worker.state.tasks.values())
    )
    assert NUMBERS.nbytes <= sum(sizes.values()) < 2 * NUMBERS.nbytes
    assert type(kept.compute()) is torch.Tensor
