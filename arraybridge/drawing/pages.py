"""HTML for notebooks: a header, the picture, and the values if the caller passes them.

Everything has the color of the page's text, and so follows the notebook's theme.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .canvas import MONO, SANS, clean
from .memory import facts, format_layout, format_strides, memory_svg, nameless, number
from .routes import route_svg

if TYPE_CHECKING:
    from ..core.records import Route, TensorInfo

_LONGEST = 8_000  # characters of values
_CARD = (
    f"font-family:{SANS};font-size:13px;line-height:1.45;color:inherit;"
    "background:transparent;overflow-x:auto"
)
_HEAD = f"font-family:{MONO};font-size:12px;padding:2px 0 6px"
_FAINT = "opacity:.75"
_CELL = "font-size:12px;padding:1px 12px 1px 0;vertical-align:top"
# Notebooks break the lines of a <pre> between any two characters.
_VALUES = (
    f"font-family:{MONO};font-size:12px;margin:0;padding:0 0 6px;color:inherit;"
    "background:transparent;white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere"
)


def _card(*parts: str, width: str = "420px") -> str:
    return f'<div class="arraybridge" style="{_CARD};max-width:{width}">{"".join(parts)}</div>'


def _head(kind: str, text: str) -> str:
    return f'<div style="{_HEAD}"><b>{clean(kind)}</b> {clean(text, 600)}</div>'


def _aside(text: str) -> str:
    return f'<div style="font-size:12px;{_FAINT};padding:2px 0 6px">{clean(text, 600)}</div>'


def route_html(route: Route) -> str:
    """Return self-contained HTML of a route for a notebook."""
    kind = {"kernel": "copied", "refuse": "refused"}.get(route.kind, route.kind)
    return _card(_head("Route", f"{route.source} → {route.target}: {kind}"), route_svg(route))


def info_html(info: TensorInfo) -> str:
    """Return self-contained HTML of the description of an array for a notebook."""
    size = "" if nameless(info) else f", {number(info.nbytes)} bytes"
    head = f"{info.library}: {facts(info)} on {info.device}{size}"
    details = [f"strides {format_strides(info)}", format_layout(info)]
    if info.data:
        details.append(
            f"at {info.data:#x}" + (f" + {info.byte_offset}" if info.byte_offset else "")
        )
        if info.alignment and info.device.addressable:
            details.append(f"aligned to {info.alignment} bytes")
    if not info.readonly:
        details.append("writable")
    parts = [_head("TensorInfo", head), _aside(", ".join(details)), memory_svg(info)]
    if info.refused is not None:
        parts.append(_aside(f"cannot be converted: {info.refused}"))
    return _card(*parts)


def table_html(
    kind: str, text: str, rows: Sequence[Sequence[str]], numbers: int, after: Sequence[str]
) -> str:
    """Return a table for a notebook, with its `kind` and summary (`text`) above it.

    The first row is the header, the first `numbers` columns are right-aligned, and the lines
    `after` follow the table.
    """
    lines: list[str] = []
    for row in rows:
        tag = "td" if lines else "th"
        cells = [
            f'<{tag} style="text-align:{"right" if at < numbers else "left"};{_CELL}">'
            f"{clean(cell)}</{tag}>"
            for at, cell in enumerate(row)
        ]
        lines.append(f'<tr style="background:transparent">{"".join(cells)}</tr>')
    table = (
        f'<table style="border-collapse:collapse;margin:0;color:inherit">{"".join(lines)}</table>'
    )
    return _card(_head(kind, text), table, *map(_aside, after), width="100%")


def array_html(info: TensorInfo | None, head: str, values: str | None) -> str:
    """Return an Array for a notebook: a header, its values, its memory.

    `info` is None if the library cannot describe it, `values` if they were not read.
    """
    parts = []
    if info is None:
        parts.append(_head("Array", head))
    else:
        flags = ["read-only"] if info.readonly else []
        parts.append(_head("Array", ", ".join([head, f"{number(info.nbytes)} bytes", *flags])))
    if values is None:
        parts.append(_aside("The values are not shown: they are not in host memory."))
    else:
        parts.append(f'<pre style="{_VALUES}">{clean(values, _LONGEST)}</pre>')
    if info is not None:
        memory = memory_svg(info)
        summary = f'<summary style="cursor:pointer;font-size:12px;{_FAINT}">memory</summary>'
        parts.append(memory if values is None else f"<details>{summary}{memory}</details>")
    return _card(*parts)
