"""Copies on CUDA devices through the public functions, on an emulated GPU.

Which kernel, on which stream, into whose memory, in which order.
"""

import gc
import re
import threading
import weakref
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.core import kernel as kernels
from arraybridge.kernels import cpu, cuda
from arraybridge.kernels.cuda import build, context, transfer
from tests.support.emulated_gpu import gpu_machine, library
from tests.support.small_layouts import small_layouts

CUDA = ab.Device(2)


@pytest.fixture(autouse=True)
def _unregister():
    """A kernel that a test registers is gone after it."""
    yield
    for device in ("cpu", "cuda"):
        ab.register_kernel(device, None)


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


@pytest.mark.parametrize("stream", [1, 2])
def test_one_stream_needs_no_order(gpu, a, b, stream):
    a.stream = b.stream = stream
    ab.contiguous(a.put(image(2, 1, 0)))
    ab.convert(a.put(image(2, 1, 0)), "gpub", copy=True)
    assert order_of(gpu) == [("cuLaunchKernel", stream)] * 2


def test_a_source_whose_stream_nobody_knows_is_kept_until_it_was_read(gpu, a, b):
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


def test_a_source_that_cannot_allocate(gpu, b):
    with library(gpu, "gpuc", allocates=False) as c:
        x = c.put(image(2, 1, 0))
        np.testing.assert_array_equal(b.get(ab.convert(x, "gpub", copy=True)), image(2, 1, 0))
        assert b.made == 1
        route = ab.explain(x, "gpuc", copy=True)
        assert (route.kind, route.kernel) == ("refuse", None)
        with pytest.raises(ab.ConversionError, match=r"gpu. cannot copy on cuda:0"):
            ab.contiguous(x)


def test_a_registered_kernel_is_used_by_every_function(gpu, a, b):
    calls = []

    def kernel(dst, src, shape, dst_strides, src_strides, itemsize, stream):
        calls.append(stream)
        cuda.copy(dst, src, shape, dst_strides, src_strides, itemsize, stream)

    x, expected = a.put(image(2, 1, 0)), image(2, 1, 0)
    ab.register_kernel("cuda", kernel, name="mine")
    assert ab.explain(x, "gpub", copy=True).kernel == "mine"
    assert ab.explain(x, "numpy", device="cpu").kernel.startswith("mine, then")
    np.testing.assert_array_equal(a.get(ab.contiguous(x)), expected)
    np.testing.assert_array_equal(b.get(ab.convert(x, "gpub", copy=True)), expected)
    np.testing.assert_array_equal(ab.convert(x, "numpy", device="cpu"), expected)
    ab.copyto(a.put(np.zeros(expected.shape, "f4")), x)
    assert calls == [a.stream, b.stream, a.stream, a.stream]


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
    with library(gpu, "gpuc", allocates=False) as c:
        for kind in (a.Array, c.Array):
            x = a.put(np.arange(40, dtype="i4"))
            to, of = a.Array(x.pointer + 4, (39,), (4,), "i4", 0), x.pointer
            ab.copyto(to, kind(of, (39,), (4,), "i4", 0))
            assert a.get(x).tolist() == [0, *range(39)]
    assert a.made == 2


@pytest.mark.parametrize("layout", [pytest.param(x, id=x.name) for x in small_layouts()])
def test_strided_arrays_cross(gpu, a, b, layout, monkeypatch):
    monkeypatch.setattr(transfer, "BLOCK_BYTES", 4096)  # several rounds of the ring
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
    capsule = x.__dlpack__(dl_device=(1, 0), max_version=(1, 0))
    for there in (x, capsule):
        np.testing.assert_array_equal(ab.convert(there, "numpy", device="cpu"), image())
    with pytest.raises(BufferError, match="copy=False"):
        x.__dlpack__(dl_device=(1, 0), max_version=(1, 0), copy=False)
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


