"""Checks of numbers in functions, where libraries wrap, truncate or accept non-numbers.

Each check gets the arguments of one function and gives them as the library is to have them. A bound
of ``clip`` that no element can pass is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from ..array import bounds
from ..array.bounds import check, check_kind, fitting, out_of_bounds, range_of, scalar_of
from ..array.operators import SCALARS
from ..named import NamedTuple
from ..protocols.foreign import check_whole
from .recovery import Arguments, Check


class Surroundings(NamedTuple):
    """The parts of a library that a check uses.

    Attributes
    ----------
    namespace : module
        Its native namespace, whose functions are complete when the check is called.
    owns : callable
        Whether a type is of its arrays.
    plain : callable
        What it is given in the place of a number of NumPy's.
    dtype : callable
        Gives the data type to take; raises for one that the result would not have.
    """

    namespace: Any
    owns: Callable[[type], bool]
    plain: Callable[[Any], Any]
    dtype: Callable[[Any], Any]


def _number(value: Any, owns: Callable[[type], bool], ndim: int | None = 0) -> Any:
    """Check a number: Python's, NumPy's, or an array of the library of so many dimensions.

    Raises
    ------
    ConversionError
        For a mask, or a unit, that would be lost.
    TypeError
        For anything but a number.
    """
    if not hasattr(value, "dtype"):
        number = scalar_of(value)
        fine = number.__class__ in SCALARS
    elif isinstance(value, numpy.ndarray | numpy.generic) or owns(type(value)):
        check_whole(value)
        number = value[()] if isinstance(value, numpy.ndarray) and not value.ndim else value
        fine = ndim is None or value.ndim == ndim
        if isinstance(value.dtype, numpy.dtype):
            fine = fine and bounds.is_numeric(value.dtype)
    else:
        fine = False
    if not fine:
        raise TypeError(
            "expected a number (Python's, NumPy's or an array of no dimensions), got "
            f"{value!r}: of other arrays make one with broadcast_to or asarray"
        )
    return number


def _filled(value: Any, dtype: Any, namespace: Any, owns: Callable[[type], bool]) -> Any:
    """Check a scalar, or an array of no dimensions, to fill an array with."""
    if value.__class__ not in SCALARS:
        value = _number(value, owns)
        if dtype is not None and isinstance(value, numpy.generic):
            value = scalar_of(value)  # held to the dtype as Python's numbers are
    if value.__class__ not in SCALARS:
        if dtype is not None and hasattr(value, "dtype"):
            check_kind(value, dtype)
    elif dtype is None:
        if value.__class__ is int and not -(2**31) <= value < 2**31:
            default = namespace.__array_namespace_info__().default_dtypes()["integral"]
            if range_of(default).most >= 2**32:  # else JAX says itself how to have wider ones
                check(value, default)
    elif value.__class__ is not int or range_of(dtype).kind:  # 0 and 1 are taken for bools
        return fitting(value, dtype)
    return value


def _full(library: Surroundings) -> Check:
    namespace, owns = library.namespace, library.owns

    def before(
        shape: Any, fill_value: Any, dtype: Any = None, *args: Any, **kwargs: Any
    ) -> Arguments:
        dtype = None if dtype is None else library.dtype(dtype)
        fill_value = _filled(fill_value, dtype, namespace, owns)
        if args:
            return (shape, fill_value, dtype, *args), kwargs
        return (shape, fill_value), {"dtype": dtype, **kwargs}

    return before


def _full_like(library: Surroundings) -> Check:
    namespace, owns = library.namespace, library.owns

    def before(
        x: Any, /, fill_value: Any, dtype: Any = None, *args: Any, **kwargs: Any
    ) -> Arguments:
        dtype = None if dtype is None else library.dtype(dtype)
        fill_value = _filled(fill_value, x.dtype if dtype is None else dtype, namespace, owns)
        if args:
            return (x, fill_value, dtype, *args), kwargs
        return (x, fill_value), {"dtype": dtype, **kwargs}

    return before


def _where(library: Surroundings) -> Check:
    plain = library.plain

    def before(condition: Any, /, *choice: Any, **kwargs: Any) -> Arguments | None:
        if len(choice) != 2:
            return None
        first, second = choice
        if first.__class__ is second.__class__ and not isinstance(first, numpy.generic):
            return None
        choice = tuple([plain(x) if isinstance(x, numpy.generic) else x for x in choice])
        for value, x in (choice, choice[::-1]):
            if value.__class__ is int and not 0 <= value <= 127 and hasattr(x, "dtype"):
                check(value, x.dtype)
        return (condition, *choice), kwargs

    return before


def _clip(library: Surroundings) -> Check:
    namespace = library.namespace

    def bound(value: int, x: Any, open_side: int) -> int | None:
        where = bounds.side(value, x.dtype)
        if where and where != open_side:
            raise out_of_bounds(value, x.dtype)
        return None if where else value

    def of_dtype(value: Any, x: Any, open_side: int) -> Any:  # the one of x, which stays
        if value is None or not hasattr(x, "dtype"):
            return value
        if not hasattr(value, "dtype") or isinstance(value, numpy.generic):
            value = scalar_of(value)
            if value.__class__ is int:
                return bound(value, x, open_side)
            if value.__class__ in SCALARS and range_of(x.dtype).kind < 2:
                fitting(value, x.dtype)
            return value
        check_kind(value, x.dtype)
        if value.dtype == x.dtype:
            return value
        (_, low, high), (kind, least, most) = map(range_of, (value.dtype, x.dtype))
        if kind == 1 and (low < least or most < high):  # what the dtype does not hold is its end
            value = namespace.clip(
                value, least if low < least else None, most if most < high else None
            )
        return namespace.astype(value, x.dtype)

    def before(
        x: Any, /, min: Any = None, max: Any = None, *args: Any, **kwargs: Any
    ) -> Arguments | None:
        low, high = min, max
        if min.__class__ is not int:
            low = of_dtype(min, x, -1)
        elif not 0 <= min <= 127:
            low = bound(min, x, -1)
        if max.__class__ is not int:
            high = of_dtype(max, x, 1)
        elif not 0 <= max <= 127:
            high = bound(max, x, 1)
        return None if low is min and high is max else ((x, low, high, *args), kwargs)

    return before


def _end(value: Any, dtype: Any, library: Surroundings, ndim: int | None = 0) -> Any:
    """Check an end of an interval; a Python number where the result has a dtype."""
    if value is None or value.__class__ in SCALARS:
        return value
    value = _number(value, library.owns, ndim)
    if isinstance(value, numpy.generic):
        return library.plain(value) if dtype is None else scalar_of(value)
    return value


def _whole(x: Any) -> Any:
    return int(x) if x.__class__ is float and x.is_integer() else x


def _ends(start: float, stop: float, step: float) -> list[int]:
    """Return the first and last number of ``arange`` as integers; none if not finite."""
    if not all(map(math.isfinite, (start, stop, step))):
        return []
    count = -int((start - stop) // step)  # rounded up
    return [int(start), int(start + (count - 1) * step)] if count > 0 else []


def _arange(library: Surroundings) -> Check:
    def before(
        start: Any, /, stop: Any = None, step: Any = 1, *args: Any, dtype: Any = None, **kwargs: Any
    ) -> Arguments:
        dtype = None if dtype is None else library.dtype(dtype)
        start, stop, step = (_end(x, dtype, library) for x in (start, stop, step))
        if dtype is not None and step and range_of(dtype).kind == 1:
            start, stop, step = map(_whole, (start, stop, step))  # JAX cuts a step of -2.0
            given = (0, start, step) if stop is None else (start, stop, step)
            if {int, float}.issuperset(map(type, given)):
                for value in _ends(*given):
                    check(value, dtype)
        return (start, stop, step, *args), {"dtype": dtype, **kwargs}

    return before


def _linspace(library: Surroundings) -> Check:
    def before(
        start: Any, stop: Any, /, num: Any, *args: Any, dtype: Any = None, **kwargs: Any
    ) -> Arguments:
        dtype = None if dtype is None else library.dtype(dtype)
        # None: between arrays, too
        start, stop = (_end(x, dtype, library, ndim=None) for x in (start, stop))
        for value in start, stop:
            if dtype is not None and value.__class__ is int:
                check(value, dtype)
        return (start, stop, num, *args), {"dtype": dtype, **kwargs}

    return before


def _isin(library: Surroundings) -> Check:
    namespace, plain = library.namespace, library.plain

    def before(x1: Any, x2: Any, /, *args: Any, **kwargs: Any) -> Arguments | None:
        if isinstance(x1, numpy.generic) or isinstance(x2, numpy.generic):
            x1, x2 = plain(x1), plain(x2)
        for value, x in (x1, x2), (x2, x1):
            if value.__class__ is int and hasattr(x, "dtype") and bounds.side(value, x.dtype):
                none = namespace.empty((0,), dtype=x.dtype, device=x.device)
                x1, x2 = (x1, none) if value is x2 else (0, none)
        return (x1, x2, *args), kwargs

    return before


def _searchsorted(library: Surroundings) -> Check:
    plain = library.plain

    def before(x1: Any, x2: Any, /, *, side: Any = "left", **kwargs: Any) -> Arguments | None:
        if x1.__class__ is x2.__class__:
            return None
        x2 = plain(x2) if isinstance(x2, numpy.generic) else x2
        if x2.__class__ is int and (beyond := bounds.side(x2, x1.dtype)):
            _, least, most = range_of(x1.dtype)  # before all elements, or after
            x2, side = (least, "left") if beyond < 0 else (most, "right")
        return (x1, x2), {"side": side, **kwargs}

    return before


def _of_integers(name: str) -> Callable[[Surroundings], Check]:
    """Make the check for functions whose second argument is a count."""

    def make(library: Surroundings) -> Check:
        def before(*args: Any, **kwargs: Any) -> None:
            value = args[1] if len(args) > 1 else kwargs.get(name)
            own_array = library.owns(type(value))  # of which the library itself says what is wrong
            if value.__class__ is not int and not own_array and bounds.is_fractional(value):
                raise TypeError(f"{name} is of integers, got {value!r}")

        return before

    return make


CHECKS: dict[str, Callable[[Surroundings], Check]] = {
    "full": _full,
    "full_like": _full_like,
    "where": _where,
    "clip": _clip,
    "arange": _arange,
    "linspace": _linspace,
    "isin": _isin,
    "searchsorted": _searchsorted,
    "repeat": _of_integers("repeats"),
    "roll": _of_integers("shift"),
    "tril": _of_integers("k"),
    "triu": _of_integers("k"),
}
