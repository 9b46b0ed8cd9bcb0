"""``dlpack.h`` 1.3 mirrored in ctypes.

The structs are for those who bind C libraries. The core reads and writes a whole struct at once
with :mod:`struct`, several times faster than through ctypes attributes.
"""

import ctypes
import struct
from collections.abc import Callable
from ctypes import POINTER, PYFUNCTYPE, Structure, c_int32, c_void_p
from functools import cache

VERSION = (1, 3)  # DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION

FLAG_READ_ONLY = 1 << 0
FLAG_IS_COPIED = 1 << 1
FLAG_IS_SUBBYTE_TYPE_PADDED = 1 << 2


class DLPackVersion(Structure):
    """The version of a struct or a table."""

    _fields_ = (("major", ctypes.c_uint32), ("minor", ctypes.c_uint32))


class DLDevice(Structure):
    """A device: a ``DLDeviceType`` and an index."""

    _fields_ = (("device_type", c_int32), ("device_id", c_int32))


class DLDataType(Structure):
    """A data type: type code, bits per lane, and number of lanes."""

    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class DLTensor(Structure):
    """A description of memory, without its owner."""

    # shape and strides point to int64, but are plain addresses here: reading a ctypes pointer field
    # would create an object.
    _fields_ = (
        ("data", c_void_p),
        ("device", DLDevice),
        ("ndim", c_int32),
        ("dtype", DLDataType),
        ("shape", c_void_p),
        ("strides", c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


class DLManagedTensor(Structure):
    """The struct of legacy capsules, named ``dltensor``."""

    _fields_ = (("dl_tensor", DLTensor), ("manager_ctx", c_void_p), ("deleter", c_void_p))


class DLManagedTensorVersioned(Structure):
    """The struct of capsules named ``dltensor_versioned``, since DLPack 1.0."""

    _fields_ = (
        ("version", DLPackVersion),
        ("manager_ctx", c_void_p),
        ("deleter", c_void_p),
        ("flags", ctypes.c_uint64),
        ("dl_tensor", DLTensor),
    )


# The functions of the C exchange API. Those that touch Python objects keep the GIL (PYFUNCTYPE).
MANAGED_FROM_PY_OBJECT = PYFUNCTYPE(ctypes.c_int, c_void_p, POINTER(c_void_p))
MANAGED_TO_PY_OBJECT = PYFUNCTYPE(ctypes.c_int, c_void_p, POINTER(ctypes.py_object))
#: ``void (*)(void* error_ctx, const char* kind, const char* message)``
SET_ERROR = PYFUNCTYPE(None, c_void_p, ctypes.c_char_p, ctypes.c_char_p)
MANAGED_TENSOR_ALLOCATOR = PYFUNCTYPE(
    ctypes.c_int, POINTER(DLTensor), POINTER(c_void_p), c_void_p, SET_ERROR
)
CURRENT_WORK_STREAM = PYFUNCTYPE(ctypes.c_int, c_int32, c_int32, POINTER(c_void_p))


class DLPackExchangeAPIHeader(Structure):
    """The common beginning of the exchange tables of all versions."""

    _fields_ = (("version", DLPackVersion), ("prev_api", c_void_p))


class DLPackExchangeAPI(Structure):
    """The C exchange functions of an array type."""

    _fields_ = (
        ("header", DLPackExchangeAPIHeader),
        ("managed_tensor_allocator", c_void_p),
        ("managed_tensor_from_py_object_no_sync", c_void_p),
        ("managed_tensor_to_py_object_no_sync", c_void_p),
        ("dltensor_from_py_object_no_sync", c_void_p),
        ("current_work_stream", c_void_p),
    )


# The same structs as formats of `struct`, which reads all fields at once.
# data, device_type, device_id, ndim, code, bits, lanes, shape, strides, byte_offset
_TENSOR = "QiiiBBHQQQ"
TENSOR_FIELDS = struct.Struct(f"={_TENSOR}")
LEGACY_FIELDS = struct.Struct(f"={_TENSOR}QQ")  # dl_tensor, manager_ctx, deleter
VERSIONED_HEAD = struct.Struct("=II")  # major, minor: all that is read of another major version
VERSIONED_BODY = struct.Struct(f"=Q{_TENSOR}")  # flags, dl_tensor
VERSIONED_FIELDS = struct.Struct(f"=IIQQQ{_TENSOR}")  # major, minor, manager_ctx, deleter, body
FLAGS_OFFSET = DLManagedTensorVersioned.flags.offset

for _type, _fields in (
    (DLTensor, TENSOR_FIELDS),
    (DLManagedTensor, LEGACY_FIELDS),
    (DLManagedTensorVersioned, VERSIONED_FIELDS),
):
    if ctypes.sizeof(_type) != _fields.size:  # pragma: no cover - a 32-bit Python
        raise ImportError(
            f"arraybridge needs a 64-bit Python: {_type.__name__} has {ctypes.sizeof(_type)} bytes "
            f"here, {_fields.size} in dlpack.h"
        )

# Buffers over memory, for `unpack_from`. Making one reads nothing.
TENSOR_BYTES = ctypes.c_char * TENSOR_FIELDS.size
LEGACY_BYTES = ctypes.c_char * LEGACY_FIELDS.size
VERSIONED_BYTES = ctypes.c_char * VERSIONED_FIELDS.size


@cache
def int64s(count: int) -> tuple[Callable[[int], object], Callable[..., tuple[int, ...]]]:
    """Return functions that map and unpack an array of ``count`` int64 (a shape or strides)."""
    return (ctypes.c_char * (8 * count)).from_address, struct.Struct(f"={count}q").unpack_from
