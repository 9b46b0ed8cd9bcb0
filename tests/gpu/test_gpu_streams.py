"""Streams, graphs and threads on a CUDA device: copies happen in the order that is promised."""

import ctypes
import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.kernels import cuda
from tests.support.cuda_arrays import LIBRARIES, SLOW, on_host, place, torch

pytestmark = pytest.mark.gpu

VIEWS = {
    "transpose": lambda x: x.t(),
    "rows": lambda x: x[::2],
    "step": lambda x: x[:, ::3],
    "shifted": lambda x: x[:, 1:-2],
    "flat": lambda x: x.view(-1)[1:],
    "channels": lambda x: x.view(torch.uint8).view(400, 1000, 3).permute(2, 0, 1),
    "heads": lambda x: x.view(6, 100, 5, 100).transpose(1, 2),
    "six axes": lambda x: x.view(5, 12, 10, 10, 5, 10).permute(4, 2, 5, 0, 3, 1),
}
view_of = pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)


@view_of
def test_copies_wait_for_their_stream(view):
    side = torch.cuda.Stream()
    source = torch.rand(600, 500, device="cuda")
    x = torch.zeros_like(source)
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(SLOW)
        x.copy_(source)
        y = ab.contiguous(view(x))
    side.synchronize()
    assert torch.equal(y, view(source))


@view_of
def test_copies_do_not_wait_for_another_stream(view):
    """As a library's own copy would not: no call here synchronizes."""
    busy, side = torch.cuda.Stream(), torch.cuda.Stream()
    x = torch.rand(600, 500, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        ab.contiguous(view(x))  # compiled, loaded, and the allocator has the memory
    torch.cuda.synchronize()
    with torch.cuda.stream(busy):
        torch.cuda._sleep(50 * SLOW)
        done = torch.cuda.Event()
        done.record()
    with torch.cuda.stream(side):
        y = ab.contiguous(view(x))
    side.synchronize()
    assert not done.query()
    torch.cuda.synchronize()
    assert torch.equal(y, view(x))


@pytest.mark.parametrize("copy", [None, True], ids=["view", "copy"])
@pytest.mark.parametrize("blocking", [True, False], ids=["blocking", "non-blocking"])
def test_torch_to_a_stream_of_cupy(copy, blocking):
    cupy = pytest.importorskip("cupy")
    side = cupy.cuda.Stream(non_blocking=not blocking)
    x = torch.zeros(700, 900, device="cuda")
    torch.cuda.synchronize()
    torch.cuda._sleep(SLOW)
    x += 3
    with side:
        y = ab.convert(x.t(), "cupy", copy=copy)
        z = y + 1
    side.synchronize()
    np.testing.assert_array_equal(cupy.asnumpy(z), np.full((900, 700), 4, "f4"))


@pytest.mark.parametrize("copy", [None, True], ids=["view", "copy"])
def test_a_stream_of_cupy_to_torch(copy):
    cupy = pytest.importorskip("cupy")
    side = cupy.cuda.Stream(non_blocking=True)
    with torch.cuda.stream(torch.cuda.ExternalStream(side.ptr)):
        torch.cuda._sleep(SLOW)
    with side:
        x = cupy.full((700, 900), 3, "f4")
        y = ab.convert(x.T, "torch", copy=copy)  # torch reads on the stream that is its own
    z = y + 1
    assert torch.equal(z, torch.full((900, 700), 4.0, device="cuda"))


def test_memory_is_not_reused_while_another_stream_reads_it():
    cupy = pytest.importorskip("cupy")
    side = cupy.cuda.Stream(non_blocking=True)
    for turn in range(5):
        x = torch.full((1024, 512), float(turn), device="cuda")
        with torch.cuda.stream(torch.cuda.ExternalStream(side.ptr)):
            torch.cuda._sleep(SLOW)
        with side:
            y = ab.convert(x.t(), "cupy", copy=True)
        del x
        poison = [torch.full((1024, 512), -1.0, device="cuda") for _ in range(3)]
        side.synchronize()
        assert bool((y == turn).all())
        del poison


@pytest.mark.parametrize("copy", [None, True], ids=["view", "copy"])
def test_a_stream_is_destroyed_before_the_memory_that_was_read_on_it(copy):
    cupy = pytest.importorskip("cupy")
    for _ in range(3):
        x, side = torch.ones(1024, 512, device="cuda"), cupy.cuda.Stream(non_blocking=True)
        with side:
            y = ab.convert(x.t(), "cupy", copy=copy)
            assert float(y.sum()) == x.numel()
        del y, side
        gc.collect()
        del x  # with `record_stream`, PyTorch would use the stream here
        torch.cuda.empty_cache()
    torch.cuda.synchronize()


def test_the_host_reads_managed_memory_after_the_gpu_wrote_it():
    cupy = pytest.importorskip("cupy")
    side = cupy.cuda.Stream(non_blocking=True)
    x = cupy.ndarray((700, 900), "f4", cupy.cuda.malloc_managed(700 * 900 * 4))
    x[...] = 0
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.ExternalStream(side.ptr)):
        torch.cuda._sleep(SLOW)
    with side:
        x += 3
        y = ab.convert(x, "numpy")
    assert y.ctypes.data == x.data.ptr
    assert (y == 3).all()


