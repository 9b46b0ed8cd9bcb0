"""The array API standard over Arrays of CuPy."""

from __future__ import annotations

import cupy
from array_api_compat import cupy as xp

from ...array.library_array import LibraryArray
from ...core.registry import own_library
from ...xp.build import make_native_namespace, open_namespace, operators_of
from ...xp.corrections import finfo

# CuPy's finfo is NumPy's, whose limits are no Python floats: numpy/numpy#26523.
CORRECTIONS = {"finfo": finfo(xp.finfo)}
native = make_native_namespace("cupy", "array_api_compat.cupy", CORRECTIONS)


class CuPyArray(LibraryArray):
    """The standard's array object over arrays of CuPy; see :class:`arraybridge.Array`."""

    __slots__ = ()

    _home = own_library("cupy")
    _native_namespace = native
    _native_type = cupy.ndarray
    _operators = operators_of(native)
    _takes_stream = True


open_namespace(CuPyArray, __doc__)
