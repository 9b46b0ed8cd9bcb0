"""Exporters made of the core's own tensors, for real consumers."""

import ctypes

import pytest

from arraybridge import dlpack
from arraybridge.dlpack import ManagedTensor

__all__ = ["KINDS", "Exported", "LegacyOnly", "Owner"]

KINDS = pytest.mark.parametrize("versioned", [True, False], ids=["versioned", "legacy"])


class Owner:
    """Memory of four float32 that records when it is freed."""

    def __init__(self):
        self.memory = (ctypes.c_float * 4)(1, 2, 3, 4)

    @property
    def tensor(self):
        return ManagedTensor.adopt(
            ctypes.addressof(self.memory), (4,), dlpack.DataType.named("float32"), owner=self
        )


class Exported:
    """A tensor of the core as a producer of either kind."""

    def __init__(self, tensor, versioned=True):
        self.tensor = tensor
        self.versioned = versioned

    def __dlpack_device__(self):
        return tuple(self.tensor.device)

    def __dlpack__(self, **_):
        return dlpack.to_capsule(self.tensor, versioned=self.versioned)


class LegacyOnly:
    """A producer from before DLPack 1.0."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()
