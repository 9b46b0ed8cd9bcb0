"""Callbacks that return with an exception set, as functions of the C exchange API must.

ctypes prints an exception that a callback raises, and clears one that its Python code sets. After
that code, only the returned object is freed. So a failing callback returns a -1 that holds a NumPy
array whose memory handler (NEP 49, ``PyDataMem_SetHandler``) frees by calling
``PyErr_SetObject(context, address)``: the array's address is the exception's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from ctypes import PYFUNCTYPE, Structure, addressof, c_char, c_size_t, c_uint8, c_void_p, py_object
from functools import cache, wraps
from typing import Any

import numpy as np

from . import pyapi


class _Handler(Structure):
    """``PyDataMem_Handler``."""

    _fields_ = (
        ("name", c_char * 127),
        ("version", c_uint8),
        *((name, c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")),
    )


class _Failed(int):
    """A -1 that sets an exception when it is freed."""

    held: tuple[BaseException, np.ndarray]


_here = threading.local()


_malloc = PYFUNCTYPE(c_void_p, c_void_p, c_size_t)(lambda context, nbytes: id(_here.error))


@cache
def _set_handler() -> tuple[Callable[[object], object], object]:
    """Return NumPy's function and the handler for it, neither of which is ever freed."""
    from numpy._core._multiarray_umath import _ARRAY_API

    table = pyapi.capsule_pointer(_ARRAY_API, None)
    set_handler = PYFUNCTYPE(py_object, py_object)(
        c_void_p.from_address(table + 8 * 304).value or 0
    )
    free = pyapi.address_of("PyErr_SetObject")
    handler = _Handler(
        b"arraybridge", 1, id(BaseException), pyapi.address_of(_malloc), None, None, free
    )
    pyapi.incref(handler)
    return set_handler, pyapi.new_capsule(addressof(handler), b"mem_handler")


def _failed(error: BaseException) -> int:
    set_handler, handler = _set_handler()
    _here.error = error
    before = set_handler(handler)
    try:
        array = np.empty(1, np.uint8)
    finally:
        set_handler(before)
        del _here.error
    failed = _Failed(-1)
    failed.held = (error, array)  # a tuple frees its last item first
    return failed


def callback(prototype: Any, function: Callable[..., object]) -> Any:
    """Make a C function of a ``PYFUNCTYPE`` with a ``c_int``: 0, or -1 with an exception set."""

    @wraps(function)
    def called(*arguments: object) -> int:
        try:
            function(*arguments)
        except BaseException as error:
            return _failed(error)
        return 0

    return prototype(called)
