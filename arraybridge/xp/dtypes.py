"""Data types: ``result_type``, and ``finfo`` and ``iinfo`` with corrected attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from ..array.scalars import KINDS


def result_type(
    pair: Callable[[Any, Any], Any],
    beside: Callable[[Any, Any], Any],
    ordered: Callable[[list[Any]], list[Any]] = list,
) -> Callable[..., Any]:
    """Make ``result_type`` for a library whose own is wrong for some dtypes or lacks them.

    ``pair(a, b)`` promotes two dtypes, ``beside(dtype, number)`` a dtype with the Python number of
    the highest kind; `ordered` returns the order in which more than two dtypes are promoted.
    """

    def result_type(*arrays_and_dtypes: Any) -> Any:
        dtypes, highest = [], None
        for x in arrays_and_dtypes:
            if isinstance(x, KINDS) and not isinstance(x, numpy.generic):
                if highest is None or _kind_of(x) > _kind_of(highest):
                    highest = x
            else:
                dtypes.append(x if isinstance(x, type) else getattr(x, "dtype", x))
        if not dtypes:
            raise ValueError("result_type needs at least one array or data type")
        found, *others = ordered(dtypes) if len(dtypes) > 2 else dtypes
        for dtype in others:
            found = pair(found, dtype)
        return found if highest is None else beside(found, highest)

    return result_type


def _kind_of(number: Any) -> int:
    return next(i for i, kind in enumerate(KINDS) if isinstance(number, kind))


class Corrected:
    """An information object of a library (``finfo``, ...) with some attributes corrected.

    Other attributes are the library's own (``tiny``, ``resolution``).
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
        return bool(self._own == (other._own if isinstance(other, Corrected) else other))

    def __hash__(self) -> int:
        return hash(self._own)
