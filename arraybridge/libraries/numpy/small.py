"""Small arrays of NumPy, served by the builtin of ``machine_code.front``.

What the builtin must know of NumPy, all of it part of NumPy's stable binary interface: the struct
``PyArrayObject_fields``, the beginning of ``PyArray_Descr``, the numbers of the dtypes, and where
two functions stand in the table of the C API (NumPy's ``numpy_api.py``, since version 1.7).
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import c_void_p
from typing import TYPE_CHECKING

import numpy as np

from ...protocols.numpy_dtypes import CHARS

if TYPE_CHECKING:
    from ...machine_code.front import Front

__all__ = ["learn", "serve"]

_FUNCTIONS = {"PyArray_NewCopy": 85, "PyArray_NewLikeArray": 277}
_ARRAY = 2  # the table's own entry for the class

#: Bytes from which a kernel may be quicker than NumPy's own copy, and up to which it keeps the GIL.
LEAST, HELD = 2048, 16384

_front: Front | None = None


def _table() -> ctypes.Array[c_void_p] | None:
    """Return the table of NumPy's C API; None where it is not what it is taken for."""
    from numpy._core._multiarray_umath import _ARRAY_API

    from ...machine_code.front import content

    table = (c_void_p * (max(_FUNCTIONS.values()) + 1)).from_address(content(_ARRAY_API))
    return table if table[_ARRAY] == id(np.ndarray) else None


def serve(front: Front, most: int) -> None:
    """Let the builtin serve arrays of up to `most` items, where there is one."""
    global _front
    table = _table() if front.serves else None
    if table is None:
        return
    sizes = bytearray(max(np.dtype(char).num for char in CHARS) + 1)
    for char in CHARS:
        dtype = np.dtype(char)
        sizes[dtype.num] = dtype.itemsize
    functions = {name: table[place] or 0 for name, place in _FUNCTIONS.items()}
    _front = front
    # The builtin reads its table of lines under the GIL; without one, NumPy copies all of them.
    locked = getattr(sys, "_is_gil_enabled", lambda: True)()
    least = LEAST if locked else 1 << 62
    front.serve(np.ndarray, functions, bytes(sizes), most=most, least=least, held=HELD)


def learn(x: np.ndarray) -> None:
    """Choose what copies the layout of a small array from now on."""
    if _front is not None and x.nbytes >= LEAST:
        from ...kernels.cpu.small import prepared  # here, as only copies need kernels

        layout = x.shape, x.strides, x.itemsize
        _front.learn(*layout, *prepared(*layout))
