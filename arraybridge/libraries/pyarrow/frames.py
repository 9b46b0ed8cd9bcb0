"""Tables and record batches of Arrow: what to pass instead of one that is no matrix."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ...dispatch.library import Library
from ...protocols.arrow import assembled
from ...protocols.assembled import LIBRARY
from .remedies import remedy

__all__ = ["opened"]


def opened(x: Any) -> tuple[object, Library] | None:
    """Return what stands for a table, and its library; None for another object."""
    if not isinstance(x, pa.Table | pa.RecordBatch):
        return None
    found = assembled(x)
    if found.refused is None:
        return found, LIBRARY
    column, told = _refused(x, found.refused), found.refused.rpartition(": ")[2]
    return found.advised(
        told if column is None else _remedy(x, column), "pass x.drop_null()"
    ), LIBRARY


def _refused(x: Any, why: str) -> int | None:
    """Return the column that a refusal is of."""
    names = x.schema.names
    return next((at for at, name in enumerate(names) if why.startswith(f"column {name!r}: ")), None)


def _remedy(x: Any, at: int, called: str = "x") -> str:
    column, kinds = x.column(at), set(x.schema.types)
    kind = column.type
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if column.null_count and len(kinds) == 1 and number:
        return "pass x.drop_null()"
    name = x.schema.names[at]
    code = f"{called}.column({(name if x.schema.names.count(name) == 1 else at)!r})"
    if isinstance(column, pa.ChunkedArray):
        chunks = [chunk for chunk in column.chunks if len(chunk)]
        column = max(chunks, key=lambda c: c.null_count) if chunks else column.combine_chunks()
        if not number:
            code += ".combine_chunks()"
    return remedy(column, code)
