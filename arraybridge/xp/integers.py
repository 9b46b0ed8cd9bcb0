"""Python integers beside arrays: accepted where the dtype holds them, an error elsewhere.

In the standard a scalar is of the array's dtype, whatever its size ("Mixing arrays with Python
scalars"). Some libraries take every Python integer for an int64 (JAX, with x64 off, for an int32)
and raise OverflowError; and some wrap what an integer dtype does not hold: 300 beside uint8 is 44.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy

from ..array import bounds
from ..array.bounds import out_of_bounds, scalar_of
from ..array.operators import BEYOND, SCALARS
from ..named import NamedTuple
from .recovery import Operands, Refused

_NUMBERS = (int, float, complex, numpy.generic)
_MIRRORED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}


class Wide(NamedTuple):
    """A handler that converts Python integers that a library does not accept to its own scalars.

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

    # ValueError and TypeError: of NumPy's arrays of objects.
    errors: tuple[type[Exception], ...] = (OverflowError, TypeError, ValueError)
    attempt: str = "integers as scalars of the array's dtype"

    def serves(self, path: str, template: Any) -> bool:
        """Whether a function takes scalars beside arrays or makes arrays from them."""
        return any(_is_of_scalars(str(kind)) for kind in template.__annotations__.values())

    def retry(self, refused: Refused) -> Any:
        """Call again with the library's own scalars, if an integer was too large."""
        function, _, args, kwargs = refused
        dtype = next(_dtypes(args, kwargs), None)
        if dtype is None or not any(self.holds(x) for x in (*args, *kwargs.values())):
            return NotImplemented

        def fitting(x: Any) -> Any:
            return self.as_scalar(x, dtype) if self.holds(x) else x

        return function.own(*map(fitting, args), **{name: fitting(x) for name, x in kwargs.items()})

    def holds(self, x: Any) -> bool:
        """Whether ``x`` is an integer that the library may have refused for its size."""
        return x.__class__ is int and not self.least <= x <= self.most

    def operands(self, path: str, template: Any, namespace: Any) -> Operands | None:
        """Make the check of a scalar operand of a binary function; None for other functions."""
        if list(template.__annotations__) != ["x1", "x2", "return"]:
            return None

        def operands(x1: Any, x2: Any) -> tuple[Any, Any, Any]:
            if x2.__class__ not in SCALARS and isinstance(x2, _NUMBERS):
                x2 = self.plain(x2)
            elif x1.__class__ not in SCALARS and isinstance(x1, _NUMBERS):
                x1 = self.plain(x1)
            if (x2.__class__ is int and not 0 <= x2 <= 127) or (
                x1.__class__ is int and not 0 <= x1 <= 127
            ):
                return x1, x2, _beyond(path, x1, x2, namespace)
            return x1, x2, None

        return operands


def _is_of_scalars(annotation: str) -> bool:
    kinds = annotation.split(" | ")
    beside_array = kinds[0] == "Array" and not {"int", "float", "complex"}.isdisjoint(kinds)
    return beside_array or kinds == ["complex"]


def _beyond(name: str, x1: Any, x2: Any, namespace: Any) -> Any:
    """Return the result of a comparison with an integer that the array's dtype does not hold.

    None: there is nothing that the library would get wrong.

    Raises
    ------
    OverflowError
        From all other functions.
    """
    value, x = (x2, x1) if x2.__class__ is int else (x1, x2)
    where = bounds.side(value, x.dtype) if hasattr(x, "dtype") else 0
    if not where or name == "divide":  # which makes no integers of integers
        return None
    answers = BEYOND.get(name if x is x1 else _MIRRORED.get(name, name))
    if answers is None:
        raise out_of_bounds(value, x.dtype)
    return namespace.full_like(x, answers[where > 0], dtype=namespace.bool)


def writing_wide_integers(write: Any, wide: Wide) -> Any:
    """Make ``write(native, key, value)`` accept large integers."""

    def function(native: Any, key: Any, value: Any) -> Any:
        try:
            return write(native, key, value)
        except wide.errors:
            if not wide.holds(value):
                raise
        return write(native, key, wide.as_scalar(value, native.dtype))

    return function


def _dtypes(args: Any, kwargs: Any) -> Iterator[Any]:
    """Return the dtypes that apply to scalars: the requested one, or else the last array's."""
    if kwargs.get("dtype") is not None:
        yield kwargs["dtype"]
    for x in (*reversed(args), *kwargs.values()):
        if hasattr(x, "dtype"):
            yield x.dtype