def test_an_array_exports_to_the_host_by_a_kernel(gpu, a):
    x = ab.from_dlpack(a.put(image(2, 1, 0)))
    np.testing.assert_array_equal(np.from_dlpack(x, device="cpu"), image(2, 1, 0))
    assert len(gpu.called("cuLaunchKernel")) == len(gpu.called("cuMemcpyDtoHAsync")) == 1


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
    with pytest.raises(ab.ConversionError, match=r"gpua.empty\(\) returned an array"):
        ab.contiguous(a.put(image(2, 1, 0)))
    with pytest.raises(ab.ConversionError, match=r"gpua.empty\(\) returned an array"):
        ab.convert(image(2, 1, 0), "gpua", device="cuda:0")
    assert not gpu.called("cuLaunchKernel", "cuMemcpyHtoDAsync")


@pytest.fixture
def mine():
    """A kernel for the host that is registered: the shapes that it was called with."""
    shapes = []

    def copy(dst, src, shape, dst_strides, src_strides, itemsize, stream):
        shapes.append(shape)
        cpu.copy(dst, src, shape, dst_strides, src_strides, itemsize)

    ab.register_kernel("cpu", copy, name="mine")
    return shapes


def accepting(its, **terms):
    """Let a library accept other things."""
    kind = type(its.library)
    kind.accepts = kind.accepts._replace(**terms)


@pytest.mark.parametrize("terms", [{"copies": True}, {"alignment": 1 << 20}], ids=["copies", "far"])
def test_a_copy_is_not_copied_again(gpu, a, terms):
    with library(gpu, "gpuc", allocates=False) as c:
        accepting(c, **terms)
        assert ab.explain(a.put(image(2, 1, 0)), "gpuc").nbytes == 96
        y = ab.convert(a.put(image(2, 1, 0)), "gpuc")
        np.testing.assert_array_equal(c.get(y), image(2, 1, 0))
        assert (type(y), a.made) == (c.Array, 1)


@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 1, 0)], ids=["dense", "transposed"])
def test_a_copy_is_told_in_words_that_users_know(gpu, a, axes):
    x = a.put(image(*axes))
    assert ab.explain(x, "gpua", copy=True).kernel == "arraybridge's own copy"
    fetched = ab.explain(x, "numpy", device="cpu").kernel
    assert not re.search(r"mem(cpy|move)|tile|gather|\bcuda \w", fetched)


def test_a_kernel_for_the_host_fills_the_pinned_memory(gpu, a, mine):
    assert ab.explain(image(2, 1, 0), "gpua", device="cuda:0").kernel.startswith("mine to pinned")
    x = ab.convert(image(2, 1, 0), "gpua", device="cuda:0")
    np.testing.assert_array_equal(a.get(x), image(2, 1, 0))
    assert mine == [(4, 3, 2)]
    dense = ab.explain(image(), "gpua", device="cuda:0").kernel
    assert dense.startswith("arraybridge's own copy to pinned")
    ab.convert(image(), "gpua", device="cuda:0")
    assert mine == [(4, 3, 2)]


def test_of_several_cpus_the_one_that_was_asked_for(gpu, a):
    pytest.importorskip("tvm_ffi")
    for x in (a.put(image(2, 1, 0)), a.put(image())):
        route = ab.explain(x, "tvm_ffi", device="cpu:3")
        assert ab.inspect(ab.convert(x, "tvm_ffi", device="cpu:3")).device == route.device


@pytest.fixture
def no_nvvm(monkeypatch):
    def failing(plan, capability):
        raise ImportError("Numba cannot compile for CUDA here: no NVVM")

    monkeypatch.setattr(build, "ptx", failing)


