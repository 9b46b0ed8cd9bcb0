"""The array API standard over Arrays of array-api-strict."""

from __future__ import annotations

from typing import Any

import array_api_strict

from ...array.native_array import NativeArray
from ...xp.integers import writing_wide_integers
from ...xp.namespace import open_namespace
from ...xp.native_namespace import corrected_operators
from . import indexing
from .exchange import LIBRARY
from .namespace import TABLE, WIDE, native


class StrictArray(NativeArray):
    """The standard's array object over array-api-strict; see :class:`arraybridge.Array`."""

    __slots__ = ()

    _home = LIBRARY
    _native_namespace = native
    _native_type = type(array_api_strict.zeros(()))
    _errors = (OverflowError, ValueError)
    _corrected = corrected_operators(TABLE, native)
    _get = staticmethod(indexing.get)
    _slices = False
    _set = staticmethod(writing_wide_integers(indexing.set, WIDE))

    @staticmethod
    def _probe(native: Any, device: Any) -> Any:
        """Make a small array on a device, if that has every dtype.

        ``devices()`` promises that any array can be brought to what it lists; the devices
        "no_float64" and "no_x64", which array-api-strict lists as well, refuse some. Named, they
        are taken.
        """
        try:
            for dtype in (native.uint64, native.complex128):
                array = native.empty((1,), dtype=dtype, device=device)
        except ValueError as error:
            raise TypeError(str(error)) from error
        return array


open_namespace(StrictArray, __doc__)
