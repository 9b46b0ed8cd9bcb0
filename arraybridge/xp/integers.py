"""Large Python integers beside arrays that hold them: uint64, floating-point numbers.

Some libraries take every Python integer for an int64 (JAX, with x64 off, for an int32) and raise
OverflowError. In the standard a scalar is of the array's dtype, whatever its size ("Mixing arrays
with Python scalars").
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .standard import functions_of

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
    """

    as_scalar: Callable[[int, Any], Any]
    least: int = -(2**63)
    most: int = 2**63 - 1

    def holds(self, x: Any) -> bool:
        """Whether ``x`` is an integer that the library may have refused for its size."""
        return x.__class__ is int and not self.least <= x <= self.most


def accept_wide_integers(face: Any, wide: Wide) -> None:
    """Have the functions of a native face take large integers.

    Nothing is asked beforehand: integers that the library takes cost no more than a ``try``.

    Parameters
    ----------
    face : module
        The library's native face, its corrections applied; changed in place.
    wide : Wide
    """
    for room, _, name, template in functions_of(face):
        if any(_is_of_scalars(str(kind)) for kind in template.__annotations__.values()):
            setattr(room, name, _accepting(getattr(room, name), wide))


def _is_of_scalars(annotation: str) -> bool:
    kinds = annotation.split(" | ")
    beside_array = kinds[0] == "Array" and not {"int", "float", "complex"}.isdisjoint(kinds)
    return beside_array or kinds == ["complex"]


def _accepting(own: Any, wide: Wide) -> Any:
    @functools.wraps(own)
    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            return own(*args, **kwargs)
        except _REFUSALS:
            dtype = next(_dtypes(args, kwargs), None)
            if dtype is None or not any(wide.holds(x) for x in (*args, *kwargs.values())):
                raise

        def fitting(x: Any) -> Any:
            return wide.as_scalar(x, dtype) if wide.holds(x) else x

        return own(*map(fitting, args), **{name: fitting(x) for name, x in kwargs.items()})

    # Whatever else the library's own offers: `jax.numpy.add` is a ufunc with methods.
    vars(function).update({n: getattr(own, n) for n in dir(own) if not n.startswith("_")})
    return function


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
