"""TVM-FFI: bare descriptions of memory anywhere, without flags and without complex numbers."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import tvm_ffi

import arraybridge as ab
from arraybridge.dispatch.plan import plan
from arraybridge.dispatch.registry import forget
from arraybridge.dlpack import DataType, Device, DeviceType, ManagedTensor, to_capsule
from arraybridge.libraries.tvm_ffi.exchange import LIBRARY

from .support.arrays import NUMBERS, layouts, same
from .support.optional import optional
from .support.probe import DTYPES, described, every_byte
from .support.producers import Managed

torch = optional("torch")

ACCEPTS = LIBRARY.accepts


@pytest.fixture(autouse=True)
def doors_shut():
    """Each test begins with the planned route, whatever conversions came before it."""
    forget()


class TestTheRecordIsWhatTheImporterDoes:
    def test_version(self):
        assert tvm_ffi.__version__.partition(".post")[0] == ACCEPTS.tested

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


@pytest.mark.parametrize(
    ("source", "layout"),
    [(source, name) for source in ("numpy", "torch") for name in layouts() if name != "negative"]
    + [("numpy", "negative")],  # torch has none
)
def test_every_layout_is_a_view_both_ways(source, layout):
    array = layouts()[layout]
    native = array if source == "numpy" else torch.from_numpy(array)
    for _ in range(2):  # planned, then by the library's own door
        x = ab.convert(native, "tvm_ffi")
        assert type(x) is tvm_ffi.Tensor
        back = ab.convert(x, "numpy")
        assert same(back, array)
        assert back.flags.writeable
        if array.size:
            assert np.shares_memory(back, array)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_numbers(dtype):
    array = np.arange(6).astype(dtype)
    for _ in range(2):
        if dtype.startswith("complex"):
            for native in (array, torch.from_numpy(array)):
                with pytest.raises(ab.ConversionError, match="real and imaginary parts"):
                    ab.convert(native, "tvm_ffi")
        else:
            assert same(ab.convert(ab.convert(array, "tvm_ffi"), "numpy"), array)


def test_a_complex_tensor_that_is_there_already_can_leave():
    array = np.arange(3) + 1j
    x = tvm_ffi.from_dlpack(array)
    assert same(ab.convert(x, "numpy"), array)
    assert ab.inspect(x).dtype_name == "complex128"


def test_doors_stay_shut_where_a_promise_would_break():
    fine = torch.ones(3)
    ab.convert(fine, "tvm_ffi")
    ab.convert(fine, "tvm_ffi")
    imaginary = torch.imag(torch.conj(torch.tensor([1 + 2j])))
    assert imaginary.is_neg()
    assert ab.convert(ab.convert(imaginary, "tvm_ffi"), "numpy").tolist() == [-2.0]
    for refused, why in [
        (torch.ones(3, requires_grad=True), "gradients"),
        (torch.ones(3, 3).to_sparse(), "dense"),
        (torch.ones(3, device="meta"), "meta"),
    ]:
        with pytest.raises(ab.ConversionError, match=why):
            ab.convert(refused, "tvm_ffi")
    array = np.arange(3.0)
    ab.convert(array, "tvm_ffi")
    array.flags.writeable = False
    x = ab.convert(array, "tvm_ffi")
    np.from_dlpack(x)[0] = 7
    assert array[0] == 0
    swapped = np.arange(3, dtype=">f4")
    assert ab.convert(ab.convert(swapped, "tvm_ffi"), "numpy").tolist() == [0, 1, 2]


def test_another_device_passes_through():
    there = Device(DeviceType.ONEAPI, 1)
    array = np.arange(6.0).reshape(2, 3)
    x = ab.convert(described(array, device=there), "tvm_ffi")
    info = ab.inspect(x)
    assert (info.device, info.data, info.strides) == (there, array.ctypes.data, (3, 1))
    with pytest.raises(ab.ConversionError, match="device="):
        ab.convert(x, "numpy")


def test_the_owner_lives_as_long_as_the_tensor():
    class Owner(np.ndarray):
        pass

    array = np.arange(12.0).view(Owner)
    owner = weakref.ref(array)
    x = LIBRARY.wrap(described(array))
    view = ab.convert(x, "numpy")
    del array, x
    gc.collect()
    assert owner() is not None
    del view
    gc.collect()
    assert owner() is None
