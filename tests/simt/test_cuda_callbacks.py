"""Functions of a GPU's library in what JAX compiles, on an emulated GPU: by XLA's own buffers.

XLA is what there is not: the tests call what it would, with memory of the device and a stream.
"""

import gc
from random import Random
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import arraybridge as ab
from arraybridge.dlpack import ManagedTensor
from arraybridge.kernels import cuda
from arraybridge.kernels.cuda import build
from arraybridge.libraries.jax import callbacks, gradients
from tests.support import stub_driver
from tests.support.emulated_gpu import gpu_machine, library
from tests.support.lazy_gpu import Late, frees

CUDA = ab.Device(2)
X = np.arange(12, dtype="f4").reshape(3, 4)


@pytest.fixture
def gpu(tmp_path):
    with gpu_machine(tmp_path) as gpu:
        yield gpu


@pytest.fixture
def late(monkeypatch, tmp_path):
    monkeypatch.setenv("ARRAYBRIDGE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(build, "ptx", stub_driver.ptx)
    monkeypatch.setattr(cuda, "_missing", lambda: None)
    with stub_driver.installed(Late((9, 0), (8, 0))) as gpu:
        yield gpu


class Buffer:
    """As XLA's: memory of the device that nobody owns."""

    def __init__(self, gpu, shape=X.shape, dtype="f4", device=0):
        dtype = np.dtype(dtype)
        size = int(np.prod(shape)) * dtype.itemsize
        arena = gpu.arenas[device]
        address = gpu.allocate(size, device)
        start = address - arena.ctypes.data
        self.memory = arena[start : start + size].view(dtype).reshape(shape)
        self.dtype, self.shape = dtype, shape
        self._tensor = ManagedTensor.adopt(
            address, shape, ab.DataType(dtype.name), owner=None, device=ab.Device(2, device)
        )

    def __dlpack__(self):
        return self._tensor.__dlpack__()

    def __dlpack_device__(self):
        return self._tensor.__dlpack_device__()


class Program:
    """A compiled call of a function, with one argument and results of the same shape and dtype."""

    def __init__(self, gpu, function, x=X, results=1, device=0, **options):
        found = []

        def buffer_callback(fill, structs, *, vmap_method):
            found.append(fill)
            return lambda *xs: [jnp.zeros(s.shape, s.dtype) for s in structs]

        told = {"result_shape_dtypes": lambda x: [x] * results if results > 1 else x, **options}
        adapted = ab.adapt("gpua", callback=True, **told)(function)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(callbacks, "buffer_callback", buffer_callback)
            for module in (callbacks, gradients):
                patch.setattr(module, "device_of_calls", lambda flat: CUDA)
            with jax.enable_x64(True):
                jax.make_jaxpr(adapted)(x)
        (self.fill,) = found
        self.stream = gpu.stream(device)
        self.x = Buffer(gpu, x.shape, x.dtype, device)
        self.x.memory[...] = x
        self.out = [Buffer(gpu, x.shape, x.dtype, device) for _ in range(results)]

    def __call__(self):
        self.fill(SimpleNamespace(stream=self.stream), self.out, self.x)
        return self.out[0].memory


def on_host(gpu):
    return gpu.called("cuMemcpyDtoHAsync", "cuMemcpyHtoDAsync", "cuMemHostAlloc")


@pytest.mark.parametrize("dtype", ["f4", "?", "i1", "f8", "c16"])
@pytest.mark.parametrize("shape", [(3, 4), (), (0, 3), (7,)])
def test_nothing_crosses_the_host(gpu, dtype, shape):
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    with library(gpu, "gpua", stream=gpu.stream()) as a:
        seen = []
        program = Program(gpu, lambda t: seen.append(t) or t, x)
        np.testing.assert_array_equal(program(), x)
        assert not on_host(gpu)
        assert a.made == len(seen) == 1  # the function may keep what it gets
        assert seen[0].pointer != program.x.memory.ctypes.data


def test_any_layout_of_results_and_trees_of_them(gpu):
    with library(gpu, "gpua", stream=gpu.stream()) as a:

        def function(t):
            turned = a.put(a.get(t).T.copy())
            turned.shape, turned.strides = turned.shape[::-1], turned.strides[::-1]
            return [turned, t]

        program = Program(gpu, function, results=2)
        np.testing.assert_array_equal(program(), X)
        np.testing.assert_array_equal(program.out[1].memory, X)


@pytest.mark.parametrize("seed", range(10))
def test_any_order_gives_the_same(late, seed):
    """XLA's stream writes the argument before, and uses its memory again after the call."""
    random = Random(seed)
    with library(late, "gpua", stream=late.stream()) as a:
        frees(a, late)
        context = late.context(0)

        def function(t):
            made = a.library.empty(a.library.describe(t))
            source, target = a.view(t), a.view(made)
            late.enqueue(context, a.stream, lambda: target.__setitem__(..., source * 2))
            return made

        a.view = lambda x: np.ndarray(
            x.shape, x.dtype, late.arenas[0], x.pointer - late.arenas[0].ctypes.data
        )
        program = Program(late, function)
        program.x.memory[...] = -1

        def queue(work):
            late.enqueue(context, program.stream, work)

        found = []
        for turn in range(3):
            queue(lambda turn=turn: program.x.memory.__setitem__(..., X + turn))
            program()
            queue(lambda: program.x.memory.__setitem__(..., -2))
            queue(lambda: found.append(program.out[0].memory.copy()))
            queue(lambda: program.out[0].memory.__setitem__(..., -3))
            gc.collect()
        late.drain(random.randrange)
        for turn, got in enumerate(found):
            np.testing.assert_array_equal(got, (X + turn) * 2)
        assert len(found) == 3
        assert not late.called("cuEventSynchronize", "cuMemcpyDtoHAsync", "cuMemcpyHtoDAsync")


def test_one_stream_needs_no_event(gpu):
    """As that of PyTorch and CuPy, which work on XLA's stream for the call."""
    with library(gpu, "gpua") as a:
        program = Program(gpu, lambda t: t)
        a.stream = program.stream
        np.testing.assert_array_equal(program(), X)
        assert not gpu.called("cuEventRecord", "cuStreamWaitEvent")


def test_the_second_device(gpu):
    with library(gpu, "gpua", stream=gpu.stream()) as a:
        a.streams[1] = gpu.stream(1)
        program = Program(gpu, lambda t: t, device=1)
        np.testing.assert_array_equal(program(), X)
        assert not on_host(gpu)


def test_a_program_for_cuda_has_the_call(monkeypatch):
    """JAX makes the program without a device; jax.pure_callback's calls have another name."""
    monkeypatch.setattr(callbacks, "device_of_calls", lambda flat: CUDA)
    f = ab.adapt("numpy", callback=True, result_shape_dtypes=lambda x: x)(np.sort)
    lowered = jax.jit(f).trace(X).lower(lowering_platforms=("cuda",)).as_text()
    assert "@xla_buffer_python_gpu_callback(" in lowered


class TestViews:
    """alias_readonly=True: of the memory itself."""

    def test_nothing_is_copied_but_results(self, gpu):
        with library(gpu, "gpua", stream=gpu.stream()) as a:
            seen = []
            program = Program(gpu, lambda t: seen.append(t.pointer) or t, alias_readonly=True)
            np.testing.assert_array_equal(program(), X)
            assert seen == [program.x.memory.ctypes.data]
            assert a.made == 0

    def test_kept(self, gpu):
        with library(gpu, "gpua", stream=gpu.stream()):
            kept = []
            program = Program(gpu, lambda t: kept.append(t) or t, alias_readonly=True)
            with pytest.raises(ab.ConversionError, match="kept a view of an argument"):
                program()

    def test_a_cycle_is_not_kept(self, gpu):
        def function(t):
            cycle = [t]
            cycle.append(cycle)
            return t

        with library(gpu, "gpua", stream=gpu.stream()):
            np.testing.assert_array_equal(Program(gpu, function, alias_readonly=True)(), X)


class TestErrors:
    def test_the_function_s_own(self, gpu):
        """XLA's stream waits for what was queued all the same."""

        def function(t):
            gpu.calls.clear()
            raise ZeroDivisionError("mine")

        with library(gpu, "gpua", stream=gpu.stream()) as a:
            program = Program(gpu, function)
            with pytest.raises(ZeroDivisionError, match="mine"):
                program()
            waits = [call.arguments[0] for call in gpu.called("cuStreamWaitEvent")]
            assert waits == [program.stream]
            assert a.stream != program.stream

    @pytest.mark.parametrize(
        ("result", "match"),
        [
            (lambda a: a.put(X[:2]), r"float32 \(2, 4\); expected float32 \(3, 4\)"),
            (lambda a: a.put(X.astype("f8")), r"float64 \(3, 4\); expected float32"),
            (lambda a: None, "returned 0 arrays; expected 1"),
            (lambda a: a.put(X, device=1), "cuda:0.*cuda:1"),
        ],
    )
    def test_results(self, gpu, result, match):
        with (
            library(gpu, "gpua", stream=gpu.stream()) as a,
            pytest.raises(ab.ConversionError, match=match),
        ):
            Program(gpu, lambda t: result(a))()


def test_a_number_is_sent(gpu):
    with library(gpu, "gpua", stream=gpu.stream()):
        program = Program(gpu, lambda t: 3.5, np.zeros((), "f4"))
        assert program() == 3.5


class TestWhere:
    """Which functions are called on XLA's buffers."""

    @staticmethod
    def found(monkeypatch, platforms, name, **options):
        devices = [SimpleNamespace(platform=platform) for platform in platforms]
        monkeypatch.setattr(callbacks.jax, "devices", lambda: devices)
        known = callbacks.library_named
        kinds = SimpleNamespace(accepts=SimpleNamespace(devices={ab.DeviceType.CUDA, 1}))
        monkeypatch.setattr(callbacks, "library_named", lambda n: kinds if n == "jax" else known(n))
        flat = SimpleNamespace(options=SimpleNamespace(library=name, conversion=options))
        return callbacks.device_of_calls(flat)

    @pytest.mark.parametrize(
        ("platforms", "name", "options", "where"),
        [
            (["cpu"], "numpy", {}, ab.Device(1)),
            (["cpu"] * 4, "numpy", {"device": CUDA}, ab.Device(1)),
            (["gpu"], "numpy", {}, None),
            (["gpu"], "gpua", {}, CUDA),
            (["gpu", "gpu"], "gpua", {"alias_readonly": True}, CUDA),
            (["gpu"], "gpua", {"device": ab.Device(1)}, None),
            (["tpu"], "gpua", {}, None),
        ],
    )
    def test_where(self, monkeypatch, gpu, platforms, name, options, where):
        with library(gpu, "gpua"):
            assert self.found(monkeypatch, platforms, name, **options) == where

    def test_a_library_whose_stream_nobody_knows(self, monkeypatch, gpu):
        with library(gpu, "gpua") as a:
            monkeypatch.delattr(type(a.library), "current_stream")
            assert self.found(monkeypatch, ["gpu"], "gpua") is None
