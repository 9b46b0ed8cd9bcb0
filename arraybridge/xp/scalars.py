"""Numbers in functions: an error where libraries wrap, cut or take what is none.

Comparisons know the answer without the dtype, as NumPy's do; a bound of ``clip`` that no element
can pass is none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy

from ..array import bounds
from ..array.bounds import check, check_kind, fitting, out_of_bounds, range_of, scalar_of
from ..array.native import check_whole
from ..array.operators import BEYOND, SCALARS
from ..dispatch.library import library_named
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


def heed_bounds(library: str, face: Any) -> None:
    """Have the functions of a native face that make arrays of scalars heed what dtypes hold.

    Parameters
    ----------
    library : str
    face : module
        The library's native face; changed in place.
    """
    owns = library_named(library).owns
    for room, path, name, _ in functions_of(face):
        make = _MAKERS.get(path)
        if make is not None:
            own = getattr(room, name)
            setattr(room, name, functools.update_wrapper(make(own, face, owns), own))


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
        number = value
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


def _full(own: Any, face: Any, owns: Any) -> Callable[..., Any]:
    def function(shape, fill_value, dtype=None, *args, **kwargs):
        fill_value = _filled(fill_value, dtype, face, owns)
        if args:
            return own(shape, fill_value, dtype, *args, **kwargs)
        return own(shape, fill_value, dtype=dtype, **kwargs)

    return function


def _full_like(own: Any, face: Any, owns: Any) -> Callable[..., Any]:
    def function(x, /, fill_value, dtype=None, *args, **kwargs):
        fill_value = _filled(fill_value, x.dtype if dtype is None else dtype, face, owns)
        if args:
            return own(x, fill_value, dtype, *args, **kwargs)
        return own(x, fill_value, dtype=dtype, **kwargs)

    return function


def _where(own: Any, face: Any, owns: Any) -> Callable[..., Any]:
    def function(condition, /, *choice, **kwargs):
        if len(choice) == 2:
            for value, x in (choice, choice[::-1]):
                if value.__class__ is int and not 0 <= value <= 127 and hasattr(x, "dtype"):
                    check(value, x.dtype)
        return own(condition, *choice, **kwargs)

    return function


def _clip(own: Any, face: Any, owns: Any) -> Callable[..., Any]:
    def bound(value, x, open_side):
        where = bounds.side(value, x.dtype)
        if where and where != open_side:
            raise out_of_bounds(value, x.dtype)
        return None if where else value

    def of_kind(value, x):  # some libraries cut a fraction among integers, others promote
        if value is None or not hasattr(x, "dtype"):
            return
        if hasattr(value, "dtype"):
            check_kind(value, x.dtype)
        elif isinstance(value, float | complex) and range_of(x.dtype).kind < 2:
            fitting(scalar_of(value), x.dtype)

    def function(x, /, min=None, max=None, *args, **kwargs):
        if min.__class__ is not int:
            of_kind(min, x)
        elif not 0 <= min <= 127:
            min = bound(min, x, -1)
        if max.__class__ is not int:
            of_kind(max, x)
        elif not 0 <= max <= 127:
            max = bound(max, x, 1)
        return own(x, min, max, *args, **kwargs)

    return function


def _arange(own: Any, face: Any, owns: Any) -> Callable[..., Any]:
    def function(start, /, stop=None, step=1, *args, dtype=None, **kwargs):
        for value in start, stop, step:
            if value is not None and value.__class__ not in SCALARS:
                _number(value, owns)
        if dtype is not None and {int}.issuperset(map(type, (start, stop or 0, step))) and step:
            values = range(start) if stop is None else range(start, stop, step)
            for value in values[:1], values[-1:]:
                if value:
                    check(value[0], dtype)
        return own(start, stop, step, *args, dtype=dtype, **kwargs)

    return function


def _linspace(own: Any, face: Any, owns: Any) -> Callable[..., Any]:
    def function(start, stop, /, num, *args, dtype=None, **kwargs):
        for value in start, stop:
            if value.__class__ not in SCALARS:
                _number(value, owns, ndim=None)  # libraries have it between arrays, too
            elif dtype is not None and value.__class__ is int:
                check(value, dtype)
        return own(start, stop, num, *args, dtype=dtype, **kwargs)

    return function


def _isin(own: Any, face: Any, owns: Any) -> Callable[..., Any]:
    def function(x1, x2, /, *args, invert=False, **kwargs):
        for value, x in (x1, x2), (x2, x1):
            if value.__class__ is int and hasattr(x, "dtype") and bounds.side(value, x.dtype):
                shape = x.shape if value is x2 else ()
                return face.full(shape, invert, dtype=face.bool, device=x.device)
        return own(x1, x2, *args, invert=invert, **kwargs)

    return function


def _searchsorted(own: Any, face: Any, owns: Any) -> Callable[..., Any]:
    def function(x1, x2, /, *, side="left", **kwargs):
        if x2.__class__ is int and (beyond := bounds.side(x2, x1.dtype)):
            _, least, most = range_of(x1.dtype)  # before all elements, or after
            x2, side = (least, "left") if beyond < 0 else (most, "right")
        return own(x1, x2, side=side, **kwargs)

    return function


def _of_integers(name: str) -> Callable[[Any, Any, Any], Callable[..., Any]]:
    """For functions whose second argument counts something."""

    def make(own: Any, face: Any, owns: Any) -> Callable[..., Any]:
        def function(*args, **kwargs):
            value = args[1] if len(args) > 1 else kwargs.get(name)
            own_array = owns(type(value))  # of which the library itself says what is wrong
            if value.__class__ is not int and not own_array and bounds.is_fractional(value):
                raise TypeError(f"{name} is of integers, got {value!r}")
            return own(*args, **kwargs)

        return function

    return make


_MAKERS: dict[str, Callable[[Any, Any, Any], Callable[..., Any]]] = {
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