def test_what_cannot_compile_after_all_is_told_and_passed_by(gpu, a, b, no_nvvm):
    x = a.put(image(2, 1, 0))
    type(a.library).copy = lambda self, x: a.put(np.ascontiguousarray(a.get(x)))
    assert ab.explain(x, "gpua", copy=True).kernel == "arraybridge's own copy"
    for _ in range(2):
        np.testing.assert_array_equal(a.get(ab.contiguous(x)), image(2, 1, 0))
        told = ab.explain(x, "gpua", copy=True).kernel
        assert told == "gpua's own copy (Numba cannot compile for CUDA here: no NVVM)"
    np.testing.assert_array_equal(b.get(ab.convert(x, "gpub", copy=True)), image(2, 1, 0))
    np.testing.assert_array_equal(ab.convert(x, "numpy", device="cpu"), image(2, 1, 0))


@pytest.mark.parametrize("call", ["copyto", "contiguous"])
def test_what_cannot_compile_and_no_library_copies(gpu, a, b, no_nvvm, call):
    x = b.put(np.zeros((3, 2, 4), "f4")[:, ::-1])
    for _ in range(2):
        with pytest.raises((ab.ConversionError, ImportError), match="Numba cannot compile"):
            ab.copyto(a.put(image(1, 0, 2)), x) if call == "copyto" else ab.contiguous(x)


def test_a_registered_kernel_s_own_import_error_is_the_caller_s(gpu, a):
    def failing(*arguments):
        raise ImportError("no module named mine")

    ab.register_kernel("cuda", failing)
    for action in (
        lambda: ab.contiguous(a.put(image(2, 1, 0))),
        lambda: ab.copyto(a.put(image()), a.put(image())),
    ):
        with pytest.raises(ImportError, match="no module named mine"):
            action()


def test_a_kernel_that_is_registered_while_others_ask(monkeypatch):
    def registering(device):
        monkeypatch.setattr(kernels, "_on_cuda", found)
        ab.register_kernel("cuda", print, name="mine")
        return found()

    found = kernels._on_cuda
    monkeypatch.setattr(kernels, "_on_cuda", lambda: registering(None))
    kernels._anew()
    kernels.kernel_for(ab.Device(2))
    assert kernels.kernel_for(ab.Device(2)).name == "mine"


def test_what_no_device_has_the_memory_for_is_explained_all_the_same(gpu, a):
    x = a.Array(gpu.allocate(4, 0), (1 << 30, 1 << 30), (0, 0), "f4", 0)
    assert ab.explain(x, "gpua", copy=True).kernel == "arraybridge's own copy"


@pytest.fixture
def packed(gpu, a):
    """A tensor of eleven 4-bit elements on the device, and a library that takes it, as bytes."""
    accepting(a, dtypes=a.library.accepts.dtypes | {"int4 (packed)"})
    kind, made = type(a.library), []
    described = kind.describe

    def empty(self, info):
        made.append(info.nbytes)
        x = a.Array(gpu.allocate(info.nbytes, info.device.id), info.shape, (1,), "u1", 0)
        x.kind = info.dtype
        return x

    def describe(self, x):
        info = described(self, x)
        return info._replace(dtype=getattr(x, "kind", info.dtype))

    kind.empty, kind.describe = empty, describe
    pointer = gpu.allocate(64, 0)
    block = gpu.arenas[0][pointer - gpu.arenas[0].ctypes.data :][:64]
    block[:] = range(64)
    return pointer, made


def test_packed_elements_are_copied_as_bytes(gpu, a, packed):
    pointer, made = packed
    x = ab.from_pointer(pointer, (11,), "int4", device="cuda:0")
    assert ab.explain(x, "gpua", copy=True).kernel == "arraybridge's own copy"
    y = ab.convert(x, "gpua", copy=True)
    assert made == [6]
    assert gpu.called("cuMemcpyDtoDAsync")[0].arguments[2] == 6
    assert a.get(y)[:6].tolist() == [0, 1, 2, 3, 4, 5]


def test_packed_elements_are_sent_as_bytes(gpu, a, packed):
    block = np.arange(6, dtype="u1")
    x = ab.from_pointer(block.ctypes.data, (11,), "int4", device="cpu", owner=block)
    ab.convert(x, "gpua", device="cuda:0")
    assert [call.arguments[2] for call in gpu.called("cuMemcpyHtoDAsync")] == [6]
    strided = ab.from_pointer(
        block.ctypes.data, (5,), "int4", device="cpu", strides=(2,), owner=block
    )
    with pytest.raises(BufferError):
        ab.convert(strided, "gpua", device="cuda:0")
    assert len(gpu.called("cuMemcpyHtoDAsync")) == 1


