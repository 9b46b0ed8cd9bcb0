"""Memory of no known library on an emulated GPU: whose stream it waits for, and how the host reads.

Managed and pinned memory as well, which the host reads where it lies.
"""

import ctypes
import struct
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import arraybridge as ab
from arraybridge import dlpack
from arraybridge.array.exchange_table import _allocated
from arraybridge.kernels.cuda import driver
from arraybridge.protocols import from_object
from tests.support.emulated_gpu import gpu_machine, library
from tests.support.lazy_gpu import Late
from tests.support.stub_driver import installed

MANAGED, PINNED = ab.DeviceType.CUDA_MANAGED, ab.DeviceType.CUDA_HOST


@pytest.fixture
def gpu(tmp_path):
    with gpu_machine(tmp_path) as gpu:
        yield gpu


@pytest.fixture
def b(gpu):
    with library(gpu, "gpub", stream=gpu.stream()) as made:
        yield made


class Foreign:
    """An array of a library that arraybridge does not know, with DLPack."""

    def __init__(self, gpu, kind=2, strides=None):
        self.device, self.strides, self.asked = ab.Device(kind), strides, []
        self.pointer = gpu.allocate(96, 0)
        self.memory = on_host(self.pointer)
        self.memory[:] = range(24)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, max_version=None, **_):
        self.asked.append(stream)
        return dlpack.to_capsule(self.tensor())

    def tensor(self):
        kind = dlpack.DataType.named("float32")
        return dlpack.ManagedTensor.adopt(
            self.pointer, (4, 6), kind, owner=self, device=self.device, strides=self.strides
        )


class Interface(Foreign):
    """The same with the CUDA array interface in its place."""

    __dlpack__ = __dlpack_device__ = None
    stream = 0

    @property
    def __cuda_array_interface__(self):
        strides = None if self.strides is None else tuple(4 * step for step in self.strides)
        fields = {"shape": (4, 6), "typestr": "<f4", "data": (self.pointer, False), "version": 3}
        return fields | {"strides": strides, "stream": self.stream or None}


def on_host(pointer):
    return np.ctypeslib.as_array((ctypes.c_float * 24).from_address(pointer))


def waits(gpu):
    """Which streams waited for which."""
    streams = {}
    for call in gpu.called("cuEventRecord", "cuStreamWaitEvent"):
        if call.name == "cuEventRecord":
            streams[call.arguments[0]] = call.arguments[1]
        else:
            yield call.arguments[0], streams[call.arguments[1]]


@pytest.mark.parametrize("copy", [None, True], ids=["view", "copy"])
@pytest.mark.parametrize("how", ["object", "capsule", "Array", "C"])
def test_the_target_waits_for_the_default_stream(gpu, b, copy, how, monkeypatch):
    """As a producer does that was asked for no stream; its C function waits for nobody."""
    x = Foreign(gpu)
    given = {"capsule": x.__dlpack__, "Array": lambda: ab.from_dlpack(x)}.get(how, lambda: x)()
    if how == "C":
        api = SimpleNamespace(acquire=Foreign.tensor)
        monkeypatch.setattr(from_object, "exchange_api", lambda kind: api)
    y = ab.convert(given, "gpub", copy=copy)
    np.testing.assert_array_equal(b.get(y), x.memory.reshape(4, 6))
    assert next(waits(gpu)) == (b.stream, 1)
    assert x.asked == [None]


def test_a_graph_cannot_wait_for_the_default_stream(gpu, b):
    x = Foreign(gpu)
    with gpu.capture(b.stream) as joined:
        ab.convert(x, "gpub", copy=True)
        assert joined == {b.stream}
    assert not list(waits(gpu))


@pytest.mark.parametrize("strides", [None, (1, 4)], ids=["dense", "strided"])
def test_contiguous_of_the_cuda_array_interface(gpu, b, strides, monkeypatch):
    from arraybridge.array import device_namespace as fallback

    viewed = lambda x: ab.from_dlpack(ab.convert(x, "gpub", copy=False))  # noqa: E731
    monkeypatch.setattr(fallback, "in_fallback_library", viewed)
    x = Interface(gpu, strides=strides)
    x.stream = gpu.stream()
    y = ab.contiguous(x)
    expected = x.memory.reshape(4, 6) if strides is None else x.memory.reshape(6, 4).T
    np.testing.assert_array_equal(b.get(y.native), expected)
    assert ab.inspect(y).c_contiguous
    assert list(waits(gpu)) == [(1, x.stream), (b.stream, 1)]


