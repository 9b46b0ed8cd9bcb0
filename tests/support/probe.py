"""What a library's own importer makes of a tensor, whatever arraybridge's record says of it."""

from __future__ import annotations

import numpy as np

from arraybridge.dlpack import CPU, DataType, Device, ManagedTensor

from .processes import ROOT, run_python

__all__ = ["DTYPES", "aligned", "described", "ends_the_process", "every_byte"]

#: The data types of DLPack 1.3 that take whole bytes, by name.
DTYPES = tuple(
    "bool int8 int16 int32 int64 int128 uint8 uint16 uint32 uint64 uint128 float16 bfloat16 "
    "float32 float64 float128 complex32 complex64 complex128 handle64 float8_e3m4 float8_e4m3 "
    "float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu "
    "float32x2".split()
)


def named(name: str) -> DataType:
    """The data type of a name of `DTYPES`."""
    return DataType(2, 32, 2) if name == "float32x2" else DataType.named(name)


def aligned(array: np.ndarray, offset: int = 0) -> np.ndarray:
    """A C-contiguous copy that starts `offset` bytes past a 64-byte boundary."""
    raw = np.zeros(array.nbytes + 128, np.uint8)
    start = -raw.ctypes.data % 64 + offset
    result = np.ndarray(array.shape, array.dtype, raw.data, start)
    result[...] = array
    return result


def described(
    array: np.ndarray, *, dtype: str | None = None, readonly: bool = False, device: Device = CPU
) -> ManagedTensor:
    """A tensor on the memory of an array, with some fields as a test likes."""
    kind = named(dtype or array.dtype.name)
    return ManagedTensor.adopt(
        array.ctypes.data,
        array.shape,
        kind,
        owner=array,
        device=device,
        strides=tuple(stride // array.itemsize for stride in array.strides),
        readonly=readonly,
    )


def every_byte(dtype: str, length: int = 3) -> ManagedTensor:
    """An aligned tensor of one axis, its bytes 0 and 1."""
    kind = named(dtype)
    memory = aligned(np.arange(length * kind.itemsize, dtype=np.uint8) % 2)
    return ManagedTensor.adopt(memory.ctypes.data, (length,), kind, owner=memory)


def ends_the_process(code: str) -> bool:
    """Whether a signal ends a Python process that runs `code`; an exception is an error here."""
    done = run_python("-W", "ignore", "-c", code, cwd=ROOT)
    assert done.returncode <= 0, done.stderr[-2000:]
    return done.returncode < 0