def test_a_transfer_within_a_transfer(gpu, a, b):
    done = []

    def copy(dst, src, shape, dst_strides, src_strides, itemsize, stream):
        cpu.copy(dst, src, shape, dst_strides, src_strides, itemsize)
        if not done:
            done.append(None)
            done[0] = ab.convert(image(1, 0, 2), "gpub", device="cuda:0")

    def send():
        done.append(ab.convert(image(2, 1, 0), "gpua", device="cuda:0"))

    ab.register_kernel("cpu", copy)
    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive(), "the transfers wait for each other"
    np.testing.assert_array_equal(b.get(done[0]), image(1, 0, 2))
    np.testing.assert_array_equal(a.get(done[1]), image(2, 1, 0))


@pytest.mark.parametrize("call", ["cuMemcpyHtoDAsync", "cuEventRecord", "cuEventSynchronize"])
def test_a_transfer_that_fails_halfway(gpu, a, monkeypatch, call):
    monkeypatch.setattr(transfer, "BLOCK_BYTES", 32)
    ab.convert(image(), "gpua", device="cuda:0")
    gpu.fail[call] = 719
    with pytest.raises(cuda.CUDAError, match=call):
        ab.convert(image(), "gpua", device="cuda:0")
    gpu.fail.clear()
    for _ in range(2):
        x = ab.convert(image(2, 1, 0), "gpua", device="cuda:0")
        np.testing.assert_array_equal(a.get(x), image(2, 1, 0))
        np.testing.assert_array_equal(ab.convert(x, "numpy", device="cpu"), image(2, 1, 0))
    # Blocks whose copies may be in progress, without an event to wait for, are not used again.
    assert len(gpu.pinned) == (6 if call == "cuEventRecord" else 3)
    assert gpu.stack == []


def test_an_interrupted_transfer_leaves_its_copies_to_be_waited_for(gpu, a):
    ab.convert(image(), "gpua", device="cuda:0")
    ring = transfer._rings[0][0]

    def copy(*arguments):
        raise KeyboardInterrupt

    ab.register_kernel("cpu", copy)
    before = len(gpu.calls)
    with pytest.raises(KeyboardInterrupt):
        ab.convert(image(2, 1, 0), "gpua", device="cuda:0")
    recorded = [c.arguments for c in gpu.calls[before:] if c.name == "cuEventRecord"]
    assert recorded == [(block.event, a.stream) for block in ring]
    assert transfer._rings[0] == [ring]


def test_transfers_beside_a_capture(gpu, a, b):
    x = a.put(image(2, 1, 0))
    with gpu.capture(b.stream):
        np.testing.assert_array_equal(ab.convert(x, "numpy", device="cpu"), image(2, 1, 0))
        y = ab.convert(image(2, 1, 0), "gpua", device="cuda:0")
    np.testing.assert_array_equal(a.get(y), image(2, 1, 0))


def test_a_library_of_cuda_that_knows_no_stream_works_on_the_legacy_one(gpu, a):
    with library(gpu, "gpuc", stream=None) as c:
        for action in (
            lambda: ab.convert(a.put(image(2, 1, 0)), "gpuc", copy=True),
            lambda: ab.copyto(c.put(np.zeros((4, 3, 2), "f4")), a.put(image(2, 1, 0))),
        ):
            before = len(gpu.calls)
            action()
            waits = [x for x in gpu.calls[before:] if x.name == "cuStreamWaitEvent"]
            assert [wait.arguments[0] for wait in waits] == [1, a.stream]


