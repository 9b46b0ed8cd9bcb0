"""HTML for notebooks: tables of descriptions and routes."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .array import Array


def table(fields: Mapping[str, object]) -> str:
    """Return an HTML table with a row for each field."""
    rows = [
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(str(value))}</td></tr>"
        for name, value in fields.items()
    ]
    return f"<table>{''.join(rows)}</table>"


def html_of(array: Array) -> str:
    """Return the ``repr`` of an Array, and a table of its description if it has one."""
    text = f"<pre>{escape(repr(array))}</pre>"
    try:
        return text + table(array.info._asdict())
    except Exception:  # it was deleted
        return text
