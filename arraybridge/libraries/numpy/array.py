"""The array API standard over Arrays of NumPy."""

from __future__ import annotations

from typing import Any

import numpy

from ...array.native_array import NativeArray
from ...array.operators import OPERATORS
from ...core.registry import own_library
from ...protocols.ndarrays import PLAIN
from ...xp.namespace import defer_namespace
from . import indexing

# A ufunc is called directly, not by way of the operator; ** has shortcuts of its own.
_UFUNCS = {
    op.function: ufunc
    for op in OPERATORS
    if isinstance(ufunc := getattr(numpy, op.function, None), numpy.ufunc) and op.name != "pow"
}


def _floor_divide(x1: Any, x2: Any) -> Any:
    """Divide as the namespace does: the one operator that `corrections` has an entry for."""
    return NumPyArray._native_namespace.floor_divide(x1, x2)


_CORRECTED = {"floor_divide": _floor_divide}


class NumPyArray(NativeArray):
    """The standard's array object over arrays of NumPy; see :class:`arraybridge.Array`."""

    __slots__ = ()

    _home = own_library("numpy")
    _native_type = numpy.ndarray
    _errors = (ValueError,)  # of in-place operators on read-only memory
    _operators = _UFUNCS
    _corrected = _CORRECTED
    _narrows = True
    _set = staticmethod(indexing.set)

    @staticmethod
    def _normal(result: Any) -> Any:
        return result if result.__class__ is numpy.ndarray else numpy.asarray(result)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def _numpy_view(self) -> numpy.ndarray | None:
        x = self._native
        if x.__class__ is numpy.ndarray and x.dtype in PLAIN and x.flags.num >= 0:
            itemsize = x.itemsize
            if all(step >= 0 and not step % itemsize for step in x.strides):
                return x
        return None  # `Library.describe` looks at such strides, and at what warns of writing

    @staticmethod
    def _scalar(other: Any) -> Any:
        return other  # whose dtype takes part, as it does in NumPy


defer_namespace(NumPyArray)
