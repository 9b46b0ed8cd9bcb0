"""Numbers in functions: an error where libraries wrap, cut or take what is none.

Comparisons know the answer without the dtype, as NumPy's do; a bound of ``clip`` that no element
can pass is none.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy

from ..array import bounds
from ..array.bounds import check, check_kind, fitting, out_of_bounds, range_of, scalar_of
from ..array.operators import BEYOND, SCALARS
from ..dispatch.registry import library_named
from ..protocols.foreign import check_whole
from .standard import functions_of

_MIRRORED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}


def beyond(name: str, x1: Any, x2: Any, face: Any) -> Any:
    """What a function of an array and an integer gives that the array's dtype does not hold.

    Parameters
    ----------
    name : str
        The function in the standard.
    x1, x2 : array or scalar
    face : module
        The library's native face.

    Returns
    -------
    array or None
        None: there is nothing that the library would get wrong.

    Raises
    ------
    OverflowError
        Of all but comparisons.
    """
    value, x = (x2, x1) if x2.__class__ is int else (x1, x2)
    where = bounds.side(value, x.dtype) if hasattr(x, "dtype") else 0
    if not where or name == "divide":  # which makes no integers of integers
        return None
    answers = BEYOND.get(name if x is x1 else _MIRRORED.get(name, name))
    if answers is None:
        raise out_of_bounds(value, x.dtype)
    return face.full_like(x, answers[where > 0], dtype=face.bool)


def heed_bounds(library: str, face: Any, plain: Callable[[Any], Any]) -> None:
    """Have the functions of a native face that make arrays of scalars heed what dtypes hold.

    Parameters
    ----------
    library : str
    face : module
        The library's native face; changed in place.
    plain : callable
        What the library is given in the place of a number of NumPy's.
    """
    owns = library_named(library).owns
    for room, path, name, _ in functions_of(face):
        make = _MAKERS.get(path)
        if make is not None:
            own = getattr(room, name)
            setattr(room, name, functools.update_wrapper(make(own, face, owns, plain), own))


def _number(value: Any, owns: Any, ndim: int | None = 0) -> Any:
    """A number: Python's, NumPy's, or an array of the library, of so many dimensions.

    Raises
    ------
    ConversionError
        For a mask, or a unit, that would be lost.
    TypeError
        For what is no number.
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


def _filled(value: Any, dtype: Any, face: Any, owns: Any) -> Any:
    """A scalar, or an array of no dimensions, to fill an array with."""
    if value.__class__ not in SCALARS:
        value = _number(value, owns)
        if dtype is not None and isinstance(value, numpy.generic):
            value = scalar_of(value)  # held to the dtype as Python's numbers are
    if value.__class__ not in SCALARS:
        if dtype is not None and hasattr(value, "dtype"):
            check_kind(value, dtype)
    elif dtype is None:
        if value.__class__ is int and not -(2**31) <= value < 2**31:
            default = face.__array_namespace_info__().default_dtypes()["integral"]
            if range_of(default).most >= 2**32:  # else JAX says itself how to have wider ones
                check(value, default)
    elif value.__class__ is not int or range_of(dtype).kind:  # 0 and 1 are taken for bools
        return fitting(value, dtype)
    return value


def _full(own: Any, face: Any, owns: Any, plain: Any) -> Callable[..., Any]:
    def function(shape, fill_value, dtype=None, *args, **kwargs):
        fill_value = _filled(fill_value, dtype, face, owns)
        if args:
            return own(shape, fill_value, dtype, *args, **kwargs)
        return own(shape, fill_value, dtype=dtype, **kwargs)

    return function


def _full_like(own: Any, face: Any, owns: Any, plain: Any) -> Callable[..., Any]:
    def function(x, /, fill_value, dtype=None, *args, **kwargs):
        fill_value = _filled(fill_value, x.dtype if dtype is None else dtype, face, owns)
        if args:
            return own(x, fill_value, dtype, *args, **kwargs)
        return own(x, fill_value, dtype=dtype, **kwargs)

    return function


def _where(own: Any, face: Any, owns: Any, plain: Any) -> Callable[..., Any]:
    def function(condition, /, *choice, **kwargs):
        if len(choice) == 2:
            choice = tuple([plain(x) if isinstance(x, numpy.generic) else x for x in choice])
            for value, x in (choice, choice[::-1]):
                if value.__class__ is int and not 0 <= value <= 127 and hasattr(x, "dtype"):
                    check(value, x.dtype)
        return own(condition, *choice, **kwargs)

    return function


