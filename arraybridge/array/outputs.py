"""The argument ``out`` of adapted functions: what the function writes there, the caller sees.

A view is written directly, and a copy written back by `arraybridge.array.written`. What can take
neither is refused before the call, and what came out with another shape afterwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..containers import leaves
from ..dispatch.records import ConversionError
from ..dispatch.registry import library_of_type
from .kinds import is_array
from .terms import Terms
from .written import Lent, overlap


class Output:
    """An array that the caller passed as ``out``, or in it.

    Parameters
    ----------
    seen : array
        What the function sees of it.
    """

    __slots__ = ("seen", "shape")

    def __init__(self, seen: Any) -> None:
        self.seen, self.shape = seen, tuple(seen.shape)

    def check(self, terms: Terms) -> None:
        """Raise the error for an array that the function gave another shape."""
        if tuple(self.seen.shape) != self.shape:
            raise ConversionError(
                f"{terms.function} gave its argument out the shape {tuple(self.seen.shape)}; the "
                f"array that was passed has {self.shape}"
            )


def outputs(
    terms: Terms, given: Any, pairs: list[tuple[Any, Any]], lent: list[Lent]
) -> list[Output]:
    """Return the arrays of ``out``.

    Raises
    ------
    ConversionError
        Where the caller would not see what the function writes.
    """
    found = []
    for x in leaves(given, is_array):
        if isinstance(x, np.generic):
            raise ConversionError(
                f"{terms.function} cannot write to the {type(x).__name__} that was passed as out "
                "(a scalar of NumPy never changes): pass an array, numpy.empty(())"
            )
        if not is_array(x):
            continue
        seen = next(seen for known, seen in pairs if known is x)
        why = _why_not(terms, seen, next((copy for copy in lent if copy.given is x), None))
        if why is not None:
            raise ConversionError(
                f"{terms.function} cannot write to the {type(x).__name__} that was passed as out "
                f"({why}): omit out=, and take what is returned"
            )
        found.append(Output(seen))
    return found


def _why_not(terms: Terms, seen: Any, copy: Lent | None) -> str | None:
    """Return why the caller would not see what is written to ``seen``, or None."""
    library = library_of_type(type(seen))
    if terms.copy is True:
        return "with copy=True the function has a copy of its own"
    if library is None:
        return None
    if library.accepts.immutable:
        return f"arrays of {library.name} cannot be written"
    info = library.describe(seen)
    if copy is None:
        return "read-only" if info.readonly else overlap(info)
    if info.dtype != copy.info.dtype:
        return f"dtype= gives the function a copy of {info.dtype}"
    return copy.obstacle()
