"""Python integers beyond int64 beside arrays that hold them: uint64, floating-point numbers.

Some libraries take every Python integer for an int64 and raise OverflowError. In the standard a
scalar is of the array's dtype, whatever its size ("Mixing arrays with Python scalars").
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from .standard import functions_of

_INT64 = range(-(2**63), 2**63)
_REFUSALS = (OverflowError, TypeError, ValueError)  # the others: of NumPy's arrays of objects


def accept_wide_integers(face: Any, as_scalar: Callable[[int, Any], Any]) -> None:
    """Have the functions of a native face take integers beyond int64.

    Nothing is asked beforehand: integers that the library takes cost no more than a ``try``.

    Parameters
    ----------
    face : module
        The library's native face, its corrections applied; changed in place.
    as_scalar : callable
        ``as_scalar(value, dtype)``: what the library takes in an integer's place, beside arrays of
        a numeric dtype. OverflowError if the dtype does not hold it.
    """
    for room, _, name, template in functions_of(face):
        if any(_is_of_scalars(str(kind)) for kind in template.__annotations__.values()):
            setattr(room, name, _accepting(getattr(room, name), as_scalar))


def _is_of_scalars(annotation: str) -> bool:
    kinds = annotation.split(" | ")
    beside_array = kinds[0] == "Array" and not {"int", "float", "complex"}.isdisjoint(kinds)
    return beside_array or kinds == ["complex"]


def _accepting(own: Any, as_scalar: Callable[[int, Any], Any]) -> Any:
    @functools.wraps(own)
    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            return own(*args, **kwargs)
        except _REFUSALS:
            dtype = next(_dtypes(args, kwargs), None)
            if dtype is None or not any(_is_wide(x) for x in (*args, *kwargs.values())):
                raise

        def fitting(x: Any) -> Any:
            return as_scalar(x, dtype) if _is_wide(x) else x

        return own(*map(fitting, args), **{name: fitting(x) for name, x in kwargs.items()})

    # Whatever else the library's own offers: `jax.numpy.add` is a ufunc with methods.
    vars(function).update({n: getattr(own, n) for n in dir(own) if not n.startswith("_")})
    return function


def writing_wide_integers(write: Any, as_scalar: Callable[[int, Any], Any]) -> Any:
    """``write(native, key, value)`` that takes integers beyond int64, too."""

    def function(native: Any, key: Any, value: Any) -> Any:
        try:
            return write(native, key, value)
        except _REFUSALS:
            if not _is_wide(value):
                raise
        return write(native, key, as_scalar(value, native.dtype))

    return function


def _is_wide(x: Any) -> bool:
    return x.__class__ is int and x not in _INT64


def _dtypes(args: Any, kwargs: Any) -> Iterator[Any]:
    """Those that count for the scalars: what is asked for, or else the last array's."""
    if kwargs.get("dtype") is not None:
        yield kwargs["dtype"]
    for x in (*reversed(args), *kwargs.values()):
        if hasattr(x, "dtype"):
            yield x.dtype