def _clip(own: Any, face: Any, owns: Any, plain: Any) -> Callable[..., Any]:
    def bound(value, x, open_side):
        where = bounds.side(value, x.dtype)
        if where and where != open_side:
            raise out_of_bounds(value, x.dtype)
        return None if where else value

    def of_dtype(value, x, open_side):  # the one of x, which stays
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
            value = own(value, least if low < least else None, most if most < high else None)
        return face.astype(value, x.dtype)

    def function(x, /, min=None, max=None, *args, **kwargs):
        if min.__class__ is not int:
            min = of_dtype(min, x, -1)
        elif not 0 <= min <= 127:
            min = bound(min, x, -1)
        if max.__class__ is not int:
            max = of_dtype(max, x, 1)
        elif not 0 <= max <= 127:
            max = bound(max, x, 1)
        return own(x, min, max, *args, **kwargs)

    return function


def _end(value: Any, dtype: Any, owns: Any, plain: Any, ndim: int | None = 0) -> Any:
    """A number that an interval begins or ends with; Python's, where the result has a dtype."""
    if value is None or value.__class__ in SCALARS:
        return value
    value = _number(value, owns, ndim)
    if isinstance(value, numpy.generic):
        return plain(value) if dtype is None else scalar_of(value)
    return value


def _whole(x: Any) -> Any:
    return int(x) if x.__class__ is float and x.is_integer() else x


def _ends(start: float, stop: float, step: float) -> list[int]:
    """The first and the last of ``arange`` as integers; none if they are not finite."""
    if not all(map(math.isfinite, (start, stop, step))):
        return []
    count = -int((start - stop) // step)  # rounded up
    return [int(start), int(start + (count - 1) * step)] if count > 0 else []


def _arange(own: Any, face: Any, owns: Any, plain: Any) -> Callable[..., Any]:
    number = functools.partial(_end, owns=owns, plain=plain)

    def function(start, /, stop=None, step=1, *args, dtype=None, **kwargs):
        start, stop, step = (number(x, dtype) for x in (start, stop, step))
        if dtype is not None and step and range_of(dtype).kind == 1:
            start, stop, step = map(_whole, (start, stop, step))  # JAX cuts a step of -2.0
            given = (0, start, step) if stop is None else (start, stop, step)
            if {int, float}.issuperset(map(type, given)):
                for value in _ends(*given):
                    check(value, dtype)
        return own(start, stop, step, *args, dtype=dtype, **kwargs)

    return function


def _linspace(own: Any, face: Any, owns: Any, plain: Any) -> Callable[..., Any]:
    number = functools.partial(_end, owns=owns, plain=plain, ndim=None)  # between arrays, too

    def function(start, stop, /, num, *args, dtype=None, **kwargs):
        start, stop = number(start, dtype), number(stop, dtype)
        for value in start, stop:
            if dtype is not None and value.__class__ is int:
                check(value, dtype)
        return own(start, stop, num, *args, dtype=dtype, **kwargs)

    return function


def _isin(own: Any, face: Any, owns: Any, plain: Any) -> Callable[..., Any]:
    def function(x1, x2, /, *args, invert=False, **kwargs):
        if isinstance(x1, numpy.generic) or isinstance(x2, numpy.generic):
            x1, x2 = plain(x1), plain(x2)
        for value, x in (x1, x2), (x2, x1):
            if value.__class__ is int and hasattr(x, "dtype") and bounds.side(value, x.dtype):
                shape = x.shape if value is x2 else ()
                return face.full(shape, invert, dtype=face.bool, device=x.device)
        return own(x1, x2, *args, invert=invert, **kwargs)

    return function


def _searchsorted(own: Any, face: Any, owns: Any, plain: Any) -> Callable[..., Any]:
    def function(x1, x2, /, *, side="left", **kwargs):
        x2 = plain(x2) if isinstance(x2, numpy.generic) else x2
        if x2.__class__ is int and (beyond := bounds.side(x2, x1.dtype)):
            _, least, most = range_of(x1.dtype)  # before all elements, or after
            x2, side = (least, "left") if beyond < 0 else (most, "right")
        return own(x1, x2, side=side, **kwargs)

    return function


def _of_integers(name: str) -> Callable[[Any, Any, Any, Any], Callable[..., Any]]:
    """For functions whose second argument counts something."""

    def make(own: Any, face: Any, owns: Any, plain: Any) -> Callable[..., Any]:
        def function(*args, **kwargs):
            value = args[1] if len(args) > 1 else kwargs.get(name)
            own_array = owns(type(value))  # of which the library itself says what is wrong
            if value.__class__ is not int and not own_array and bounds.is_fractional(value):
                raise TypeError(f"{name} is of integers, got {value!r}")
            return own(*args, **kwargs)

        return function

    return make


_MAKERS: dict[str, Callable[[Any, Any, Any, Any], Callable[..., Any]]] = {
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