def test_the_source_of_a_peer_copy_is_told_of_it(gpu, a, b):
    told = []
    type(a.library).read_on = lambda self, x, device, stream: told.append((x, device, stream))
    b.streams[1] = gpu.stream(1)
    x = a.put(image())
    ab.convert(x, "gpub", device="cuda:1")
    assert told == [(x, ab.Device(2), a.stream)]  # which waits for the copy by then


@pytest.fixture
def torch_on_gpu(gpu, monkeypatch):
    """PyTorch, whose tensors lie on the emulated GPU, by a stub of its allocator.

    As PyTorch's own it notes the streams of `record_stream` with the memory, and uses them when the
    memory is freed. ``put(array)`` makes a tensor; ``stream`` is the current stream.
    """
    torch = pytest.importorskip("torch")
    from arraybridge.libraries.torch.exchange import LIBRARY as its

    made = SimpleNamespace(stream=gpu.stream(), recorded=[])
    described = type(its).describe

    def describe(self, x):
        info = described(self, x)
        place = next((at for memory, at in gpu.pointers.items() if info.data in memory), None)
        return info if place is None else info._replace(device=ab.Device(2, place))

    def free(streams):
        for stream in streams:
            if stream in gpu.destroyed:
                gpu.raised.append(AssertionError(f"an event for {stream:#x}, which is destroyed"))

    def put(array, device=0):
        array = np.ascontiguousarray(array)
        pointer = gpu.allocate(array.nbytes, device)
        block = np.ndarray(array.shape, array.dtype, gpu.arenas[device], pointer - base(device))
        block[...] = array
        tensor, streams = torch.from_numpy(block), []
        made.recorded.append(streams)
        weakref.finalize(block, free, streams)
        tensors[tensor.data_ptr()] = streams
        return tensor

    def base(device):
        return gpu.arenas[device].ctypes.data

    tensors = {}
    made.put, made.library = put, its
    patch = partial(monkeypatch.setattr, type(its))
    patch("describe", describe)
    patch("signature", staticmethod(lambda x: None))
    patch("has_edges", lambda self, array_type: False)
    patch("current_stream", lambda self, device: made.stream)
    monkeypatch.setattr(torch.UntypedStorage, "resizable", lambda self: True)
    monkeypatch.setattr(
        torch.Tensor, "record_stream", lambda self, side: tensors[self.data_ptr()].append(side)
    )
    return made


@pytest.mark.parametrize("how", ["copy", "view", "copyto", "cast", "peer"])
def test_a_stream_that_is_gone_before_pytorch_s_memory(gpu, b, torch_on_gpu, how, monkeypatch):
    x = torch_on_gpu.put(image())
    own, stream = torch_on_gpu.stream, b.stream
    b.streams[1] = gpu.stream(1)
    if how == "copyto":
        y = b.put(np.zeros((4, 3, 2), "f4"))
        ab.copyto(y, x.permute(2, 1, 0))
    elif how == "peer":
        y = ab.convert(x, "gpub", device="cuda:1")
    elif how == "cast":  # the target's
        monkeypatch.setattr(type(torch_on_gpu.library), "can_cast", lambda *_: False)
        type(b.library).astype = lambda self, x, dtype, axes: b.put(b.get(x).astype(dtype.name))
        y = ab.convert(x, "gpub", dtype="float64")
    else:
        y = ab.convert(x, "gpub", copy=how == "copy" or None)
    expected = image(2, 1, 0) if how == "copyto" else image()
    np.testing.assert_array_equal(b.get(y), expected)
    waits = [call.arguments[0] for call in gpu.called("cuStreamWaitEvent")]
    if how == "peer":
        assert waits == [b.streams[1], own]
    else:
        assert waits == ([stream] if how == "view" else [stream, own])
    gpu.destroy(stream)
    del x, y
    gc.collect()
    assert not any(torch_on_gpu.recorded)
    assert not gpu.raised


