"""CPython's C API through ctypes; this package alone uses ``ctypes.pythonapi``.

A capsule's name must outlive it, so names are in memory that is never freed.
"""

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from ctypes import PYFUNCTYPE, c_char_p, c_int, c_void_p, py_object
from functools import cache, partial
from operator import call
from typing import TYPE_CHECKING, Any

from . import C


def _function(name: str, restype: Any, *argtypes: Any) -> Callable[..., Any]:
    """Make a function object whose types no other module shares; the call keeps the GIL."""
    return PYFUNCTYPE(restype, *argtypes)((name, ctypes.pythonapi))


_capsule_new = _function("PyCapsule_New", py_object, c_void_p, c_void_p, c_void_p)
_capsule_pointer = _function("PyCapsule_GetPointer", c_void_p, py_object, c_void_p)
_capsule_rename = _function("PyCapsule_SetName", c_int, py_object, c_void_p)
_set_context = _function("PyCapsule_SetContext", c_int, py_object, c_void_p)
capsule_destructor = _function("PyCapsule_GetDestructor", c_void_p, py_object)
_add_pending_call = _function("Py_AddPendingCall", c_int, c_void_p, c_void_p, py_object)
capsule_name = _function("PyCapsule_GetName", c_char_p, py_object)
incref = _function("Py_IncRef", None, py_object)
_decref = _function("Py_DecRef", None, py_object)

if TYPE_CHECKING:
    from typing_extensions import CapsuleType as CapsuleType
else:
    CapsuleType = type(_capsule_new(1, None, None))


HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()

#: The names of DLPack's capsules, by whether they are versioned.
DLPACK_NAMES = b"dltensor", b"dltensor_versioned"


@cache
def _immortal(name: bytes) -> int:
    memory = ctypes.create_string_buffer(name)
    incref(memory)
    return ctypes.addressof(memory)


def new_capsule(pointer: int, name: bytes, destructor: int = 0, context: int = 0) -> CapsuleType:
    """Make a PyCapsule on ``pointer``; ``destructor`` is the address of a native function."""
    capsule: CapsuleType = _capsule_new(pointer, _immortal(name), destructor)
    if context:
        _set_context(capsule, context)
    return capsule


def capsule_pointer(capsule: object, name: bytes | None) -> int:
    """Return the pointer in a capsule of that name; CPython's ValueError if it has another."""
    address: int = _capsule_pointer(capsule, name and _immortal(name))
    return address


_CLAIM = _capsule_pointer, _capsule_rename
_CLAIMED = [(_immortal(name), _immortal(b"used_" + name)) for name in DLPACK_NAMES]


def claim(capsule: object, versioned: bool) -> int:
    """Consume a DLPack capsule: return its pointer and rename it; 0 if it has another name.

    The name is checked and changed in one step, so that only one thread gets the pointer: C code
    calls both functions, and CPython only switches threads between bytecodes. (No garbage is
    collected in between: the second call reuses the first one's tuple of arguments.)
    """
    try:
        pointer, _ = map(call, _CLAIM, (capsule, capsule), _CLAIMED[versioned])
    except ValueError:
        return 0
    return pointer  # type: ignore[no-any-return]


if not HAS_GIL:
    _claim, _claiming = claim, threading.Lock()

    def claim(capsule: object, versioned: bool) -> int:
        """Consume a capsule, one thread at a time."""
        with _claiming:
            return _claim(capsule, versioned)

    def _renew() -> None:
        global _claiming
        _claiming = threading.Lock()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_renew)


if C is not None:
    claim = C.claim
    if hasattr(os, "register_at_fork"):  # the parent's threads were about to release it
        os.register_at_fork(after_in_child=C.drain)


def address_of(function: Any) -> int:
    """Return the address of a function of CPython's C API, by name, or of a ctypes function."""
    if isinstance(function, str):
        function = getattr(ctypes.pythonapi, function)
    return ctypes.cast(function, c_void_p).value or 0


def soon(function: Callable[[], object]) -> Callable[[object], object]:
    """Return a callback that lets the main thread call a function, and runs no Python code itself.

    It takes one argument, which is ignored: it is for callbacks of weak references, which may run
    under a library's lock.
    """

    def pending(_: object) -> int:
        function()
        return 0

    callback = PYFUNCTYPE(c_int, c_void_p)(pending)
    incref(callback)
    return partial(_add_pending_call, address_of(callback), None)


def take_object(slot: py_object) -> object:
    """Take over the object, with its reference, that C code has put into ``slot``."""
    result = slot.value
    _decref(result)
    return result
