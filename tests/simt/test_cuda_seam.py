"""Copies on CUDA devices through the public functions, on an emulated GPU.

Which kernel, on which stream, into whose memory, in which order.
"""

import gc
import weakref

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.kernels import cuda
from arraybridge.kernels.cuda import build, context, transfer
from tests.support.emulated_gpu import Emulated, library
from tests.support.small_layouts import small_layouts
from tests.support.stub_driver import machine

CUDA = ab.Device(2)


@pytest.fixture(autouse=True)
def _unregister():
    """A kernel that a test registers is gone after it."""
    yield
    for device in ("cpu", "cuda"):
        ab.register_kernel(device, None)


@pytest.fixture
def gpu(tmp_path):
    with machine(tmp_path, Emulated((9, 0), (8, 0))) as gpu:
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
    assert (route.kind, route.device, route.nbytes) == ("copy", CUDA, expected.nbytes)
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
        lambda: ab.contiguous(x, out=out),
        lambda: ab.copyto(out, x) or out,
    ]
    for n, copy in enumerate(copies, 1):
        np.testing.assert_array_equal(a.get(copy()), expected)
        assert len(gpu.called("cuLaunchKernel")) == n
    assert {stream for _, stream in order_of(gpu)} == {a.stream}


def test_the_target_allocates_and_its_stream_waits_for_the_source(gpu, a, b):
    x = a.put(image(2, 1, 0))
    route = ab.explain(x, "gpub", copy=True)
    assert route.kind == "copy"
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


def test_overlapping_memory_is_copied_first(gpu, a):
    with library(gpu, "gpuc", allocates=False) as c:
        for kind in (a.Array, c.Array):
            x = a.put(np.arange(40, dtype="i4"))
            to, of = a.Array(x.pointer + 4, (39,), (4,), "i4", 0), x.pointer
            ab.copyto(to, kind(of, (39,), (4,), "i4", 0))
            assert a.get(x).tolist() == [0, *range(39)]
    assert a.made == 2


@pytest.mark.parametrize("layout", [pytest.param(x, id=x.name) for x in small_layouts()])
def test_strided_arrays_cross(gpu, a, layout, monkeypatch):
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
    with pytest.raises(ab.ConversionError, match="a library that computes there first"):
        ab.convert(strided, "numpy", device="cpu")


def test_host_memory_is_no_part_of_a_graph(gpu, a):
    x = a.put(image())
    with gpu.capture(a.stream):
        for transferred in (
            lambda: ab.convert(image(), "gpua", device="cuda:0"),
            lambda: ab.convert(x, "numpy", device="cpu"),
        ):
            with pytest.raises(cuda.CUDAError, match="before the capture begins"):
                transferred()


def test_transfers_beside_a_capture(gpu, a, b):
    x = a.put(image(2, 1, 0))
    with gpu.capture(b.stream):
        np.testing.assert_array_equal(ab.convert(x, "numpy", device="cpu"), image(2, 1, 0))
        y = ab.convert(image(2, 1, 0), "gpua", device="cuda:0")
    np.testing.assert_array_equal(a.get(y), image(2, 1, 0))


@pytest.fixture
def torch_stream(gpu, monkeypatch):
    """PyTorch with a current stream on the GPU, and tensors that say that they lie there."""
    pytest.importorskip("torch")
    from arraybridge.libraries.torch.exchange import LIBRARY

    stream, kind, described = gpu.stream(), type(LIBRARY), type(LIBRARY).describe
    on_device = lambda self, x: described(self, x)._replace(device=CUDA)  # noqa: E731
    monkeypatch.setattr(kind, "describe", on_device)
    monkeypatch.setattr(type(LIBRARY.devices), "current_stream", lambda self, device: stream)
    return LIBRARY, stream


@pytest.mark.parametrize("stream", [None, -1, 1, 2, "own", "other"])
def test_pytorch_exports_by_the_standards_numbering(gpu, torch_stream, stream):
    import torch

    pytorch, own = torch_stream
    given = {"own": own, "other": gpu.stream()}.get(stream, stream)
    pytorch.export(torch.ones(3), given)
    ordered = [("cuEventRecord", own), ("cuStreamWaitEvent", given or 1)]
    assert order_of(gpu) == ([] if stream in (-1, "own") else ordered)


@pytest.mark.parametrize("resizable", [True, False])
def test_pytorch_waits_for_who_reads_its_memory(gpu, torch_stream, monkeypatch, resizable):
    """`Tensor.record_stream` would use the reader's stream later, when it may be destroyed.

    Memory that is not PyTorch's own is freed on a stream that nobody knows: it is kept.
    """
    import torch

    pytorch, own = torch_stream
    monkeypatch.setattr(torch.UntypedStorage, "resizable", lambda self: resizable)
    monkeypatch.setattr(torch.Tensor, "record_stream", pytest.fail)
    x, reader = torch.ones(3), gpu.stream()
    alive = weakref.ref(x)
    gpu.fail["cuEventQuery"] = 600  # not ready
    pytorch.devices.read_on(x, CUDA, reader)
    wait = [("cuStreamWaitEvent", own)] if resizable else []
    assert order_of(gpu) == [("cuEventRecord", reader), *wait]
    gpu.destroy(reader)
    del x
    gc.collect()
    assert (alive() is None) == resizable
    gpu.fail.clear()
    context.order(0, 1, own)
    assert alive() is None


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
    assert len(gpu.pinned) == (2 if call == "cuEventRecord" else 1)
    assert gpu.stack == []
