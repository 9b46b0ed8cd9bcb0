"""The quick way of a cast: small arrays on the CPU, by NumPy, between a view and a door.

As `ways`: made once for a type of array, a target and a data type, it gives the result that the
plan would give, or None where the plan must decide.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dlpack import DataType, DataTypeCode
from .casting import allowed
from .changed import changed
from .form import Form
from .kernel import SMALL, own_copies_serve
from .library import Library
from .registry import library_named
from .ways import Way

__all__ = ["casting_way"]


def casting_way(source: Library, target: Library, form: Form, plain: Way) -> Way | None:
    """Return the way of arrays of one library to another; None if there is none.

    ``plain`` converts what has the data type already.
    """
    numpy: Any = library_named("numpy")
    dtype, rule = form.dtype, form.casting
    if dtype is None or form.order is not None or not own_copies_serve():
        return None
    checked = rule == "same_value"
    if source is target and source is not numpy:
        return None if checked else _own(source, dtype, rule, plain)
    if dtype.name not in numpy.accepts.dtypes or dtype.name not in target.accepts.dtypes:
        return None
    view = None if source is numpy else numpy.doors.get(source.name)
    door = None if target is numpy else target.doors.get("numpy")
    if (view is None and source is not numpy) or (door is None and target is not numpy):
        return None
    if getattr(view, "copies", False) or getattr(door, "copies", False):
        return None
    accepts, take = target.accepts, getattr(door, "of_fresh", door)
    made = numpy.native_dtype(dtype)
    # What is done about each of NumPy's data types: True, a cast; False, the plan; None, nothing.
    known: dict[Any, bool | None] = {}

    def decide(given: Any) -> bool | None:
        kind = numpy.kind(given)
        found = None if kind == dtype else kind is not None and allowed(kind, dtype, rule)
        if checked and kind is not None and kind.code == DataTypeCode.COMPLEX != dtype.code:
            found = False  # NumPy would warn of the imaginary parts
        known[given] = found
        return found

    def same_value(old: Any) -> Any:
        with np.errstate(all="ignore"):
            new = old.astype(made, order="C", subok=False)
            wrong = changed(old, new, numpy.kind(old.dtype), dtype, numpy.cast)
        return None if wrong.any() else new  # the plan tells which

    def way(x: Any) -> Any:
        old = x if view is None else view(x)
        if old is None or target.accepts is not accepts:
            return None
        given = old.dtype
        try:
            casts = known[given]
        except KeyError:
            casts = decide(given)
        if casts is None:
            return plain(x)
        if not casts or old.size > SMALL:
            return None
        if checked:
            new = same_value(old)
            if new is None:
                return None
        else:
            new = old.astype(made, order="C", subok=False)
        return new if take is None else take(new)

    return way


def _own(library: Library, dtype: DataType, rule: str, plain: Way) -> Way | None:
    """Return the way of a library's arrays by its own cast."""
    kind_of, recast = library.quick_kind, library.recast
    if type(library).quick_kind is Library.quick_kind or dtype.name not in library.accepts.dtypes:
        return None
    accepts = library.accepts

    def way(x: Any) -> Any:
        kind = kind_of(x)
        if kind is None or library.accepts is not accepts:
            return None
        if kind == dtype:
            return plain(x)
        return recast(x, dtype, tuple(range(x.ndim))) if allowed(kind, dtype, rule) else None

    return way
