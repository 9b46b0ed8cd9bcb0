"""Python integers beside arrays: large ones where the dtype holds them, an error where not.

In the standard a scalar is of the array's dtype, whatever its size ("Mixing arrays with Python
scalars"). Some libraries take every Python integer for an int64 (JAX, with x64 off, for an int32)
and raise OverflowError; and some wrap what an integer dtype does not hold: 300 beside uint8 is 44.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy

from ..array.bounds import scalar_of
from ..array.operators import SCALARS
from .scalars import beyond
from .standard import functions_of

_NUMBERS = (int, float, complex, numpy.generic)
_REFUSALS = (OverflowError, TypeError, ValueError)  # the others: of NumPy's arrays of objects


class Wide(NamedTuple):
    """How a library is given integers that it does not take.

    Attributes
    ----------
    as_scalar : callable
        ``as_scalar(value, dtype)``: what it takes in an integer's place, beside arrays of a dtype.
        OverflowError if the dtype does not hold it.
    least, most : int
        The integers that it takes in any case. (Of a range torch.compile would know nothing.)
    plain : callable
        What it is given in the place of a number of NumPy's, or of a subclass of Python's.
    """

    as_scalar: Callable[[int, Any], Any]
    least: int = -(2**63)
    most: int = 2**63 - 1
    plain: Callable[[Any], Any] = scalar_of

    def holds(self, x: Any) -> bool:
        """Whether ``x`` is an integer that the library may have refused for its size."""
        return x.__class__ is int and not self.least <= x <= self.most


def accept_integers(face: Any, wide: Wide) -> None:
    """Have the functions of a native face take large integers, and refuse those out of range.

    Integers that the library takes cost no more than a comparison and a ``try``.

    Parameters
    ----------
    face : module
        The library's native face, its corrections applied; changed in place.
    wide : Wide
    """
    for room, _, name, template in functions_of(face):
        if any(_is_of_scalars(str(kind)) for kind in template.__annotations__.values()):
            own = getattr(room, name)
            two = list(template.__annotations__) == ["x1", "x2", "return"]
            made = _of_two(own, name, wide, face) if two else _accepting(own, wide)
            functools.update_wrapper(made, own)
            # Whatever else the library's own offers: `jax.numpy.add` is a ufunc with methods.
            vars(made).update({n: getattr(own, n) for n in dir(own) if not n.startswith("_")})
            setattr(room, name, made)


def _is_of_scalars(annotation: str) -> bool:
    kinds = annotation.split(" | ")
    beside_array = kinds[0] == "Array" and not {"int", "float", "complex"}.isdisjoint(kinds)
    return beside_array or kinds == ["complex"]


def _accepting(own: Any, wide: Wide) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            return own(*args, **kwargs)
        except _REFUSALS:
            if not _has_wide(wide, args, kwargs):
                raise
        return _widely(own, wide, args, kwargs)

    return function


def _of_two(own: Any, name: str, wide: Wide, face: Any) -> Any:
    """A function of two operands, which also heeds what the dtype of one holds of the other."""

    def function(x1: Any, x2: Any, /, *args: Any, **kwargs: Any) -> Any:
        if x1.__class__ is not x2.__class__:  # not two arrays
            if x2.__class__ not in SCALARS and isinstance(x2, _NUMBERS):
                x2 = wide.plain(x2)
            elif x1.__class__ not in SCALARS and isinstance(x1, _NUMBERS):
                x1 = wide.plain(x1)
            if (x2.__class__ is int and not 0 <= x2 <= 127) or (
                x1.__class__ is int and not 0 <= x1 <= 127
            ):
                settled = beyond(name, x1, x2, face)
                if settled is not None:
                    return settled
        try:
            return own(x1, x2, *args, **kwargs)
        except _REFUSALS:
            if not _has_wide(wide, (x1, x2), kwargs):
                raise
        return _widely(own, wide, (x1, x2, *args), kwargs)

    return function


def _has_wide(wide: Wide, args: Any, kwargs: Any) -> bool:
    return any(wide.holds(x) for x in (*args, *kwargs.values())) and any(_dtypes(args, kwargs))


def _widely(own: Any, wide: Wide, args: Any, kwargs: Any) -> Any:
    dtype = next(_dtypes(args, kwargs))

    def fitting(x: Any) -> Any:
        return wide.as_scalar(x, dtype) if wide.holds(x) else x

    return own(*map(fitting, args), **{name: fitting(x) for name, x in kwargs.items()})


def writing_wide_integers(write: Any, wide: Wide) -> Any:
    """``write(native, key, value)`` that takes large integers, too."""

    def function(native: Any, key: Any, value: Any) -> Any:
        try:
            return write(native, key, value)
        except _REFUSALS:
            if not wide.holds(value):
                raise
        return write(native, key, wide.as_scalar(value, native.dtype))

    return function


def _dtypes(args: Any, kwargs: Any) -> Iterator[Any]:
    """Those that count for the scalars: what is asked for, or else the last array's."""
    if kwargs.get("dtype") is not None:
        yield kwargs["dtype"]
    for x in (*reversed(args), *kwargs.values()):
        if hasattr(x, "dtype"):
            yield x.dtype
