"""The numbers that a dtype holds, and checks of scalars and arrays against it.

The Array API standard 2025.12 ("Mixing arrays with Python scalars" and "Indexing") leaves other
numbers to the libraries, some of which silently wrap or truncate. Here every library raises:
OverflowError for an integer out of range, TypeError for a number of a higher kind.

Plain functions and a module-level dictionary, which torch.compile can trace.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy

_BOOL, _INTEGRAL, _REAL, _COMPLEX = range(4)
BY_KIND: tuple[Any, ...] = (bool, int, float, complex)
_INTEGER = re.compile(r"(u?)int(\d+)$")


class Range(NamedTuple):
    """The numbers that a dtype holds."""

    kind: int  # bool, integral, real or complex; each kind includes those before
    least: int = 0  # as `most`, unused for floating-point numbers
    most: int = 0


_ranges: dict[Any, Range] = {}
_of_torch: dict[Any, Range] = {}  # separate: torch.compile cannot compare others


def range_of(dtype: Any) -> Range:
    """Return the range of a dtype of any library."""
    dtype = getattr(dtype, "_np_dtype", dtype)  # array-api-strict's warn when compared
    ranges = _of_torch if hasattr(dtype, "is_floating_point") else _ranges
    known = ranges.get(dtype)
    if known is None:
        name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
        # A `DType` is stored by its native type: torch.compile cannot compare it with others.
        known = ranges[getattr(dtype, "native", dtype)] = _named(name)
    return known


def _named(name: str) -> Range:
    name = name.rpartition(".")[2]  # torch.int8
    integer = _INTEGER.search("int64" if name == "int" else name)
    if integer:
        bits = int(integer[2])
        least, most = (0, 2**bits) if integer[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1))
        return Range(_INTEGRAL, least, most - 1)
    if name.startswith("bool"):
        return Range(_BOOL, 0, 1)
    return Range(_COMPLEX if "complex" in name else _REAL)


def side(value: int, dtype: Any) -> int:
    """Return -1 for an integer below the range of an integer dtype, 1 if above, else 0."""
    if 0 <= value <= 127 and not isinstance(dtype, type) and getattr(dtype, "itemsize", 1) > 1:
        return 0  # the quick path; the itemsize of a class, such as numpy.int64, is not a number
    kind, least, most = range_of(dtype)
    if kind != _INTEGRAL or least <= value <= most:
        return 0
    return -1 if value < least else 1


def check(value: int, dtype: Any) -> None:
    """Raise OverflowError for a ``value`` that an integer dtype does not hold."""
    if side(value, dtype):
        raise out_of_bounds(value, dtype)


def check_narrow(obj: Any, dtype: Any) -> None:
    """Check the integers in nested sequences: the narrow dtypes of ml_dtypes wrap them."""
    kind, _, most = range_of(dtype)
    if kind != _INTEGRAL or most >= 127:
        return
    if isinstance(obj, list | tuple | range):
        for each in obj:
            check_narrow(each, dtype)
    elif obj.__class__ is int:
        check(obj, dtype)


def fitting(value: Any, dtype: Any) -> Any:
    """Convert a Python scalar or an array for writing to an array of ``dtype``.

    OverflowError for an integer out of range; TypeError for a value of a higher kind, such as a
    float for integers or a complex number for floats.
    """
    kind, least, most = range_of(dtype)
    cls = value.__class__  # comparisons, as torch.compile fails on a dictionary of types
    if cls is int:
        own = _INTEGRAL
    elif cls is float:
        own = _REAL
    elif cls is bool:
        own = _BOOL
    elif cls is complex:
        own = _COMPLEX
    else:
        check_kind(value, dtype)
        return value
    if own > kind:
        raise _does_not_fit(repr(value), dtype)
    if kind != _INTEGRAL:
        return float(value) if own < kind and own == _BOOL else value
    if not least <= value <= most:
        raise out_of_bounds(value, dtype)
    return int(value)


def check_kind(value: Any, dtype: Any) -> None:
    """Raise TypeError if an array has elements of a higher kind than ``dtype``."""
    if range_of(value.dtype).kind > range_of(dtype).kind:
        raise _does_not_fit(f"an array of {value.dtype}", dtype)


def is_fractional(x: Any) -> bool:
    """Whether a number, an array or a nested sequence contains floating-point numbers."""
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        if isinstance(x, list | tuple):
            return any(each.__class__ is not int and is_fractional(each) for each in x)
        return isinstance(x, float | complex)
    if getattr(dtype, "kind", "") in ("b", "i", "u"):  # the quick path for NumPy's dtypes
        return False
    return range_of(dtype).kind > _INTEGRAL


def is_numeric(dtype: Any) -> bool:
    """Whether a NumPy dtype is numeric or bool, builtin or registered as ml_dtypes' are."""
    return dtype.kind in "biufc" or dtype.isbuiltin == 2


def scalar_of(value: Any) -> Any:
    """Convert a NumPy scalar or a subclass of a Python number; return anything else unchanged."""
    if isinstance(value, numpy.generic):
        if not is_numeric(value.dtype):
            return value
        number = value.item()
        if number.__class__ in BY_KIND:
            return number
        return complex(number) if value.dtype.kind == "c" else float(number)  # a long double
    return next((kind(value) for kind in BY_KIND if isinstance(value, kind)), value)


def check_number(value: Any) -> None:
    """Raise TypeError for a NumPy scalar that is not a number, such as text or a time."""
    if not is_numeric(value.dtype):
        raise TypeError(f"expected an Array or a number, got {value!r}")


def out_of_bounds(value: int, dtype: Any) -> OverflowError:
    """Make the error for an integer that a dtype does not hold."""
    name = getattr(dtype, "__name__", dtype)  # for a scalar type, such as numpy.uint8
    return OverflowError(
        f"Python integer {value} out of bounds for {name}: cast the array to a wider dtype with "
        "astype"
    )


def _does_not_fit(what: str, dtype: Any) -> TypeError:
    return TypeError(
        f"{what} does not fit in an array of {dtype}: cast the value to that dtype, or the array "
        "to one that holds the value, with astype"
    )
