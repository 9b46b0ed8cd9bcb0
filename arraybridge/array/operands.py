"""What operators and assignments take beside an Array; methods of `native_array.NativeArray`."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy

from ..dispatch.registry import library_of_type
from ..protocols.foreign import array_like, has_no_memory, lost, no_array
from .bounds import check_kind, check_number, scalar_of
from .carrier import Array

_UNWRAPPED = (list, tuple, range)  # what asarray takes besides arrays and buffers


def mixed(one: str, another: str) -> TypeError:
    """Make the error for arrays of two libraries, or of one and of something, in one operation."""
    return TypeError(
        f"arrays of {one} and {another} in one operation: bring them into one library with "
        "`xp, *arrays = arraybridge.unify(...)`"
    )


def operand(self: Any, other: Any) -> Any:
    """Convert an operand that is neither an Array of this class nor a Python scalar."""
    if isinstance(other, Array):
        return self._same(other)
    if isinstance(other, numpy.generic):
        check_number(other)
        return self._scalar(other)
    if isinstance(other, bool | int | float | complex):  # a subclass of them
        return scalar_of(other)
    if isinstance(other, numpy.ndarray) or self._home.owns(type(other)):
        if problem := lost(other):  # which asarray would refuse
            raise TypeError(problem)
        raise TypeError(
            f"an Array of {self._home.name} and a native {type(other).__name__} in one "
            f"operation: wrap it first, {self._namespace.__name__}.asarray(...)"
        )
    library = library_of_type(type(other))
    if library is not None:
        raise mixed(self._home.name, library.name)
    equal: Any = type(other).__eq__
    if hasattr(type(other), "__dlpack__") and equal is object.__eq__:
        raise mixed(self._home.name, type(other).__qualname__)  # == would be False
    if has_no_memory(type(other)) and not hasattr(type(other), "data"):  # xarray answers itself
        raise no_array(other)
    return NotImplemented


def incomparable(self: Any, other: Any) -> Any:
    """Return NotImplemented, which Python makes False, except for numbers in another form."""
    if isinstance(other, _UNWRAPPED) or array_like(other):
        raise TypeError(
            f"an Array and a {type(other).__name__} in one comparison: wrap it first, "
            f"{self._namespace.__name__}.asarray(...)"
        )
    if isinstance(other, Number):  # Fraction, Decimal
        raise TypeError(f"an Array and a {type(other).__name__} in one comparison: pass float(...)")
    if any(hasattr(type(other), name) for name in ("toarray", "todense")):  # sparse
        raise no_array(other)
    return NotImplemented


def assigned(self: Any, value: Any) -> Any:
    """Convert a value that is written to a native array or a Python scalar."""
    if isinstance(value, Array):
        return self._same(value)
    asarray = self._namespace.asarray
    if value.__class__ is numpy.ndarray and not value.ndim:
        value = value[()]
    if isinstance(value, numpy.generic):
        check_number(value)
        return scalar_of(value)
    if isinstance(value, bool | int | float | complex):
        return scalar_of(value)
    if isinstance(value, numpy.ndarray):
        plain = value.__class__ is numpy.ndarray and value.dtype.kind in "biufc"
        if plain and self._home.owns(numpy.ndarray):
            return value
        return asarray(value)._native  # which refuses masks, units, text, objects
    if self._home.owns(type(value)):
        return value
    library = library_of_type(type(value))
    if library is not None:
        raise mixed(self._home.name, library.name)
    if not isinstance(value, list | tuple):
        return asarray(value)._native
    try:
        fitting = asarray(value, dtype=self.dtype)._native  # refuses integers out of range
    except (ValueError, OverflowError):  # NaN, too
        check_kind(asarray(value)._native, self.dtype)
        raise
    check_kind(asarray(value)._native, self.dtype)
    return fitting
