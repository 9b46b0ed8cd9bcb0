"""Memory of no known library on an emulated GPU: whose stream it waits for, and how the host reads.

Managed memory as well, which the host reads where it lies.
"""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

import arraybridge as ab
from arraybridge import dlpack
from arraybridge.protocols import from_object
from tests.support.emulated_gpu import Emulated, library
from tests.support.lazy_gpu import Late
from tests.support.stub_driver import installed, machine


@pytest.fixture
def gpu(tmp_path):
    with machine(tmp_path, Emulated((9, 0), (8, 0))) as gpu:
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


READS = {
    "view": lambda x: ab.convert(x, "numpy"),
    "copy": lambda x: ab.convert(x, "numpy", copy=True),
    "torch": lambda x: ab.convert(x, "torch").numpy(),
    "contiguous": lambda x: np.asarray(ab.contiguous(x)),
    "from_dlpack": lambda x: np.from_dlpack(ab.from_dlpack(x)),
}


@pytest.mark.parametrize("how", READS)
def test_the_host_waits_before_it_reads_managed_memory(how):
    with installed(Late((9, 0))) as gpu:
        x = Foreign(gpu, ab.DeviceType.CUDA_MANAGED)
        gpu.managed.add(next(iter(gpu.pointers)))
        # What was queued by the time that the object is handed over.
        gpu.enqueue(gpu.context(0), 1, lambda: x.memory.__setitem__(slice(None), 7))
        np.testing.assert_array_equal(READS[how](x), np.full((4, 6), 7))
