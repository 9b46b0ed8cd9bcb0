"""The array API standard over Arrays of CuPy."""

from __future__ import annotations

import cupy

from ...array.native_array import NativeArray
from ...xp.namespace import open_namespace
from ...xp.native_namespace import corrected_operators
from .exchange import LIBRARY
from .namespace import TABLE, native


class CuPyArray(NativeArray):
    """The standard's array object over arrays of CuPy; see :class:`arraybridge.Array`."""

    __slots__ = ()

    _home = LIBRARY
    _native_namespace = native
    _native_type = cupy.ndarray
    _corrected = corrected_operators(TABLE, native)
    _takes_stream = True


open_namespace(CuPyArray, __doc__)
