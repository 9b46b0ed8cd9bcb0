"""TVM-FFI. Its tensors describe memory with any strides on any device.

They have no flags: read-only is lost, and sub-byte elements are always packed. Its importer accepts
both kinds of capsules and every dtype, but ``tvm_ffi.dtype`` has no complex numbers: reading the
dtype of such a tensor raises ValueError.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm_ffi

from ..core.library import Devices, Library
from ..core.records import IN_PARTS, Accepts, Edge, TensorInfo
from ..dlpack import DataType, Device, DeviceType, ManagedTensor, acquire, to_capsule
from ..native import C
from ..ndarrays import NATIVE

_NAMES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
    "float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 "
    "float8_e5m2fnuz float8_e8m0fnu"
).split()
_PACKED = (
    "int1 int2 int4 uint1 uint2 uint4 float6_e2m3fn float6_e3m2fn float4_e2m1fn"  # never padded
).split()
_LANES = (2, 4, 8, 16)  # vectors, as CUDA has them: float32x4, float4_e2m1fnx2


def _names() -> frozenset[str]:
    names = set(_NAMES)
    for name in _NAMES + _PACKED:
        for lanes in (1, *_LANES):
            dtype = DataType(*DataType.named(name)[:2], lanes)
            names.add(f"{dtype.name} (packed)" if dtype.subbyte else dtype.name)
    return frozenset(names)


_from_dlpack = tvm_ffi.from_dlpack
_dlpack_dtypes: dict[str, DataType] = {}  # tvm_ffi.dtype is a str


class _Devices(Devices):
    def place(self, device: object) -> Device | None:
        if not isinstance(device, tvm_ffi.Device):
            return None
        return Device(int(device.dlpack_device_type()), device.index)


class TvmFfi(Library):
    """TVM-FFI."""

    name = "tvm_ffi"
    devices = _Devices()
    accepts = Accepts(
        library="tvm_ffi",
        tested="0.1.15",
        dtypes=_names(),
        devices=frozenset(DeviceType),
        cpus=2**31,
        remedies=IN_PARTS,
    )

    def owns(self, array_type: type) -> bool:
        return issubclass(array_type, tvm_ffi.Tensor)

    def describe(self, x: tvm_ffi.Tensor) -> TensorInfo:
        try:
            kind = x.dtype
        except ValueError:  # complex
            return TensorInfo.of_tensor(acquire(x), "tvm_ffi")._replace(readonly=False)
        dtype = _dlpack_dtypes.get(kind)
        if dtype is None:
            dtype = _dlpack_dtypes[kind] = DataType(kind.type_code, kind.bits, kind.lanes)
        data = x.data_ptr()  # includes the byte offset
        place = Device(*x.__dlpack_device__())
        return TensorInfo("tvm_ffi", data, 0, x.shape, x.strides, dtype, place)

    def export(self, x: tvm_ffi.Tensor, stream: int | None = None) -> ManagedTensor:
        tensor = super().export(x, stream)
        tensor.readonly = False  # a legacy capsule, of older versions, cannot mark it
        return tensor

    def memory_owner(self, x: tvm_ffi.Tensor, info: TensorInfo, briefly: bool = False) -> object:
        # Otherwise a separate handle: that of ``x`` may be moved to another object.
        return x if briefly else x.__dlpack__()

    def wrap(self, tensor: ManagedTensor) -> tvm_ffi.Tensor:
        return tvm_ffi.from_dlpack(to_capsule(tensor))


def _serves(s: Any) -> bool:
    return s.dtype_name in NATIVE and not s.readonly


LIBRARY = TvmFfi()
if C is not None:
    LIBRARY.signature = C.capsule_signature(LIBRARY.signature)  # type: ignore[method-assign]
LIBRARY.edges = (
    Edge("numpy", "tvm_ffi", _from_dlpack, _serves),
    Edge("paddle", "tvm_ffi", _from_dlpack, lambda s: not s.dtype_name.startswith("complex")),
    Edge("tvm_ffi", "numpy", np.from_dlpack, lambda s: s.dtype_name in NATIVE),
)