def test_a_copy_joins_the_capture_that_its_source_is_part_of(gpu, b, torch_on_gpu):
    x = torch_on_gpu.put(image())
    with gpu.capture(torch_on_gpu.stream) as joined:
        ab.convert(x.permute(2, 0, 1), "gpub", copy=True)
        assert joined == {torch_on_gpu.stream, b.stream}
        assert order_of(gpu)[-1] == ("cuStreamWaitEvent", torch_on_gpu.stream)


@pytest.mark.parametrize("stream", [None, -1, 1, 2, "own", "other"])
def test_pytorch_s_tensors_are_exported_by_the_standard_s_numbering(gpu, torch_on_gpu, stream):
    x, own = ab.from_dlpack(torch_on_gpu.put(image())), torch_on_gpu.stream
    given = {"own": own, "other": gpu.stream()}.get(stream, stream)
    x.__dlpack__(stream=given, max_version=(1, 0))
    ordered = [("cuEventRecord", own), ("cuStreamWaitEvent", given or 1)]
    assert order_of(gpu) == ([] if stream in (-1, "own") else ordered)


def test_memory_that_is_not_pytorch_s_own_is_kept_until_it_was_read(
    gpu, b, torch_on_gpu, monkeypatch
):
    """Another library's, another process's: its owner frees it on a stream of its own."""
    x = torch_on_gpu.put(image())
    monkeypatch.setattr(type(x.untyped_storage()), "resizable", lambda self: False)
    gpu.fail["cuEventQuery"] = 600  # not ready
    y = ab.convert(x.permute(2, 1, 0), "gpub", copy=True)
    np.testing.assert_array_equal(b.get(y), image(2, 1, 0))
    gpu.destroy(b.stream)
    b.stream = gpu.stream()
    del x
    gc.collect()
    assert [type(entry[2]).__name__ for entry in context._held.values()] == ["Tensor"]
    gpu.fail.clear()
    ab.convert(b.put(image()), "gpub", copy=True)
    context.order(0, 1, b.stream)
    assert not context._held


@pytest.mark.parametrize("call", ["cuEventCreate", "cuEventRecord"])
def test_what_is_read_is_kept_where_nothing_tells_when_it_was(gpu, b, call):
    with library(gpu, "gpuc", stream=None, allocates=False) as c:
        x = c.put(image(2, 1, 0))
        kept = weakref.ref(x)
        gpu.fail[call] = 2
        with pytest.raises(MemoryError, match=call):
            ab.convert(x, "gpub", copy=True)
        assert gpu.called("cuLaunchKernel")
        gpu.fail.clear()
        del x
        gc.collect()
        assert kept() is not None


def test_what_is_held_is_let_go_of_while_it_is_looked_through(gpu):
    stream, asked = gpu.stream(), []
    query = gpu.cuEventQuery

    def again(event):
        query(event)
        if len(asked) < 2:  # as a garbage collection would
            asked.append(event)
            context._known(0)

    gpu.fail["cuEventQuery"] = 600  # not ready
    for _ in range(3):
        context.hold(0, stream, object())
    gpu.fail.clear()
    gpu.cuEventQuery = again
    context.order(0, stream, 1)
    assert not context._held
    events = context.device(0).events
    assert len(set(events)) == len(events) == len(gpu.events)


def test_contiguous_of_a_library_whose_own_import_keeps_the_layout():
    class Kept:  # as MLX
        def __init__(self, array):
            self.array = array

    class Keeping(ab.Library):
        name = "keeping"
        accepts = ab.Accepts(
            library="keeping", tested="1", dtypes=frozenset({"float32"}), copies=True
        )

        def owns(self, array_type):
            return array_type is Kept

        def export(self, x, stream=None):
            return ab.dlpack.acquire(x.array)

        def wrap(self, tensor, *, move=False):
            return Kept(np.array(np.from_dlpack(tensor), order="K"))

    ab.register_library(Keeping())
    try:
        y = ab.contiguous(Kept(image(2, 1, 0)))
        assert y.array.flags.c_contiguous
        np.testing.assert_array_equal(y.array, image(2, 1, 0))
    finally:
        ab.unregister_library("keeping")
