"""Where libraries depart from the standard, as data: one table a library.

An entry names the function, the clause, the upstream issue and a probe that shows the defect, so
that it can be deleted when upstream mends it: `tests/test_xp_corrections.py` tells which those are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Correction(NamedTuple):
    """One function put right.

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
    """

    name: str
    function: Callable[..., Any]
    clause: str
    upstream: str
    needed: Callable[[Any], bool]
    operators: bool = False
