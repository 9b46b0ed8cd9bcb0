"""The places where libraries depart from the standard, as data: one table for each library.

An entry names the function, the clause, the upstream issue and a probe that shows the defect, so
that it can be deleted when upstream mends it: `tests/test_xp_corrections.py` tells which those are.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

from ...named import NamedTuple


class Correction(NamedTuple):
    """A corrected function.

    Attributes
    ----------
    name : str
        The function in the standard, with its extension: ``"floor_divide"``, ``"linalg.qr"``.
    function : callable
        What takes its place, over native arrays.
    clause : str
        The clause of the standard (2025.12) that the library's own departs from.
    upstream : str
        The upstream issue, by its address; or why there is none.
    needed : callable
        ``needed(xp)``: whether the defect shows in a namespace of native arrays; False, and the
        entry can go. An exception counts as the defect.
    operators : bool
        Whether the operator of the same meaning has the defect too.
    until : str, optional
        The first version of the library that keeps the clause by itself: nothing is put over that
        one or a later one.
    """

    name: str
    function: Callable[..., Any]
    clause: str
    upstream: str
    needed: Callable[[Any], bool]
    operators: bool = False
    until: str | None = None

    def applies_to(self, version: str) -> bool:
        """Tell whether a version of the library has the defect."""
        return self.until is None or _release(version) < _release(self.until)


def _release(version: str) -> list[int]:
    """Return the numbers that begin a version: ``"2.13.0+cpu"`` is 2, 13, 0."""
    return [int(part) for part in re.findall(r"\d+", re.split(r"[^\d.]", version)[0])]


def direct(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of array-api-compat without the wrapper that passes it the module."""
    if getattr(function, "__code__", None) is None or function.__code__.co_name != "wrapped_f":
        return function
    f, xp = (inspect.getclosurevars(function).nonlocals.get(name) for name in ("f", "xp"))
    return function if f is None or xp is None else functools.partial(f, xp=xp)
