"""The array API standard over Arrays of CuPy."""

from __future__ import annotations

import math
from typing import Any

import cupy
from array_api_compat import cupy as xp

from ...array.library_array import LibraryArray
from ...core.registry import own_library
from ...xp import corrections
from ...xp.build import NativeNamespace, make_native_namespace, open_namespace, operators_of
from ...xp.corrections import Correction
from ...xp.special_values import numpy_like, remainder

# Deviations of CuPy from the standard, from reading the source of CuPy 14.2 (not measured). Only
# the certain ones are here.

# Not eager: reading values would wait for the device.
MEANS = numpy_like(xp)


def _signed(result: Any, fill_value: Any) -> Any:
    """Give an array of zeros the sign of the fill value."""
    zero = isinstance(fill_value, float) and fill_value == 0
    if zero and math.copysign(1, fill_value) < 0 and result.dtype.kind == "f":
        xp.negative(result, out=result)
    return result


def _full(shape: Any, fill_value: Any, **kwargs: Any) -> Any:
    return _signed(xp.full(shape, fill_value, **kwargs), fill_value)


def _full_like(x: Any, /, fill_value: Any, **kwargs: Any) -> Any:
    return _signed(xp.full_like(x, fill_value, **kwargs), fill_value)


# fmt: off
CORRECTIONS: tuple[Correction, ...] = (
    corrections.diff(xp),
    corrections.matrix_rank(xp, xp.linalg, xp.int64),
    corrections.finfo(xp.finfo, "https://github.com/numpy/numpy/issues/26523, whose finfo it is"),
    *corrections.tangents(MEANS),
    *(
        Correction(
            name, function, f"{name}: the array is filled with fill_value, -0.0 included",
            "https://github.com/chainer/chainer/pull/1435, which made it a memset",
        )
        for name, function in (("full", _full), ("full_like", _full_like))
    ),
    Correction(
        "remainder", remainder(MEANS, infinities=True),
        "remainder: by an infinity it is the dividend or the divisor; zeros are the divisor's",
        "https://github.com/cupy/cupy/issues/8807",
    ),
)
# fmt: on


# The namespace of native arrays.

TABLE = NativeNamespace("cupy", "array_api_compat.cupy", CORRECTIONS)
native = make_native_namespace(TABLE)


class CuPyArray(LibraryArray):
    """The standard's array object over arrays of CuPy; see :class:`arraybridge.Array`."""

    __slots__ = ()

    _home = own_library("cupy")
    _native_namespace = native
    _native_type = cupy.ndarray
    _operators = operators_of(native)
    _takes_stream = True


open_namespace(CuPyArray, __doc__)
