"""Copies on CUDA devices through the public functions, on an emulated GPU.

Which kernel, on which stream, into whose memory, in which order.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.kernels import cuda
from arraybridge.kernels.cuda import build, transfer

from .support.emulated_gpu import gpu_machine, library
from .support.small_layouts import small_layouts

CUDA = ab.Device(2)


@pytest.fixture
def gpu(tmp_path):
    with gpu_machine(tmp_path) as gpu:
        yield gpu


@pytest.fixture
def a(gpu):
    with library(gpu, "gpua", stream=gpu.stream()) as made:
        yield made


@pytest.fixture
def b(gpu):
    with library(gpu, "gpub", stream=gpu.stream()) as made:
        yield made


def image(*axes):
    return np.arange(24, dtype="f4").reshape(2, 3, 4).transpose(axes or (0, 1, 2))


def same(found, expected):
    """Bit for bit: the layouts hold any bytes, and so NaNs."""
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert found.tobytes() == expected.tobytes()


def order_of(gpu):
    """What was put on streams, in order: the call, and the stream."""
    at = {"cuLaunchKernel": 8, "cuStreamWaitEvent": 0, "cuEventRecord": 1, "cuMemcpyDtoDAsync": 3}
    return [(call.name, call.arguments[at[call.name]]) for call in gpu.called(*at)]


@pytest.mark.parametrize("layout", [pytest.param(x, id=x.name) for x in small_layouts()])
def test_every_layout_is_made_contiguous_by_a_kernel(gpu, a, layout):
    expected = layout.view(layout.base())
    x = a.put(expected)
    route = ab.explain(x, "gpua", copy=True)
    assert (route.kind, route.device, route.nbytes) == ("kernel", CUDA, expected.nbytes)
    assert route.kernel.startswith("arraybridge's own copy")
    y = ab.contiguous(x)
    assert ab.inspect(y).c_contiguous
    same(a.get(y), expected)
    assert {stream for _, stream in order_of(gpu)} == {a.stream}
    assert a.made == 1


def test_every_function_goes_through_the_seam(gpu, a):
    x, expected = a.put(image(2, 0, 1)), image(2, 0, 1)
    out = a.put(np.zeros((4, 2, 6), "f4")[:, :, ::2])
    copies = [
        lambda: ab.contiguous(x),
        lambda: ab.contiguous(ab.from_dlpack(x)).native,
        lambda: ab.convert(x, "gpua", copy=True),
        lambda: ab.from_dlpack(x, copy=True).native,
        lambda: ab.adapt("gpua", copy=True)(lambda y: y)(x),
        lambda: ab.contiguous(x, out=out),
        lambda: ab.copyto(out, x) or out,
    ]
    for n, copy in enumerate(copies, 1):
        np.testing.assert_array_equal(a.get(copy()), expected)
        assert len(gpu.called("cuLaunchKernel")) == n
    assert {stream for _, stream in order_of(gpu)} == {a.stream}


def test_contiguous_memory_stays(gpu, a):
    x = a.put(image())
    assert ab.contiguous(x) is x
    assert ab.convert(x, "gpua") is x
    assert not gpu.called("cuLaunchKernel", "cuMemcpyDtoDAsync")
    y = ab.convert(x, "gpua", copy=True)
    assert ab.explain(x, "gpua", copy=True).kernel == "arraybridge's own copy"
    np.testing.assert_array_equal(a.get(y), image())
    assert order_of(gpu) == [("cuMemcpyDtoDAsync", a.stream)]


@pytest.mark.parametrize("empty", [(0,), (3, 0), (0, 4, 5)])
def test_nothing_to_copy(gpu, a, empty):
    x = a.put(np.zeros(empty, "f4"))
    assert ab.convert(x, "gpua", copy=True).shape == empty
    assert not gpu.called("cuLaunchKernel", "cuMemcpyDtoDAsync")


def test_the_target_allocates_and_its_stream_waits_for_the_source(gpu, a, b):
    x = a.put(image(2, 1, 0))
    route = ab.explain(x, "gpub", copy=True)
    assert route.kind == "kernel"
    y = ab.convert(x, "gpub", copy=True)
    assert type(y) is b.Array
    assert (a.made, b.made) == (0, 1)
    np.testing.assert_array_equal(b.get(y), image(2, 1, 0))
    assert a.ordered == [b.stream]
    assert order_of(gpu) == [
        ("cuEventRecord", a.stream),
        ("cuStreamWaitEvent", b.stream),
        ("cuLaunchKernel", b.stream),
        ("cuEventRecord", b.stream),  # so that what A frees is not used again before
        ("cuStreamWaitEvent", a.stream),
    ]


def test_a_view_is_ordered_and_not_copied(gpu, a, b):
    x = a.put(image(2, 1, 0))
    y = ab.convert(x, "gpub")
    assert y.pointer == x.pointer
    assert order_of(gpu) == [("cuEventRecord", a.stream), ("cuStreamWaitEvent", b.stream)]


def test_one_stream_needs_no_order(gpu, a, b):
    a.stream = b.stream = 1
    ab.convert(a.put(image(2, 1, 0)), "gpub", copy=True)
    assert order_of(gpu) == [("cuLaunchKernel", 1)]


def test_a_source_whose_stream_nobody_knows_is_kept_until_it_was_read(gpu, a, b):
    import gc
    import weakref

    a.stream = None
    x = a.put(image(2, 1, 0))
    alive = weakref.ref(x)
    gpu.fail["cuEventQuery"] = 600  # not ready
    np.testing.assert_array_equal(b.get(ab.convert(x, "gpub", copy=True)), image(2, 1, 0))
    del x
    gc.collect()
    assert ("cuEventRecord", b.stream) in order_of(gpu)
    assert alive() is not None
    ab.convert(a.put(image(2, 1, 0)), "gpub", copy=True)
    gc.collect()
    assert alive() is not None
    gpu.fail.clear()
    ab.convert(a.put(image(2, 1, 0)), "gpub", copy=True)
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("stream", [1, 2])
def test_default_streams(gpu, a, stream):
    a.stream = stream
    ab.contiguous(a.put(image(2, 1, 0)))
    assert order_of(gpu) == [("cuLaunchKernel", stream)]


def test_a_source_that_cannot_allocate(gpu, b):
    with library(gpu, "gpuc", allocates=False) as c:
        x = c.put(image(2, 1, 0))
        np.testing.assert_array_equal(b.get(ab.convert(x, "gpub", copy=True)), image(2, 1, 0))
        assert b.made == 1
        route = ab.explain(x, "gpuc", copy=True)
        assert (route.kind, route.kernel) == ("refuse", None)
        with pytest.raises(ab.ConversionError, match="nothing that makes a copy on cuda:0"):
            ab.contiguous(x)


def test_a_registered_kernel_is_used_by_every_function(gpu, a, b):
    calls = []

    def kernel(dst, src, shape, dst_strides, src_strides, itemsize, stream):
        calls.append(stream)
        cuda.copy(dst, src, shape, dst_strides, src_strides, itemsize, stream)

    x, expected = a.put(image(2, 1, 0)), image(2, 1, 0)
    ab.register_kernel("cuda", kernel, name="mine")
    try:
        assert ab.explain(x, "gpub", copy=True).kernel == "mine"
        assert ab.explain(x, "numpy", device="cpu").kernel.startswith("mine, then")
        np.testing.assert_array_equal(a.get(ab.contiguous(x)), expected)
        np.testing.assert_array_equal(b.get(ab.convert(x, "gpub", copy=True)), expected)
        np.testing.assert_array_equal(ab.convert(x, "numpy", device="cpu"), expected)
        ab.copyto(a.put(np.zeros(expected.shape, "f4")), x)
        assert calls == [a.stream, b.stream, a.stream, a.stream]
    finally:
        ab.register_kernel("cuda", None)


def test_without_kernels_the_reason_is_told(gpu, a, monkeypatch):
    monkeypatch.setattr(cuda, "_unavailable", "numba-cuda is not installed: pip install numba-cuda")
    x = a.put(image(2, 1, 0))
    for action in (lambda: ab.contiguous(x), lambda: ab.copyto(a.put(image(2, 1, 0)), x)):
        with pytest.raises(ab.ConversionError, match="pip install numba-cuda"):
            action()
    a.library.__class__.copy = lambda self, x: a.put(np.ascontiguousarray(a.get(x)))
    route = ab.explain(x, "gpua", copy=True)
    assert route.kernel == ("gpua's own copy (numba-cuda is not installed: pip install numba-cuda)")
    np.testing.assert_array_equal(a.get(ab.contiguous(x)), image(2, 1, 0))


def test_overlapping_memory_is_copied_first(gpu, a):
    x = a.put(np.arange(40, dtype="i4"))
    to = a.Array(x.pointer + 4, (39,), (4,), "i4", 0)
    of = a.Array(x.pointer, (39,), (4,), "i4", 0)
    ab.copyto(to, of)
    assert a.get(x).tolist() == [0, *range(39)]
    assert a.made == 1


@pytest.mark.parametrize("layout", [pytest.param(x, id=x.name) for x in small_layouts()])
def test_strided_arrays_cross(gpu, a, b, layout, monkeypatch):
    monkeypatch.setattr(transfer, "BLOCK", 4096)  # several rounds of the ring
    expected = layout.view(layout.base())
    route = ab.explain(expected, "gpua", device="cuda:0")
    assert (route.kind, route.nbytes) == ("transfer", expected.nbytes)
    assert "to pinned memory, then a copy to cuda:0" in route.kernel
    x = ab.convert(expected, "gpua", device="cuda:0")
    assert ab.inspect(x).c_contiguous
    same(a.get(x), expected)
    assert {c.arguments[3] for c in gpu.called("cuMemcpyHtoDAsync")} == {a.stream}
    assert not gpu.called("cuLaunchKernel")

    x = a.put(expected)
    route = ab.explain(x, "numpy", device="cpu")
    assert (route.kind, route.nbytes) == ("transfer", expected.nbytes)
    assert route.kernel.startswith("arraybridge's own copy")
    assert route.kernel.endswith("then a copy to the host through pinned memory")
    same(ab.convert(x, "numpy", device="cpu"), expected)

    b.streams[1] = gpu.stream(1)
    there = ab.convert(x, "gpub", device="cuda:1")
    assert ab.inspect(there).device == ab.Device(2, 1)
    same(b.get(there), expected)
    assert len(gpu.called("cuMemcpyPeerAsync")) == 1
    assert "a peer copy to cuda:1" in ab.explain(x, "gpub", device="cuda:1").kernel


@pytest.mark.parametrize("host", ["numpy", "torch", "jax", "pyarrow", "tvm_ffi"])
def test_to_and_from_every_host_library(gpu, a, host):
    pytest.importorskip(host)
    shape = (24,) if host == "pyarrow" else (2, 3, 4)
    array = ab.convert(image().reshape(shape), host)
    x = ab.convert(array, "gpua", device="cuda:0")
    np.testing.assert_array_equal(a.get(x), image().reshape(shape))
    back = ab.convert(x, host, device="cpu")
    np.testing.assert_array_equal(ab.convert(back, "numpy"), image().reshape(shape))


def test_memory_of_no_library_is_fetched(gpu):
    pointer = gpu.allocate(96, 0)
    gpu.arenas[0][pointer - gpu.arenas[0].ctypes.data :][:96] = image().reshape(-1).view("u1")
    x = ab.from_pointer(pointer, (2, 3, 4), "float32", device="cuda:0")
    np.testing.assert_array_equal(ab.convert(x, "numpy", device="cpu"), image())
    strided = ab.from_pointer(pointer, (4, 3), "float32", device="cuda:0", strides=(1, 4))
    np.testing.assert_array_equal(ab.convert(strided, "numpy", device="cpu"), image()[0].T)


def test_host_memory_is_no_part_of_a_graph(gpu, a):
    x = a.put(image())
    with gpu.capture(a.stream):
        for transferred in (
            lambda: ab.convert(image(), "gpua", device="cuda:0"),
            lambda: ab.convert(x, "numpy", device="cpu"),
        ):
            with pytest.raises(cuda.CUDAError, match="before the capture begins"):
                transferred()


def test_copies_are_captured(gpu, a):
    x = a.put(image(2, 1, 0))
    with gpu.capture(a.stream):
        y = ab.contiguous(x)
    np.testing.assert_array_equal(a.get(y), image(2, 1, 0))
    assert not gpu.called("cuEventSynchronize", "cuMemHostAlloc")


def test_a_device_that_is_not_there(gpu, a):
    for x in (image(), a.put(image())):
        route = ab.explain(x, "gpua", device="cuda:7")
        assert (route.kind, route.why) == ("refuse", "there is no cuda:7")
        with pytest.raises(ab.ConversionError, match="there is no cuda:7"):
            ab.convert(x, "gpua", device="cuda:7")


def test_no_memory_for_the_ring(gpu, a):
    gpu.fail["cuMemHostAlloc"] = 2
    with pytest.raises(MemoryError, match="cuMemHostAlloc"):
        ab.convert(image(), "gpua", device="cuda:0")
    del gpu.fail["cuMemHostAlloc"]
    assert not gpu.pinned
    np.testing.assert_array_equal(a.get(ab.convert(image(), "gpua", device="cuda:0")), image())


def test_a_stream_of_another_device(gpu, a):
    x = a.put(image(2, 1, 0), 1)
    with pytest.raises(cuda.CUDAError, match="stream one of this device"):
        ab.contiguous(x)
    a.stream = gpu.stream(1)
    np.testing.assert_array_equal(a.get(ab.contiguous(x)), image(2, 1, 0))


def test_threads(gpu, a):
    x, wrong = a.put(image(2, 1, 0)), []

    def copy():
        y = ab.contiguous(x)
        if not (a.get(y) == image(2, 1, 0)).all():
            wrong.append(y)

    threads = [threading.Thread(target=copy) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(gpu.called("cuLibraryLoadData")) == 1


def test_what_the_driver_refuses_names_the_call(gpu, a):
    x = a.put(image(2, 1, 0))
    gpu.fail["cuLaunchKernel"] = 719
    with pytest.raises(cuda.CUDAError, match=r"cuLaunchKernel: .*719"):
        ab.contiguous(x)


def test_nothing_is_waited_for_and_no_context_made(gpu, a, b):
    x = a.put(image(2, 1, 0))
    ab.convert(x, "gpub", copy=True)
    ab.copyto(a.put(np.zeros((4, 3, 2), "f4")), x)
    assert not [name for name in gpu.names if "Synchronize" in name or "CtxCreate" in name]
    assert gpu.retained == {0: 1}
    assert gpu.stack == []


def test_arrays_export_by_the_standards_numbering(gpu, a):
    x = ab.from_dlpack(a.put(image()))
    other = gpu.stream()
    for stream, waits in ((other, True), (2, True), (1, True), (-1, False), (a.stream, False)):
        gpu.calls.clear()
        x.__dlpack__(stream=stream, max_version=(1, 0))
        assert (("cuStreamWaitEvent", stream) in order_of(gpu)) == waits
    for stream in (0, -2):
        with pytest.raises(ValueError, match="stream"):
            x.__dlpack__(stream=stream)


def test_an_exported_copy_is_ordered_too(gpu, a):
    x = ab.from_dlpack(a.put(image(2, 1, 0)))
    other = gpu.stream()
    tensor = ab.dlpack.from_capsule(x.__dlpack__(stream=other, max_version=(1, 0), copy=True))
    assert tensor.copied or tensor.strides == (6, 2, 1)
    assert order_of(gpu) == [
        ("cuLaunchKernel", a.stream),
        ("cuEventRecord", a.stream),
        ("cuStreamWaitEvent", other),
    ]


@pytest.mark.parametrize("wrong", ["shape", "dtype", "order", "device"])
def test_what_an_allocator_made_is_checked(gpu, a, wrong):
    def empty(self, info):
        x = a.put(np.zeros(info.shape, "f8" if wrong == "dtype" else "f4"), int(wrong == "device"))
        x.shape = (1, *x.shape) if wrong == "shape" else x.shape
        x.strides = (4, *x.strides) if wrong == "shape" else x.strides
        x.strides = x.strides[::-1] if wrong == "order" else x.strides
        return x

    a.library.__class__.empty = empty
    with pytest.raises(ab.ConversionError, match=r"gpua.empty\(\) made an array"):
        ab.contiguous(a.put(image(2, 1, 0)))
    with pytest.raises(ab.ConversionError, match=r"gpua.empty\(\) made an array"):
        ab.convert(image(2, 1, 0), "gpua", device="cuda:0")
    assert not gpu.called("cuLaunchKernel", "cuMemcpyHtoDAsync")


def test_an_array_exports_to_the_host_by_the_seam(gpu, a):
    x = ab.from_dlpack(a.put(image(2, 1, 0)))
    np.testing.assert_array_equal(np.from_dlpack(x, device="cpu"), image(2, 1, 0))
    assert len(gpu.called("cuLaunchKernel")) == len(gpu.called("cuMemcpyDtoHAsync")) == 1


def test_without_a_compiler_libraries_copy_by_themselves(gpu, a, monkeypatch):
    def ptx(plan):
        raise ImportError("Numba cannot compile for CUDA here: there is no NVVM")

    monkeypatch.setattr(build, "ptx", ptx)
    x = a.put(image(2, 1, 0))
    with pytest.raises(ImportError, match="there is no NVVM"):
        ab.contiguous(x)
    a.library.__class__.copy = lambda self, x: a.put(np.ascontiguousarray(a.get(x)))
    for _ in range(2):
        np.testing.assert_array_equal(a.get(ab.contiguous(x)), image(2, 1, 0))
    assert "no NVVM" in ab.explain(x, "gpua", copy=True).kernel
