"""``dlpack.h`` 1.3 mirrored in ctypes, every size and offset asserted.

The structs are for those who bind C libraries. The core itself reads a ``DLTensor`` in one go with
:data:`DLTENSOR_FIELDS`, several times faster than through ctypes' attributes.
"""

from __future__ import annotations

import ctypes
import struct
from ctypes import (
    CFUNCTYPE,
    POINTER,
    PYFUNCTYPE,
    Structure,
    c_char_p,
    c_int,
    c_int32,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)

VERSION = (1, 3)  # DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION

FLAG_READ_ONLY = 1 << 0
FLAG_IS_COPIED = 1 << 1
FLAG_IS_SUBBYTE_TYPE_PADDED = 1 << 2


class DLPackVersion(Structure):
    _fields_ = (("major", c_uint32), ("minor", c_uint32))


class DLDevice(Structure):
    _fields_ = (("device_type", c_int32), ("device_id", c_int32))


class DLDataType(Structure):
    _fields_ = (("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16))


class DLTensor(Structure):
    # shape and strides point to int64, but stay plain addresses here: a ctypes pointer field
    # would cost an object for every read.
    _fields_ = (
        ("data", c_void_p),
        ("device", DLDevice),
        ("ndim", c_int32),
        ("dtype", DLDataType),
        ("shape", c_void_p),
        ("strides", c_void_p),
        ("byte_offset", c_uint64),
    )


class DLManagedTensor(Structure):
    """The legacy struct, of capsules named ``dltensor``."""

    _fields_ = (("dl_tensor", DLTensor), ("manager_ctx", c_void_p), ("deleter", c_void_p))


class DLManagedTensorVersioned(Structure):
    """The struct of capsules named ``dltensor_versioned``, since DLPack 1.0."""

    _fields_ = (
        ("version", DLPackVersion),
        ("manager_ctx", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("dl_tensor", DLTensor),
    )


DELETER = CFUNCTYPE(None, c_void_p)  # void (*)(DLManagedTensor[Versioned]* self); without the GIL

# The functions of the C exchange API. Those that touch Python objects keep the GIL (PYFUNCTYPE).
MANAGED_FROM_PY_OBJECT = PYFUNCTYPE(c_int, c_void_p, POINTER(c_void_p))
MANAGED_TO_PY_OBJECT = PYFUNCTYPE(c_int, c_void_p, POINTER(c_void_p))
DLTENSOR_FROM_PY_OBJECT = PYFUNCTYPE(c_int, c_void_p, POINTER(DLTensor))
CURRENT_WORK_STREAM = PYFUNCTYPE(c_int, c_int32, c_int32, POINTER(c_void_p))
SET_ERROR = CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)
MANAGED_ALLOCATOR = PYFUNCTYPE(c_int, POINTER(DLTensor), POINTER(c_void_p), c_void_p, SET_ERROR)


class DLPackExchangeAPIHeader(Structure):
    _fields_ = (("version", DLPackVersion), ("prev_api", c_void_p))


class DLPackExchangeAPI(Structure):
    _fields_ = (
        ("header", DLPackExchangeAPIHeader),
        ("managed_tensor_allocator", c_void_p),
        ("managed_tensor_from_py_object_no_sync", c_void_p),
        ("managed_tensor_to_py_object_no_sync", c_void_p),
        ("dltensor_from_py_object_no_sync", c_void_p),
        ("current_work_stream", c_void_p),
    )


# data, device_type, device_id, ndim, code, bits, lanes, shape, strides, byte_offset
DLTENSOR_FIELDS = struct.Struct("=QiiiBBHQQQ")
# major, minor, manager_ctx, deleter, flags: what precedes dl_tensor in DLManagedTensorVersioned
VERSIONED_FIELDS = struct.Struct("=IIQQQ")

_SIZES = {  # as sizeof() and offsetof() say of dlpack.h on every 64-bit platform
    "DLPackVersion": (DLPackVersion, 8),
    "DLDevice": (DLDevice, 8),
    "DLDataType": (DLDataType, 4),
    "DLTensor": (DLTensor, 48),
    "DLManagedTensor": (DLManagedTensor, 64),
    "DLManagedTensorVersioned": (DLManagedTensorVersioned, 80),
    "DLPackExchangeAPIHeader": (DLPackExchangeAPIHeader, 16),
    "DLPackExchangeAPI": (DLPackExchangeAPI, 56),
}
for _name, (_type, _size) in _SIZES.items():
    if ctypes.sizeof(_type) != _size:  # pragma: no cover - a 32-bit Python
        raise ImportError(
            f"arraybridge needs a 64-bit Python: {_name} has {ctypes.sizeof(_type)} bytes here, "
            f"{_size} in dlpack.h"
        )

DL_TENSOR_OFFSET = DLManagedTensorVersioned.dl_tensor.offset
LEGACY_CONTEXT_OFFSET = DLManagedTensor.manager_ctx.offset
LEGACY_DELETER_OFFSET = DLManagedTensor.deleter.offset
VERSIONED_CONTEXT_OFFSET = DLManagedTensorVersioned.manager_ctx.offset
VERSIONED_DELETER_OFFSET = DLManagedTensorVersioned.deleter.offset
assert (DL_TENSOR_OFFSET, LEGACY_CONTEXT_OFFSET, LEGACY_DELETER_OFFSET) == (32, 48, 56)
assert (VERSIONED_CONTEXT_OFFSET, VERSIONED_DELETER_OFFSET) == (8, 16)
assert (DLTENSOR_FIELDS.size, VERSIONED_FIELDS.size) == (48, 32)
