"""The C exchange API of Arrays: ``__dlpack_c_exchange_api__`` of each concrete class.

TVM-FFI passes Arrays to its functions by it. Arrays are exported by the C extension, as by
``__dlpack__``, and without the extension there is no table. The other functions are callbacks into
Python, which cannot leave an exception to their caller.
"""

import ctypes
from ctypes import PYFUNCTYPE, c_int, c_int32, c_uint64, c_void_p
from typing import Any

from ..conversion import imported
from ..core.records import ConversionError, TensorInfo
from ..dlpack import CPU, VERSION, DLPackError, DLPackExchangeAPI, ManagedTensor
from ..dlpack.header import (
    FLAG_IS_SUBBYTE_TYPE_PADDED,
    FLAGS_OFFSET,
    SET_ERROR,
    TENSOR_BYTES,
    TENSOR_FIELDS,
    int64s,
)
from ..dlpack.validate import check_ndim, checked_device, checked_dtype
from ..layout import c_strides
from ..native import pyapi
from ..protocols.from_object import LIBRARY as PROTOCOL
from .array import Array

_TO_OBJECT = PYFUNCTYPE(c_int, c_void_p, c_void_p)
_STREAM = PYFUNCTYPE(c_int, c_int32, c_int32, c_void_p)
_ALLOCATE = PYFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, SET_ERROR)

#: The classes that have a table.
CLASSES: set[type] = set()


def struct_of(x: Any) -> int:
    """Return the address of a new struct over an Array's memory; TypeError for anything else."""
    if not hasattr(type(x), "__arraybridge__"):
        raise TypeError(f"expected an Array, got {type(x).__name__}")
    capsule = x.__dlpack__(stream=-1, max_version=VERSION)
    address = pyapi.claim(capsule, True)
    if not address:
        raise DLPackError(f"{type(x).__name__}.__dlpack__ returned no versioned capsule")
    if c_uint64.from_address(address + FLAGS_OFFSET).value & FLAG_IS_SUBBYTE_TYPE_PADDED:
        ManagedTensor.from_struct(address, True)  # which frees it
        raise ConversionError(
            f"each {x.info.dtype} takes a byte, but TVM-FFI ignores DLPack's flags and would read "
            "them as packed: pass max_version=(1, 0) to __dlpack__"
        )
    return address


def exchange_table(cls: Any, exported_in_c: int) -> object:
    """Make the capsule of a class, whose table is never freed: C code keeps its address."""

    def to_object(address: int, out: int) -> int:
        tensor = ManagedTensor.from_struct(address, True)
        try:
            x = cls._of(imported(tensor, cls._home.name))
        except Exception:  # the library refuses it, as JAX refuses float64
            x = Array(tensor, PROTOCOL)
        pyapi.incref(x)
        c_void_p.from_address(out).value = id(x)
        return 0

    def stream(kind: int, index: int, out: int) -> int:
        try:
            handle = cls._home.devices.current_stream(checked_device(kind, index))
        except Exception:
            return -1
        # 1: the legacy default stream, which is NULL.
        c_void_p.from_address(out).value = 0 if handle in (None, 1) else handle
        return 0

    def allocate(prototype: int, out: int, context: int, set_error: Any) -> int:
        try:
            c_void_p.from_address(out).value = _allocated(cls, prototype)
        except Exception as error:
            texts = type(error).__name__, str(error) or repr(error)
            set_error(context, *(text.encode() for text in texts))
            return -1
        return 0

    functions = _ALLOCATE(allocate), _TO_OBJECT(to_object), _STREAM(stream)
    allocating, importing, of_stream = map(pyapi.address_of, functions)
    table = DLPackExchangeAPI(
        (VERSION, None), allocating, exported_in_c, importing, None, of_stream
    )
    pyapi.incref((table, functions))
    CLASSES.add(cls)
    return pyapi.new_capsule(ctypes.addressof(table), b"dlpack_exchange_api")


def _allocated(cls: Any, prototype: int) -> int:
    """Return the address of a new struct over memory allocated by the library of a class."""
    fields = TENSOR_FIELDS.unpack_from(TENSOR_BYTES.from_address(prototype))
    _, kind, index, ndim, code, bits, lanes, at, _, _ = fields
    check_ndim(ndim, at)
    device, dtype = checked_device(kind, index), checked_dtype(code, bits, lanes)
    window, unpack = int64s(ndim)
    shape = unpack(window(at)) if ndim else ()
    if device == CPU:
        return ManagedTensor.allocate(shape, dtype).to_struct()
    name = cls._home.name
    try:
        x = cls._home.devices.empty(TensorInfo(name, 0, 0, shape, c_strides(shape), dtype, device))
    except NotImplementedError:
        raise BufferError(f"{name} cannot allocate memory on {device} for a consumer") from None
    address: int = cls._home.export(x, stream=-1).to_struct()  # -1: nothing to wait for
    return address
