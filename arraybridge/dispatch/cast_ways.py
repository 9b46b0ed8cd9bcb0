"""The quick way of a cast, and of C order: small arrays on the CPU, between a view and a door.

As `ways`: made once for a type of array, a target and a data type, it gives the result that the
plan would give, or None where the plan must decide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..dlpack import DataType, DataTypeCode
from .casting import allowed
from .changed import changed
from .copier import copies_itself
from .form import Form
from .kernel import SMALL, own_copies_serve
from .library import Library
from .plan import unavailable
from .registry import library_named
from .ways import Way

__all__ = ["forming_way"]


def forming_way(source: Library, target: Library, form: Form, plain: Way) -> Way | None:
    """Return the way of arrays of one library to another; None if there is none.

    ``plain`` converts without the form, and takes ``copy``.
    """
    if source.in_pieces or form.table or form.order not in (None, "C"):
        return None
    laid = plain if form.order is None else _in_c(source, target, plain)
    return laid if form.dtype is None else _casting(source, target, form, laid)


def _in_c(source: Library, target: Library, plain: Callable[..., Any]) -> Way:
    """Return the way of arrays to C order, in which all copies are but a target's own imports."""
    describe = source.describe

    def way(x: Any) -> Any:
        info = describe(x)
        if info.pending or unavailable(info):
            return None
        if info.c_contiguous:
            return plain(x)
        return None if copies_itself(target, info) else plain(x, copy=True)

    return way


def _casting(source: Library, target: Library, form: Form, plain: Way) -> Way | None:
    """Return the way of arrays to a data type; `plain` is that of those that have it already."""
    numpy: Any = library_named("numpy")
    dtype, rule = form.dtype, form.casting
    if dtype is None or not own_copies_serve():
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
    describe, recast, recasts = library.describe, library.recast, library.recasts
    if type(library).recast is Library.recast or dtype.name not in library.accepts.dtypes:
        return None
    accepts = library.accepts

    def way(x: Any) -> Any:
        info = describe(x)
        if library.accepts is not accepts or (unavailable(info) and not info.tracked):
            return None
        given = info.dtype
        if given == dtype:
            return plain(x)
        axes = tuple(range(info.ndim))
        casts = recasts(info, dtype, axes) and allowed(given, dtype, rule)
        return recast(x, dtype, axes) if casts else None

    return way