class Foreign:
    """A tensor as an object of no known library."""

    def __init__(self, x):
        self.x = x

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()

    def __dlpack__(self, *, stream=None, **keywords):
        return self.x.__dlpack__(stream=1 if stream is None else stream, **keywords)


@pytest.mark.parametrize("target", ["torch", "jax"])
def test_memory_of_no_known_library_is_waited_for(target):
    x = place(target, np.zeros(3, "f4"))  # skips without a device
    side = torch.cuda.Stream()
    x = torch.zeros(700, 900, device="cuda")
    torch.cuda.synchronize()
    torch.cuda._sleep(SLOW)
    x += 3
    with torch.cuda.stream(side):
        y = ab.convert(Foreign(x), target, copy=False)
        found = on_host(y + 1)
    np.testing.assert_array_equal(found, np.full((700, 900), 4, "f4"))


def test_numba_s_default_stream_is_waited_for():
    numba_cuda = pytest.importorskip("numba.cuda")
    side, ones = torch.cuda.Stream(), np.ones((700, 900), "f4")
    x = numba_cuda.device_array((700, 900), "f4")
    torch.cuda.synchronize()
    torch.cuda._sleep(SLOW)
    ab.convert(x, "torch").fill_(3)  # on the legacy default stream, which is Numba's, too
    with torch.cuda.stream(side):
        y = ab.convert(x, "torch") + 1
    side.synchronize()
    assert np.array_equal(on_host(y), 4 * ones)


@pytest.mark.parametrize("stream", [None, -1, 1, 2, "handle"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_exports_take_every_stream(library, stream):
    side = torch.cuda.Stream()
    x = ab.from_dlpack(place(library, np.arange(12, dtype="f4")))
    capsule = x.__dlpack__(stream=side.cuda_stream if stream == "handle" else stream)
    torch.cuda.synchronize()
    assert torch.from_dlpack(capsule).tolist() == list(range(12))


def test_the_default_stream_of_a_thread():
    cupy = pytest.importorskip("cupy")

    def work(seed):
        with cupy.cuda.Stream.ptds:
            x = cupy.full((300, 400), seed, "f4")
            y = ab.contiguous(x.T)
            cupy.cuda.Stream.ptds.synchronize()
            return bool((y == seed).all()) and y.flags.c_contiguous

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(16)))


def test_no_context_is_made_or_left_current():
    driver = ctypes.CDLL("libcuda.so.1")

    def current():
        context = ctypes.c_void_p()
        assert driver.cuCtxGetCurrent(ctypes.byref(context)) == 0
        return context.value

    def elsewhere():  # no context is current in a new thread, and torch is not called there
        before = current()
        cuda.copy(y.data_ptr(), x.data_ptr(), (200, 300), (1200, 4), (4, 800), 4, 1, 0)
        return before, current()

    x = torch.rand(300, 200, device="cuda")
    ab.contiguous(x.t()[1:])  # the kernel is loaded, and the allocator has the memory
    torch.cuda.synchronize()
    before, free = current(), torch.cuda.mem_get_info()[0]
    y = ab.contiguous(x.t())
    torch.cuda.synchronize()
    assert current() == before
    assert free - torch.cuda.mem_get_info()[0] < 64 << 20  # a context takes hundreds of MB
    active, flags = ctypes.c_int(), ctypes.c_uint()
    assert driver.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active)) == 0
    assert active.value == 1
    with ThreadPoolExecutor(1) as pool:
        before, after = pool.submit(elsewhere).result()
    assert before == after
    torch.cuda.synchronize()
    assert torch.equal(y, x.t())


@view_of
def test_copies_are_captured(view):
    x = torch.rand(600, 500, device="cuda")
    ab.contiguous(view(x))
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        y = ab.contiguous(view(x))
        z = ab.contiguous(view(x) + 1)
    for _ in range(3):
        x.copy_(torch.rand_like(x))
        y.zero_(), z.zero_()
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(y, view(x))
        assert torch.equal(z, view(x) + 1)


def test_a_kernel_is_loaded_while_a_graph_is_captured():
    x = torch.rand(70, 3, 90, 5, dtype=torch.float64, device="cuda").permute(3, 2, 0, 1)
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        y = ab.contiguous(x)
    y.zero_()
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(y, x)


def test_conversions_are_captured():
    cupy = pytest.importorskip("cupy")
    x = torch.rand(200, 300, device="cuda")
    ab.convert(ab.convert(x.t(), "cupy"), "torch", copy=True)
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=side), cupy.cuda.ExternalStream(side.cuda_stream):
        y = ab.convert(ab.convert(x.t(), "cupy"), "torch", copy=True)
        ab.copyto(y, x.t())
    y.zero_()
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(y, x.t())
