"""NumPy arrays for DLPack: data types (also those of ml_dtypes), address, strides."""

from __future__ import annotations

from typing import Any

import numpy as np

from .dlpack import DataType
from .layout import in_bytes, in_elements, relaxed
from .native import C

NATIVE = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 "
    "complex128"
).split()
EXTENDED = (
    "bfloat16 float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 "
    "float8_e5m2fnuz float8_e8m0fnu float6_e2m3fn float6_e3m2fn float4_e2m1fn int2 int4 uint2 uint4"
).split()
CHARS = frozenset("?bhilqBHILQefdFD")  # NumPy's character codes of NATIVE, in either byte order
PLAIN = frozenset(map(np.dtype, CHARS))  # in this machine's byte order

_dlpack_dtypes: dict[np.dtype[Any], DataType] = {np.dtype(n): DataType.named(n) for n in NATIVE}
_numpy_dtypes: dict[DataType, np.dtype[Any]] = {v: k for k, v in _dlpack_dtypes.items()}


def extended_dtype(name: str) -> np.dtype[Any] | None:
    """Return the dtype of ml_dtypes with a name; None if it, or ml_dtypes, is missing."""
    try:
        import ml_dtypes
    except ImportError:
        return None
    scalar = getattr(ml_dtypes, name, None)
    return None if scalar is None else np.dtype(scalar)


def numpy_dtype(dtype: DataType) -> np.dtype[Any]:
    """Return NumPy's dtype; ImportError if ml_dtypes is missing, TypeError if neither has it."""
    found = _numpy_dtypes.get(dtype)
    if found is not None:
        return found
    if dtype.name not in EXTENDED:
        raise TypeError(f"NumPy has no dtype for {dtype}")
    found = extended_dtype(dtype.name)
    if found is None:
        raise ImportError(f"{dtype} in NumPy needs ml_dtypes: pip install ml_dtypes")
    _numpy_dtypes[dtype] = found
    _dlpack_dtypes[found] = dtype
    return found


def dlpack_dtype(dtype: np.dtype[Any]) -> DataType | None:
    """Return the DLPack data type of a native-endian NumPy dtype, or None."""
    found = _dlpack_dtypes.get(dtype)
    if found is None and dtype.name in EXTENDED and dtype == extended_dtype(dtype.name):
        found = _dlpack_dtypes[dtype] = DataType.named(dtype.name)
        _numpy_dtypes[found] = dtype
    return found


def canonical(x: np.ndarray, dtype: Any = None) -> np.ndarray:
    """Store booleans as 0 and 1, for what reads the bytes: of NumPy's casts those of ml_dtypes."""
    if x.dtype.char != "?" or (dtype is not None and np.dtype(dtype).isbuiltin == 1):
        return x
    return np.asarray(x.view(np.uint8) != 0)  # without axes, NumPy makes a scalar


def address_of(x: np.ndarray) -> int:
    """Return the address of an array's first element."""
    address: int = x.__array_interface__["data"][0]
    return address


if C is not None:
    address_of = C.address


def with_plain_strides(x: np.ndarray) -> np.ndarray:
    """View with dense strides on axes of at most one element: libraries check these, too."""
    strides, _ = in_elements(x.shape, x.strides, x.itemsize)
    plain = in_bytes(relaxed(x.shape, strides), x.itemsize)
    return np.lib.stride_tricks.as_strided(x, strides=plain)
