"""``finfo`` and ``iinfo`` with the results of the standard: Python numbers and dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_FLOATS = ("eps", "max", "min", "smallest_normal")


class Limits:
    """A library's own description of a dtype's limits, with some attributes corrected.

    Whatever else the library offers is its own (``tiny``, ``resolution``).
    """

    def __init__(self, own: Any, **right: Any) -> None:
        self._own = own
        vars(self).update(right)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_own":
            raise AttributeError(name)
        return getattr(self._own, name)

    def __repr__(self) -> str:
        return repr(self._own)

    def __eq__(self, other: object) -> bool:
        return bool(self._own == (other._own if isinstance(other, Limits) else other))

    def __hash__(self) -> int:
        return hash(self._own)


def floats_in_finfo(plain: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make ``finfo`` with Python floats, where the library's own has scalars of the dtype."""

    def finfo(type: Any, /) -> Any:
        own = plain(type)
        if own.bits > 64:  # longdouble: no dtype of the standard, and too large for a float
            return own
        return Limits(own, **{name: float(getattr(own, name)) for name in _FLOATS})

    return finfo
