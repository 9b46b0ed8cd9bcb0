"""AMD's GPUs: views and each library's own copies; nothing asks for NVIDIA's driver.

The libraries' arrays lie in host memory under the name of a device; PyTorch's build is a pretence.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.core.library import Devices
from arraybridge.dlpack import ManagedTensor
from arraybridge.kernels.cuda import driver
from tests.support.processes import python

ROCM = ab.Device(ab.DeviceType.ROCM)


class Mine:
    """An array of one library."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array


class Theirs(Mine):
    """An array of the other."""


def library(kind: type, name: str, stream: int) -> ab.Library:
    class Its(Devices):
        def to_device(self, x: Mine, device: ab.Device) -> np.ndarray:
            assert device == ab.dlpack.CPU
            return x.array.copy()

        def current_stream(self, device: ab.Device) -> int:
            return stream

    class OnROCm(ab.Library):
        devices = Its()
        accepts = ab.Accepts(
            library=name, tested="1", dtypes=frozenset({"float32"}), devices=frozenset({ROCM.type})
        )
        asked: ClassVar[list[int | None]] = []

        def owns(self, array_type: type) -> bool:
            return array_type is kind

        def describe(self, x: Mine) -> ab.TensorInfo:
            return ab.inspect(x.array)._replace(library=name, device=ROCM)

        def export(self, x: Mine, stream: int | None = None) -> ManagedTensor:
            self.asked.append(stream)
            info = self.describe(x)
            return ManagedTensor.adopt(
                info.data, info.shape, info.dtype, owner=x, strides=info.strides, device=ROCM
            )

        def wrap(self, tensor: ManagedTensor) -> Mine:
            assert tensor.device == ROCM
            steps = [4 * step for step in tensor.strides]
            fields = {"shape": tensor.shape, "typestr": "<f4", "strides": tuple(steps)}
            fields |= {"data": (tensor.pointer, False), "version": 3}
            view = type("Memory", (), {"__array_interface__": fields, "owner": tensor.owner})
            return kind(np.asarray(view()))

        def copy(self, x: Mine) -> Mine:
            return kind(x.array.copy())

    OnROCm.name = name
    return OnROCm()


@pytest.fixture
def theirs(monkeypatch: pytest.MonkeyPatch) -> Iterator[ab.Library]:
    def none() -> None:
        raise AssertionError("NVIDIA's driver was asked for")

    monkeypatch.setattr(driver, "_driver", None)
    monkeypatch.setattr(driver, "_load", none)
    made = library(Theirs, "theirs", 7)
    ab.register_library(library(Mine, "mine", 5))
    ab.register_library(made)
    yield made
    for name in ("mine", "theirs"):
        ab.unregister_library(name)


def image() -> np.ndarray:
    return np.arange(6, dtype="f4").reshape(2, 3)


def test_a_view_is_ordered_by_the_libraries_themselves(theirs: ab.Library) -> None:
    x = Theirs(image().T)
    y = ab.convert(x, "mine")
    assert type(y) is Mine
    assert y.array.ctypes.data == x.array.ctypes.data
    assert y.array.strides == x.array.strides
    assert theirs.asked == [5]  # the stream that the target reads on


def test_a_copy_is_the_library_s_own(theirs: ab.Library) -> None:
    x = Theirs(image().T)
    assert ab.explain(x, "mine", copy=True).kernel == "theirs's own copy"
    y = ab.convert(x, "mine", copy=True)
    np.testing.assert_array_equal(y.array, image().T)
    assert not np.shares_memory(y.array, x.array)
    assert ab.contiguous(x).array.flags.c_contiguous
    np.testing.assert_array_equal(ab.convert(x, "numpy", device="cpu"), image().T)


def test_a_kernel_that_is_registered_is_given_the_stream(theirs: ab.Library) -> None:
    streams = []
    type(theirs.devices).empty = lambda self, info, like: Theirs(np.empty(info.shape, "f4"))

    def copy(dst, src, shape, dst_strides, src_strides, itemsize, stream):
        from arraybridge.kernels import cpu

        streams.append(stream)
        cpu.copy(dst, src, shape, dst_strides, src_strides, itemsize)

    ab.register_kernel("rocm", copy)
    try:
        x = Theirs(image().T)
        np.testing.assert_array_equal(ab.contiguous(x).array, image().T)
    finally:
        ab.register_kernel("rocm", None)
    assert streams == [7]


def test_pytorch_s_build_for_rocm() -> None:
    """Its device is "cuda", and DLPack's is ROCm; without a GPU it is refused in these words."""
    pytest.importorskip("torch")
    python(
        """
import numpy as np
import torch
torch.version.hip, torch.version.cuda = "6.4", None
torch.cuda.is_available = lambda: False
import arraybridge as ab
from arraybridge.libraries.torch.exchange import LIBRARY
assert LIBRARY.accepts.devices == {ab.DeviceType.CPU, ab.DeviceType.ROCM}
assert LIBRARY.devices.place(torch.device("cuda", 1)) == ab.Device("rocm:1")
assert ab.explain(np.zeros(3), "torch", device="cuda").why.startswith("torch has no arrays on cuda")
for call in (ab.explain, ab.convert):
    try:
        route = call(np.zeros(3), "torch", device="rocm")
        why = route.why
    except ab.ConversionError as error:
        why = str(error)
    assert "no usable rocm device" in why, why
torch.cuda.is_available, torch.cuda.device_count = lambda: True, lambda: 2
assert LIBRARY.devices.native_device(ab.Device("rocm:1")) == torch.device("cuda", 1)
"""
    )
