"""CPython's C API and the C heap; the only file that uses ``ctypes.pythonapi``.

Two rules shape it. The name of a capsule must outlive the capsule, so names live in C memory that
is never freed. And a capsule reaches its destructor at reference count 0, so no function here that
a destructor could call takes it as a ``py_object``.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable
from ctypes import c_char_p, c_int, c_size_t, c_void_p, py_object
from typing import TYPE_CHECKING, Any

_api = ctypes.pythonapi
_libc = ctypes.CDLL(None) if sys.platform != "win32" else ctypes.CDLL("ucrtbase")


def _function(
    library: ctypes.CDLL, name: str, restype: Any, *argtypes: Any, gil: bool = True
) -> Callable[..., Any]:
    """Make a function object whose types no other module shares."""
    prototype = (ctypes.PYFUNCTYPE if gil else ctypes.CFUNCTYPE)(restype, *argtypes)
    return prototype((name, library))


malloc = _function(_libc, "malloc", c_void_p, c_size_t)
# Without the GIL: giving a large block back to the system takes milliseconds.
free = _function(_libc, "free", None, c_void_p, gil=False)
_madvise = getattr(_libc, "madvise", None) if sys.platform == "linux" else None
_PAGE, _HUGE_PAGES = 4096, 14  # MADV_HUGEPAGE
# From this many bytes on NumPy asks for huge pages too: 2 MB a page fault instead of 4 KB.
LARGE = 1 << 22


def allocate(size: int) -> int | None:
    """Call ``malloc``, with huge pages where they pay and the system has them."""
    address: int | None = malloc(size)
    if size >= LARGE and address and _madvise is not None:
        start = -(-address // _PAGE) * _PAGE
        # Advice: where it is not taken (an old system, another page size), nothing is lost.
        _madvise(c_void_p(start), c_size_t(address + size - start), _HUGE_PAGES)
    return address


# C's own `free` is the deleter of a tensor that is one block of malloc.
FREE = ctypes.cast(_libc.free, c_void_p).value

_capsule_new = _function(_api, "PyCapsule_New", py_object, c_void_p, c_void_p, c_void_p)
capsule_name = _function(_api, "PyCapsule_GetName", c_char_p, py_object)
_capsule_pointer = _function(_api, "PyCapsule_GetPointer", c_void_p, py_object, c_void_p)
_new_method = _function(_api, "PyDescr_NewMethod", py_object, py_object, c_void_p)
incref = _function(_api, "Py_IncRef", None, py_object)
decref = _function(_api, "Py_DecRef", None, py_object)

if TYPE_CHECKING:
    from typing_extensions import CapsuleType as CapsuleType
else:
    CapsuleType = type(_capsule_new(1, None, None))


def _immortal(name: bytes) -> int:
    address: int = malloc(len(name) + 1)
    ctypes.memmove(address, name + b"\0", len(name) + 1)
    return address


_NAMES = {
    name: _immortal(name)
    for name in (
        b"dltensor",
        b"used_dltensor",
        b"dltensor_versioned",
        b"used_dltensor_versioned",
        b"dlpack_exchange_api",
        b"arrow_schema",
        b"arrow_array",
        b"arrow_device_array",
        b"arrow_array_stream",
        b"arrow_device_array_stream",
    )
}


def new_capsule(pointer: int, name: bytes, destructor: int) -> CapsuleType:
    """Make a PyCapsule on ``pointer``; ``destructor`` is the address of a native function."""
    capsule: CapsuleType = _capsule_new(pointer, _NAMES[name], destructor)
    return capsule


def capsule_pointer(capsule: object, name: bytes) -> int:
    """Return the pointer in a capsule of that name.

    Raises
    ------
    ValueError
        Where the capsule has another name (CPython's own error).
    """
    address: int = _capsule_pointer(capsule, _NAMES[name])
    return address


def immortal_name(name: bytes) -> int:
    """Return the address of the name of capsules."""
    return _NAMES[name]


def new_method(cls: type, definition: int) -> object:
    """Make a descriptor of a class from the address of a ``PyMethodDef``, which must stay."""
    return _new_method(cls, definition)


def take_object(slot: py_object) -> object:
    """Take over the object, with its reference, that C code has put into ``slot``."""
    result = slot.value
    decref(result)
    return result


def found(names: Iterable[str]) -> dict[str, int]:
    """Return the addresses of functions of Python's, and of C's heap."""
    return {
        name: ctypes.cast(
            getattr(_libc if name in ("malloc", "free") else _api, name), c_void_p
        ).value
        or 0
        for name in names
    }


def addresses() -> dict[str, int | None]:
    """Return the addresses of the C functions that native deleters call."""
    found: dict[str, int | None] = {name.decode(): address for name, address in _NAMES.items()}
    found["free"] = FREE
    for name, before in _CALLED.items():  # `before`: as Python 3.12 calls it
        function = getattr(_api, name, None) or getattr(_api, before)
        found[name] = ctypes.cast(function, c_void_p).value
    return found


_CALLED = {
    "Py_IsInitialized": "",
    "Py_IsFinalizing": "_Py_IsFinalizing",
    "PyGILState_GetThisThreadState": "",
    "PyGILState_Ensure": "",
    "PyGILState_Release": "",
    "PyErr_Fetch": "",
    "PyErr_Restore": "",
    "Py_DecRef": "",
    "Py_AddPendingCall": "",
    "PyCapsule_IsValid": "",
    "PyCapsule_GetPointer": "",
    "PyCapsule_SetName": "",
}

# The core's own functions, called as those of the C API are: with the GIL.
claim_function = ctypes.PYFUNCTYPE(c_void_p, py_object)
drain_function = ctypes.PYFUNCTYPE(c_int, c_void_p)
