"""The fast path for polars' columns and frames: its own NumPy view, if there is one.

It is six times as fast as reading Arrow's structs. Everything else (nulls, chunks, booleans,
separate columns, text) goes through Arrow, and is copied or refused there.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from ..core.library import Library
from ..core.registry import library_named
from ..ndarrays import CHARS
from ..protocols.arrow import assembled
from ..protocols.arrow_types import spells_number
from ..protocols.assembled import LIBRARY


def opened(x: Any) -> tuple[object, Library] | None:
    """Return what a column or a frame converts as, and its library; None for another object."""
    if not isinstance(x, pl.Series | pl.DataFrame):
        return None
    try:
        view = x.to_numpy(allow_copy=False)
    except RuntimeError:  # it would be a copy
        view = None
    if view is not None and view.dtype.char in CHARS and not view.flags.writeable:
        return view, library_named("numpy")
    found = assembled(x)
    if found.refused and (isinstance(x, pl.Series) or x.width):
        advice = remedy_of_column(x) if isinstance(x, pl.Series) else remedy_of_frame(x)
        found = found.advised(advice, "pass x.fill_null(value) or x.drop_nulls()")
    return found, LIBRARY


# What to pass instead of a column or a frame, by its data types and its nulls.

_CATEGORIES = (pl.Categorical, pl.Enum)
_WIDE = tuple(getattr(pl, name) for name in ("Int128", "UInt128") if hasattr(pl, name))


def remedy_of_frame(x: pl.DataFrame, name: str = "x") -> str:
    """Return what to do about a frame; ``name`` is its name in the code."""
    kinds = x.schema.dtypes()
    if len(set(kinds)) == 1:  # the remedy for one column serves all
        kind = kinds[0]
        nulls = any(column.null_count() for column in x.iter_columns())
        if _is_number(kind) and nulls:
            fills = kind != getattr(pl, "Float16", None)  # no fill_null of a frame
            return f"pass {f'x.fill_null({_filling(kind)}) or ' if fills else ''}x.drop_nulls()"
        kept = f"{name}.drop_nulls()" if nulls else name
        if kind.is_temporal() or isinstance(kind, _CATEGORIES):
            what = "integers" if kind.is_temporal() else "codes"
            return f"pass its {what}, {kept}.select(polars.all().to_physical())"
        if kind.is_decimal():
            return f"pass {kept}.cast(polars.Float64), which rounds"
    for column in x.iter_columns():
        kind = column.dtype
        if column.null_count() or not _is_number(kind):
            return remedy_of_column(column, f"{name}.get_column({column.name!r})")
    number = next(label for label, kind in x.schema.items() if _is_number(kind))
    advice = f"pass columns of one type, such as {name}.select([{number!r}])"
    if all(map(_is_number, kinds)):
        advice += ", or one data type for all, dtype='float64'"
    return advice


def remedy_of_column(x: pl.Series, name: str = "x") -> str:
    """Return what to do about a column; ``name`` is its name in the code."""
    kind = x.dtype
    if kind == pl.Null:
        return f"pass numbers instead of its nulls, {name}.fill_null(value)"
    if _is_number(kind):
        if x.null_count():
            return f"pass {name}.fill_null({_filling(kind)}) or {name}.drop_nulls()"
        return f"pass {name}"
    if kind == pl.Object:
        return "convert its objects to numbers first"
    if x.null_count():
        x, name = x.drop_nulls(), f"{name}.drop_nulls()"
    if isinstance(kind, pl.List | pl.Array):
        return _remedy_of_lists(x, name)
    if isinstance(kind, pl.Struct):
        fields = {field.name: field.dtype for field in kind.fields}
        field = next(
            (n for n, inner in fields.items() if _is_number(inner)), next(iter(fields), None)
        )
        if field is None:
            return "it has no fields"
        advice = remedy_of_column(x.struct.field(field), f"{name}.struct.field({field!r})")
        return advice.replace("pass", "pass each of its fields,", 1)
    if kind.is_temporal():
        return f"pass its integers, {name}.to_physical()"
    if isinstance(kind, _CATEGORIES):
        return f"pass its codes, {name}.to_physical()"
    if kind in _WIDE:
        return f"pass {name}.cast(polars.Int64), which raises for numbers that are too large"
    if kind.is_decimal():
        return f"pass {name}.cast(polars.Float64), which rounds"
    if kind == pl.String:
        advice = f"pass codes, {name}.cast(polars.Categorical).to_physical()"
        if len(x) and spells_number(x[0]):
            advice += f", or the numbers that it spells, {name}.cast(polars.Float64)"
        return advice
    return f"pass codes, {name}.rank('dense')"


def _remedy_of_lists(x: pl.Series, name: str) -> str:
    """Return what to do about lists, none of which is null."""
    within = x.explode()
    plain = _is_number(within.dtype) and not within.null_count()
    if isinstance(x.dtype, pl.Array):
        return f"pass {name}" if plain else remedy_of_column(within, f"{name}.explode()")
    if plain and x.list.len().n_unique() == 1:
        return f"pass {name}.list.to_array(width), since its rows have equal lengths"
    if plain:
        return f"pass {name}.explode(), since its rows differ in length"
    return remedy_of_column(within, f"{name}.explode()")


def _is_number(kind: pl.DataType) -> bool:
    return (kind.is_numeric() and not kind.is_decimal() and kind not in _WIDE) or kind == pl.Boolean


def _filling(kind: pl.DataType) -> str:
    return "False" if kind == pl.Boolean else "value"
