"""TVM-FFI: bare descriptions of memory anywhere, without flags and without complex numbers."""

import numpy as np
import pytest
import tvm_ffi

import arraybridge as ab
from arraybridge.dlpack import DataType, Device, DeviceType, ManagedTensor, to_capsule
from arraybridge.libraries.tvm_ffi import LIBRARY
from tests.support.arrays import same
from tests.support.planning import plan
from tests.support.probe import DTYPES, described
from tests.support.producers import Managed

from .contract import ImporterContract, LibraryContract

ACCEPTS = LIBRARY.accepts


def own_door(tensor):
    x = tvm_ffi.from_dlpack(to_capsule(tensor))
    _ = x.dtype  # which complex numbers lack
    return x


class TestTvmFfi(LibraryContract, ImporterContract):
    name = "tvm_ffi"
    door = staticmethod(own_door)
    unasked = frozenset(n for n in DTYPES if n.startswith("handle") or "128" in n)


@pytest.mark.parametrize("dtype", ["int4", "uint2", "float4_e2m1fn"])
def test_subbyte_elements_are_packed(dtype):
    kind = DataType.named(dtype)
    padded = ManagedTensor.allocate((6,), kind, padded=True)
    with pytest.raises(RuntimeError, match="Subbyte type padded is not yet supported"):
        tvm_ffi.from_dlpack(to_capsule(padded))
    packed = tvm_ffi.from_dlpack(to_capsule(ManagedTensor.allocate((6,), kind)))
    assert LIBRARY.describe(packed).dtype_name == f"{dtype} (packed)"
    assert (dtype in ACCEPTS.dtypes, f"{dtype} (packed)" in ACCEPTS.dtypes) == (False, True)
    info = ab.TensorInfo.of_tensor(padded)
    assert plan(info, ACCEPTS).kind == "refuse"
    assert plan(info._replace(padded=False), ACCEPTS).kind == "view"


def test_byte_offset_is_kept():
    managed = Managed(byte_offset=8)
    x = tvm_ffi.from_dlpack(managed.capsule())
    assert LIBRARY.describe(x).data == managed.struct.dl_tensor.data + 8


def test_a_complex_tensor_that_is_there_already_can_leave():
    array = np.arange(3) + 1j
    assert same(ab.convert(tvm_ffi.from_dlpack(array), "numpy"), array)


def test_another_device_passes_through():
    there = Device(DeviceType.ONEAPI, 1)
    array = np.arange(6.0).reshape(2, 3)
    x = ab.convert(described(array, device=there), "tvm_ffi")
    info = ab.inspect(x)
    assert (info.device, info.data, info.strides) == (there, array.ctypes.data, (3, 1))
    with pytest.raises(ab.ConversionError, match="cannot address"):
        ab.convert(x, "numpy")