def test_an_array_s_interface_names_the_stream_that_waits(gpu, b):
    interface = ab.from_dlpack(b.put(np.ones(3))).__cuda_array_interface__
    assert interface["stream"] == 1
    assert b.ordered == [None]  # the legacy default stream, which is 1


def test_fresh_memory_waits_for_nothing(gpu, b):
    """Also inside a capture: TVM-FFI's functions allocate by this."""
    shape = (ctypes.c_int64 * 2)(4, 6)
    tensor = struct.pack(*("PiiiBBHPPQ", 0, 2, 0, 2, 2, 32, 1), ctypes.addressof(shape), 0, 0)
    prototype = ctypes.create_string_buffer(tensor)
    made = SimpleNamespace(_home=b.library)
    with gpu.capture(b.stream):
        fresh = _allocated(made, ctypes.addressof(prototype))
    assert dlpack.ManagedTensor.from_struct(fresh, True).shape == (4, 6)
    assert b.ordered == [-1]


def copied(x):
    out = np.zeros((4, 6), "f4")
    ab.copyto(out, x)
    return out


READS = {
    "view": lambda x: ab.convert(x, "numpy"),
    "copy": lambda x: ab.convert(x, "numpy", copy=True),
    "cast": lambda x: ab.convert(x, "numpy", dtype="float64"),
    "torch": lambda x: ab.convert(x, "torch").numpy(),
    "contiguous": lambda x: np.asarray(ab.contiguous(x)),
    "from_dlpack": lambda x: np.from_dlpack(ab.from_dlpack(x)),
    "copyto": copied,
}


@pytest.mark.parametrize("kind", [Foreign, Interface])
@pytest.mark.parametrize("how", READS)
def test_the_host_waits_before_it_reads_managed_memory(how, kind):
    with installed(Late((9, 0))) as gpu:
        x = kind(gpu, MANAGED)
        x.stream = gpu.stream()
        where = next(iter(gpu.pointers))
        gpu.managed.add(where)
        # What was queued by the time that the object is handed over.
        stream = 1 if kind is Foreign else x.stream
        gpu.enqueue(gpu.context(0), stream, lambda: x.memory.__setitem__(slice(None), 7))
        found = READS[how](x)
        np.testing.assert_array_equal(found, np.full((4, 6), 7))
        if how in ("view", "torch"):
            assert np.shares_memory(found, x.memory)


def test_a_kernel_that_reads_managed_memory_is_not_waited_for(gpu, b):
    accepts = b.library.accepts
    type(b.library).accepts = accepts._replace(devices=frozenset({ab.DeviceType.CUDA, MANAGED}))
    x = Foreign(gpu, MANAGED)
    y = ab.convert(x, "gpub", copy=True)
    np.testing.assert_array_equal(b.get(y), x.memory.reshape(4, 6))
    assert not gpu.called("cuEventSynchronize")
    assert next(waits(gpu)) == (b.stream, 1)


@pytest.mark.parametrize("target", ["numpy", "torch", "jax"])
@pytest.mark.parametrize("kind", ["object", "capsule"])
def test_pinned_memory_is_the_host_s(gpu, target, kind):
    """A view, and so it stays pinned; who queues a copy to it waits for that, as in PyTorch."""
    pytest.importorskip(target)
    x = Foreign(gpu, PINNED)
    assert ab.explain(x, target, copy=False).kind == "view"
    y = ab.convert(x.__dlpack__() if kind == "capsule" else x, target, copy=False)
    found = np.from_dlpack(y)
    np.testing.assert_array_equal(found, x.memory.reshape(4, 6))
    assert np.shares_memory(found, x.memory)
    assert not gpu.calls


def test_without_a_driver_nobody_waits(gpu, monkeypatch):
    x = Foreign(gpu, MANAGED)
    monkeypatch.setattr(driver, "_NAMES", {sys.platform: ("no-such-driver",)})
    driver.install(None)
    np.testing.assert_array_equal(ab.convert(x, "numpy"), x.memory.reshape(4, 6))
    driver.install(None)
