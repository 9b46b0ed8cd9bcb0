"""TVM-FFI: bare descriptions of memory anywhere, without flags and without complex numbers."""

import numpy as np
import pytest
import tvm_ffi

import arraybridge as ab
from arraybridge.dlpack import DataType, Device, DeviceType, ManagedTensor, to_capsule
from arraybridge.libraries.tvm_ffi import LIBRARY
from tests.support.arrays import layouts, same
from tests.support.planning import plan
from tests.support.probe import DTYPES, described, every_byte
from tests.support.producers import Managed

ACCEPTS = LIBRARY.accepts


class TestTheRecordIsWhatTheImporterDoes:
    @pytest.mark.parametrize("dtype", [n for n in DTYPES if n[:3] != "han" and "128" not in n])
    def test_dtypes(self, dtype):
        tensor = every_byte(dtype)
        x = tvm_ffi.from_dlpack(to_capsule(tensor))
        if dtype in ACCEPTS.dtypes:
            info = LIBRARY.describe(x)
            assert (info.dtype, info.data) == (tensor.dtype, tensor.data)
        else:
            with pytest.raises(ValueError, match="unknown type_code"):
                _ = x.dtype

    @pytest.mark.parametrize("dtype", ["int4", "uint2", "float4_e2m1fn"])
    def test_subbyte_elements_are_packed(self, dtype):
        kind = DataType.named(dtype)
        padded = ManagedTensor.allocate((6,), kind, padded=True)
        with pytest.raises(RuntimeError, match="Subbyte type padded is not yet supported"):
            tvm_ffi.from_dlpack(to_capsule(padded))
        packed = tvm_ffi.from_dlpack(to_capsule(ManagedTensor.allocate((6,), kind)))
        assert LIBRARY.describe(packed).dtype_name == f"{dtype} (packed)"
        assert (dtype in ACCEPTS.dtypes, f"{dtype} (packed)" in ACCEPTS.dtypes) == (False, True)
        info = ab.TensorInfo.of_tensor(padded)
        assert plan(info, ACCEPTS).kind == "refuse"
        assert "uint8 view" in plan(info, ACCEPTS).why
        assert plan(info._replace(padded=False), ACCEPTS).kind == "view"

    @pytest.mark.parametrize("layout", layouts())
    def test_strides_alignment_and_rank(self, layout):
        array = layouts()[layout]
        x = tvm_ffi.from_dlpack(to_capsule(described(array)))
        assert same(np.from_dlpack(x), array)
        assert ab.explain(array, "tvm_ffi").kind == "view"

    def test_rank_64(self):
        array = np.zeros((1,) * 64)
        assert tvm_ffi.from_dlpack(to_capsule(described(array))).ndim == ACCEPTS.ndim[1] == 64

    @pytest.mark.parametrize("versioned", [True, False])
    def test_readonly_is_lost(self, versioned):
        array = np.arange(3.0)
        x = tvm_ffi.from_dlpack(to_capsule(described(array, readonly=True), versioned=versioned))
        np.from_dlpack(x)[0] = 7
        assert array[0] == 7
        assert not ACCEPTS.readonly

    @pytest.mark.parametrize("kind", ["CUDA", "ROCM", "METAL", "ONEAPI", "CUDA_MANAGED"])
    def test_devices_are_not_looked_at(self, kind):
        device = Device(DeviceType[kind], 1)
        x = tvm_ffi.from_dlpack(to_capsule(described(np.ones(3), device=device)))
        assert LIBRARY.describe(x).device == device
        assert device.type in ACCEPTS.devices

    def test_byte_offset_is_kept(self):
        managed = Managed(byte_offset=8)
        x = tvm_ffi.from_dlpack(managed.capsule())
        assert LIBRARY.describe(x).data == managed.struct.dl_tensor.data + 8


def test_a_complex_tensor_that_is_there_already_can_leave():
    array = np.arange(3) + 1j
    x = tvm_ffi.from_dlpack(array)
    assert same(ab.convert(x, "numpy"), array)
    assert ab.inspect(x).dtype_name == "complex128"


def test_another_device_passes_through():
    there = Device(DeviceType.ONEAPI, 1)
    array = np.arange(6.0).reshape(2, 3)
    x = ab.convert(described(array, device=there), "tvm_ffi")
    info = ab.inspect(x)
    assert (info.device, info.data, info.strides) == (there, array.ctypes.data, (3, 1))
    with pytest.raises(ab.ConversionError, match="device="):
        ab.convert(x, "numpy")
