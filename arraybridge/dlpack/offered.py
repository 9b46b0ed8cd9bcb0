"""Offer the C exchange API for a class of arrays: its table, and a ``__dlpack__`` in native code.

Neither is ever freed, as the header demands: C code keeps the address of the table, for the exact
type that it was found at.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping
from ctypes import c_char_p, c_int, c_void_p, sizeof
from typing import Any

from arraybridge.machine_code.offered import CODE, OBJECTS, PYTHON, Table
from arraybridge.machine_code.tabled import keep

from ..named import NamedTuple
from . import deleters, pyapi
from .errors import DLPackError
from .header import VERSION, DLPackExchangeAPI

__all__ = ["CALLS", "Offer", "address_of", "capsule_of", "offer", "table_of"]

#: The Python functions behind the table; each takes one argument.
CALLS = {
    "managed": "an array; the address of a new struct",
    "adopt": "the address of a struct, whose owner it becomes; an array",
    "stream": "device type, and device id << 32; a stream's handle",
    "allocate": "the address of four words: prototype, out, context, set_error; None",
}

_DOCUMENTED = (
    b"__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
)
_FASTCALL, _KEYWORDS = 0x0080, 0x0002


class _Method(ctypes.Structure):
    """``PyMethodDef``."""

    _fields_ = (("name", c_char_p), ("function", c_void_p), ("flags", c_int), ("doc", c_char_p))


class Offer(NamedTuple):
    """What a class of arrays offers.

    Attributes
    ----------
    capsule : object
        ``__dlpack_c_exchange_api__``.
    method : object
        ``__dlpack__``: a descriptor of the class.
    table : Table
        What the functions call and compare with; its words may be changed.
    """

    capsule: object
    method: object
    table: Table


def offer(
    cls: type,
    calls: Mapping[str, Callable[[Any], Any]],
    dlpack: Callable[..., object],
    words: Mapping[str, Any],
    functions: Mapping[str, int],
) -> Offer:
    """Make a table for the instances of a class.

    Parameters
    ----------
    cls : type
    calls : mapping
        The functions of `CALLS`.
    dlpack : callable
        ``__dlpack__``, where the quick way is not taken.
    words : mapping
        More of the words of `arraybridge.machine_code.offered.Table`; objects as such.
    functions : mapping
        Addresses for the exchange table in the place of our functions.

    Raises
    ------
    ImportError
        Where there is no stored code for this machine, and no llvmlite.
    """
    made = deleters.functions()
    address = pyapi.malloc(sizeof(Table) + sizeof(DLPackExchangeAPI))
    if not address:
        raise MemoryError("no memory for a table of functions")
    ctypes.memset(address, 0, sizeof(Table) + sizeof(DLPackExchangeAPI))
    table = Table.from_address(address)
    given = {
        **{f"arg_{name}": name for name in ("stream", "max_version", "dl_device", "copy")},
        **{f"call_{name}": calls[name] for name in CALLS},
        "is_deleted": "is_deleted",
        "none": None,
        "false": False,
        "tuple": tuple,
        "exact": cls,
        "call_dlpack": dlpack,
        **words,
    }
    for name, value in given.items():
        if name in OBJECTS:
            value = _interned(value)
            keep(value)
            value = id(value)
        setattr(table, name, value)
    for name, value in pyapi.found(PYTHON).items():
        setattr(table, name, value)
    table.release_versioned = made.release_versioned
    table.destroy_versioned = made.destroy_versioned
    table.dltensor_versioned = pyapi.immortal_name(b"dltensor_versioned")
    code = CODE.loaded(address)
    table.build, table.quick = code["build"], code["quick"]
    api = DLPackExchangeAPI.from_address(address + sizeof(Table))
    api.header.version.major, api.header.version.minor = VERSION
    for field, name in _FIELDS.items():
        setattr(api, field, functions.get(field) or code[name])
    doc = _DOCUMENTED + (dlpack.__doc__ or "").encode()
    method = _Method(b"__dlpack__", code["dlpack"], _FASTCALL | _KEYWORDS, doc)
    keep(method)
    capsule = pyapi.new_capsule(address + sizeof(Table), b"dlpack_exchange_api", 0)
    return Offer(capsule, pyapi.new_method(cls, ctypes.addressof(method)), table)


def table_of(capsule: object) -> Table:
    """Return the words of the functions of a capsule that `offer` made."""
    address = pyapi.capsule_pointer(capsule, b"dlpack_exchange_api")
    return Table.from_address(address - sizeof(Table))


def address_of(result: object) -> int:
    """Return the struct in a versioned capsule, which is consumed."""
    address = deleters.functions().claim_versioned(result)
    if not address:
        raise DLPackError(f"expected a versioned capsule, got {result!r}")
    return address


def capsule_of(address: int) -> object:
    """Make a versioned capsule, which owns a struct."""
    return pyapi.new_capsule(address, b"dltensor_versioned", deleters.functions().destroy_versioned)


def _interned(value: Any) -> Any:
    return sys.intern(value) if type(value) is str else value


_FIELDS = {
    "managed_tensor_allocator": "allocate",
    "managed_tensor_from_py_object_no_sync": "managed",
    "managed_tensor_to_py_object_no_sync": "adopt",
    "current_work_stream": "stream",
}
