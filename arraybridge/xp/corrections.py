"""Corrections that several libraries share.

Each library has a table ``CORRECTIONS``: functions over native arrays by their names in the
standard, with the upstream issue. `tests/support/defects` has a probe of each defect, so that an
entry can be deleted once upstream fixes it.
"""

from collections.abc import Callable
from typing import Any

from ..array.operators import OPERATORS

#: The comparisons of the standard, and Python's.
COMPARISONS = {op.function: op.plain for op in OPERATORS if op.forms == "compare"}


def by_value(
    xp: Any, plain: Callable[..., Any], name: str, limits: dict[Any, tuple[int, int]]
) -> Callable[..., Any]:
    """Make a comparison by value with Python integers that the dtype of the array does not hold.

    The library's own, ``plain``, wraps them. `limits` has the range of each integer dtype.
    """
    compare = COMPARISONS[name]

    def function(x1: Any, x2: Any, /, **kwargs: Any) -> Any:
        x, number = (x2, x1) if x1.__class__ is int else (x1, x2)
        if number.__class__ is int and not 0 <= number <= 127:  # every dtype holds these
            low, high = limits.get(getattr(x, "dtype", None), (number, number))
            if not low <= number <= high:
                side = 1 if number > high else -1
                true = compare(side, 0) if x is x2 else compare(0, side)
                return (xp.greater_equal if true else xp.greater)(x, x, **kwargs)
        return plain(x1, x2, **kwargs)

    return function


class Corrected:
    """A library's ``finfo`` or ``iinfo`` with some attributes corrected; others are its own."""

    def __init__(self, own: Any, **right: Any) -> None:
        self._own = own
        vars(self).update(right)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_own":
            raise AttributeError(name)
        return getattr(self._own, name)

    def __repr__(self) -> str:
        return repr(self._own)


def finfo(plain: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make ``finfo`` whose eps, max, min and smallest_normal are Python floats."""
    names = ("eps", "max", "min", "smallest_normal")

    def finfo(type: Any, /) -> Any:
        own = plain(type)
        if own.bits > 64:  # longdouble: not in the standard, and too large for a float
            return own
        return Corrected(own, **{name: float(getattr(own, name)) for name in names})

    return finfo
