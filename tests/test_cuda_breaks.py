"""What went wrong once with copies on CUDA devices: errors halfway, re-entrancy, oddities."""

from __future__ import annotations

import gc
import re
import threading
import weakref

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.dispatch import kernel as kernels
from arraybridge.kernels import cpu, cuda
from arraybridge.kernels.cuda import build, context, transfer

from .support.emulated_gpu import gpu_machine, library


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


@pytest.fixture
def mine():
    """A kernel for the host that is registered: the shapes that it was called with."""
    shapes = []

    def copy(dst, src, shape, dst_strides, src_strides, itemsize, stream):
        shapes.append(shape)
        cpu.copy(dst, src, shape, dst_strides, src_strides, itemsize)

    ab.register_kernel("cpu", copy, name="mine")
    yield shapes
    ab.register_kernel("cpu", None)


def image(*axes):
    return np.arange(24, dtype="f4").reshape(2, 3, 4).transpose(axes or (0, 1, 2))


def accepting(its, **terms):
    """Let a library accept other things."""
    kind = type(its.library)
    kind.accepts = kind.accepts._replace(**terms)


# -- what is told is what is done


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


def test_what_cannot_compile_after_all_is_told_and_passed_by(gpu, a, b, monkeypatch):
    def failing(plan):
        raise ImportError("Numba cannot compile for CUDA here: no NVVM")

    monkeypatch.setattr(build, "ptx", failing)
    type(a.library).copy = lambda self, x: a.put(np.ascontiguousarray(a.get(x)))
    x = a.put(image(2, 1, 0))
    assert ab.explain(x, "gpua", copy=True).kernel == "arraybridge's own copy"
    for _ in range(2):
        np.testing.assert_array_equal(a.get(ab.contiguous(x)), image(2, 1, 0))
        told = ab.explain(x, "gpua", copy=True).kernel
        assert told == "gpua's own copy (Numba cannot compile for CUDA here: no NVVM)"
    np.testing.assert_array_equal(b.get(ab.convert(x, "gpub", copy=True)), image(2, 1, 0))
    np.testing.assert_array_equal(ab.convert(x, "numpy", device="cpu"), image(2, 1, 0))


def test_copyto_of_what_cannot_compile_after_all(gpu, a, b, monkeypatch):
    def failing(plan):
        raise ImportError("Numba cannot compile for CUDA here: no NVVM")

    monkeypatch.setattr(build, "ptx", failing)
    for _ in range(2):
        with pytest.raises((ab.ConversionError, ImportError), match="Numba cannot compile"):
            ab.copyto(a.put(image(1, 0, 2)), b.put(np.zeros((3, 2, 4), "f4")[:, ::-1]))


def test_a_registered_kernel_s_own_import_error_is_the_caller_s(gpu, a):
    def failing(*arguments):
        raise ImportError("no module named mine")

    ab.register_kernel("cuda", failing)
    try:
        for action in (
            lambda: ab.contiguous(a.put(image(2, 1, 0))),
            lambda: ab.copyto(a.put(image()), a.put(image())),
        ):
            with pytest.raises(ImportError, match="no module named mine"):
                action()
    finally:
        ab.register_kernel("cuda", None)


def test_a_kernel_that_is_registered_while_others_ask(monkeypatch):
    def registering(device):
        monkeypatch.setattr(kernels, "_on_cuda", found)
        ab.register_kernel("cuda", print, name="mine")
        return found()

    found = kernels._on_cuda
    monkeypatch.setattr(kernels, "_on_cuda", lambda: registering(None))
    try:
        kernels._anew()
        kernels.kernel_for(ab.Device(2))
        assert kernels.kernel_for(ab.Device(2)).name == "mine"
    finally:
        ab.register_kernel("cuda", None)


def test_what_no_device_has_the_memory_for_is_explained_all_the_same(gpu, a):
    x = a.Array(gpu.allocate(4, 0), (1 << 30, 1 << 30), (0, 0), "f4", 0)
    assert ab.explain(x, "gpua", copy=True).kernel == "arraybridge's own copy"


# -- packed elements smaller than a byte


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


# -- the ring


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
    try:
        thread = threading.Thread(target=send, daemon=True)
        thread.start()
        thread.join(30)
        assert not thread.is_alive(), "the transfers wait for each other"
    finally:
        ab.register_kernel("cpu", None)
    np.testing.assert_array_equal(b.get(done[0]), image(1, 0, 2))
    np.testing.assert_array_equal(a.get(done[1]), image(2, 1, 0))


