"""Columns and frames of polars: its own NumPy view if there is one, else through Arrow."""

from typing import Any

import polars as pl

from ..core.library import Library
from ..core.registry import library_named
from ..ndarrays import CHARS
from ..protocols.frames import frame, no_numbers, nulls, refused


def opened(x: Any) -> tuple[object, Library] | None:
    """Return what a column or a frame converts as, and its library; None for another object."""
    if isinstance(x, pl.Series):
        return _column(x)
    if isinstance(x, pl.DataFrame):
        columns = ((series.name, *_column(series)) for series in x.iter_columns())
        return _view(x) or frame(len(x), columns)
    return None


def _view(x: pl.Series | pl.DataFrame) -> tuple[object, Library] | None:
    try:
        view = x.to_numpy(allow_copy=False)
    except RuntimeError:  # it would be a copy
        return None
    if view.dtype.char not in CHARS or view.flags.writeable:
        return None
    return view, library_named("numpy")


def _column(x: pl.Series) -> tuple[object, Library]:
    found = _view(x)
    if found is not None:
        return found
    count, inner = x.null_count(), x.dtype
    if count:
        return refused(x, nulls(count, len(x)))
    while isinstance(inner, pl.Array):
        inner = inner.inner
    if not (inner.is_integer() or inner.is_float() or inner == pl.Boolean):
        return refused(x, no_numbers(f"polars' {x.dtype}"))
    pyarrow: Any = library_named("pyarrow")
    read: tuple[object, Library] = pyarrow.read(x)
    return read