@pytest.mark.parametrize("call", ["cuMemcpyHtoDAsync", "cuEventRecord", "cuEventSynchronize"])
def test_a_transfer_that_fails_halfway(gpu, a, monkeypatch, call):
    monkeypatch.setattr(transfer, "BLOCK", 32)
    ab.convert(image(), "gpua", device="cuda:0")
    gpu.fail[call] = 719
    with pytest.raises(cuda.CUDAError, match=call):
        ab.convert(image(), "gpua", device="cuda:0")
    gpu.fail.clear()
    for _ in range(2):
        x = ab.convert(image(2, 1, 0), "gpua", device="cuda:0")
        np.testing.assert_array_equal(a.get(x), image(2, 1, 0))
        np.testing.assert_array_equal(ab.convert(x, "numpy", device="cpu"), image(2, 1, 0))
    # Blocks whose copies may be under way, and whose events tell nothing, are not used again.
    assert len(gpu.pinned) == (6 if call == "cuEventRecord" else 3)
    assert gpu.stack == []


def test_an_interrupted_transfer_leaves_its_copies_to_be_waited_for(gpu, a):
    ab.convert(image(), "gpua", device="cuda:0")
    ring = transfer._rings[0][0]

    def copy(*arguments):
        raise KeyboardInterrupt

    ab.register_kernel("cpu", copy)
    try:
        before = len(gpu.calls)
        with pytest.raises(KeyboardInterrupt):
            ab.convert(image(2, 1, 0), "gpua", device="cuda:0")
    finally:
        ab.register_kernel("cpu", None)
    recorded = [c.arguments for c in gpu.calls[before:] if c.name == "cuEventRecord"]
    assert recorded == [(block.event, a.stream) for block in ring]
    assert transfer._rings[0] == [ring]


def test_transfers_beside_a_capture(gpu, a, b):
    x = a.put(image(2, 1, 0))
    with gpu.capture(b.stream):
        np.testing.assert_array_equal(ab.convert(x, "numpy", device="cpu"), image(2, 1, 0))
        y = ab.convert(image(2, 1, 0), "gpua", device="cuda:0")
    np.testing.assert_array_equal(a.get(y), image(2, 1, 0))


# -- streams


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


def test_torch_s_quick_way_leaves_tensors_without_memory_to_the_long_one():
    torch = pytest.importorskip("torch")
    from arraybridge.libraries.torch.exchange import LIBRARY

    def seen(x):
        assert LIBRARY._compact_on_cuda(x) is None
        return x

    torch.func.vmap(seen)(torch.zeros(2, 3, 4).transpose(1, 2))
    torch.func.functionalize(seen)(torch.zeros(2, 3).T)


def test_torch_s_allocator_is_not_all_that_keeps_memory(gpu, monkeypatch):
    torch = pytest.importorskip("torch")
    from arraybridge.libraries.torch.exchange import LIBRARY

    monkeypatch.setattr(type(LIBRARY), "current_stream", lambda self, device: 1)
    stream = gpu.stream()
    own, foreign = torch.zeros(3), torch.from_dlpack(np.zeros(3, "f4"))
    LIBRARY.read_on(own, ab.Device(2), stream)
    assert not gpu.called("cuEventRecord")
    LIBRARY.read_on(own, ab.Device(2), 2)
    assert [call.arguments[0] for call in gpu.called("cuStreamWaitEvent")] == [1]
    kept = weakref.ref(foreign)
    LIBRARY.read_on(foreign, ab.Device(2), stream)
    del foreign
    gc.collect()
    assert kept() is not None


def test_overlapping_memory_of_a_library_that_allocates_none(gpu, a):
    with library(gpu, "gpuc", allocates=False) as c:
        x = a.put(np.arange(40, dtype="i4"))
        ab.copyto(
            a.Array(x.pointer + 4, (39,), (4,), "i4", 0),
            c.Array(x.pointer, (39,), (4,), "i4", 0),
        )
        assert a.get(x).tolist() == [0, *range(39)]


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


# -- on the host


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


def test_a_consumer_on_the_host_is_given_memory_of_no_library(gpu):
    pointer = gpu.allocate(96, 0)
    gpu.arenas[0][pointer - gpu.arenas[0].ctypes.data :][:96] = image().reshape(-1).view("u1")
    x = ab.from_pointer(pointer, (2, 3, 4), "float32", device="cuda:0")
    capsule = x.__dlpack__(dl_device=(1, 0), max_version=(1, 0))
    np.testing.assert_array_equal(ab.convert(capsule, "numpy"), image())
    with pytest.raises(BufferError, match="copy=False"):
        x.__dlpack__(dl_device=(1, 0), max_version=(1, 0), copy=False)
