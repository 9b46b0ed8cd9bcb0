"""A route as a picture: the memory before, what happens to it and why, the memory after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .canvas import BLUE, GREEN, LETTER, RED, WIDTH, Canvas, lines_of
from .memory import draw_memory, facts, format_layout, format_shape, format_strides

if TYPE_CHECKING:
    from ..core.records import Route

_WORDS = {
    "view": "a view: nothing is copied",
    "kernel": "copied",
    "transfer": "copied to another device",
    "refuse": "refused",
}
_COLORS = {"view": BLUE, "kernel": GREEN, "transfer": GREEN, "refuse": RED}


def route_svg(route: Route, *, title: str = "", page: bool = False) -> str:
    """Return the picture of a route as SVG; see `memory_svg`.

    Without memory if the route is not from :func:`arraybridge.explain`.
    """
    canvas = Canvas()
    return canvas.svg(draw_route(canvas, route), page=page, title=title)


def draw_route(canvas: Canvas, route: Route) -> str:
    """Draw a route; return a description."""
    info, made = route.info, route.made
    sentences = [str(route)]
    if info is None:
        _end(canvas, route.source, "", "")
    else:
        detail = f"strides {format_strides(info)}, {format_layout(info)}"
        _end(canvas, route.source, f"{facts(info)} on {info.device}", detail)
        canvas.y += 6
        sentences.append(draw_memory(canvas, info))
    _between(canvas, route)
    if route.kind == "refuse":
        _end(canvas, route.target, "no array is made", "", dashed=True)
    elif route.kind == "view":
        detail = "the same addresses, the same strides" if info is not None else ""
        what = f"{facts(info)} on {route.device}" if info is not None else f"on {route.device}"
        _end(canvas, route.target, what, detail)
    elif made is None:
        what = f"{format_shape(info.shape)} on {route.device}" if info else f"on {route.device}"
        _end(canvas, route.target, what, "new memory")
    else:
        _end(canvas, route.target, f"{facts(made)} on {route.device}",
             f"new memory, strides {format_strides(made)}, {format_layout(made)}")  # fmt: skip
        if info is None or info.layout != made.layout or info.dtype != made.dtype:
            canvas.y += 6
            sentences.append(draw_memory(canvas, made, GREEN))
    canvas.y += 2
    return ". ".join(sentences)


def _end(canvas: Canvas, library: str, what: str, detail: str, dashed: bool = False) -> None:
    """Draw the box of a library's array."""
    high, library = 46 if detail else 28, _cut(library, 30)
    room = int((WIDTH - 32 - 8 * len(library)) / (11 * LETTER))
    canvas.box(0.5, canvas.y + 0.5, WIDTH - 1, high, radius=5, dashed=dashed,
               fill="currentColor", opacity=0.05)  # fmt: skip
    canvas.text(10, canvas.y + 19, library, size=13, bold=True)
    canvas.text(WIDTH - 10, canvas.y + 19, _cut(what, room), mono=True, size=11, anchor="end")
    if detail:
        canvas.text(10, canvas.y + 37, _cut(detail, 62), size=11, faint=True)
    canvas.y += high + 2


def _cut(words: str, most: int) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"


def _between(canvas: Canvas, route: Route) -> None:
    """Draw the arrow: what happens, the kernel, how many bytes, why, and what to do."""
    refused, color = route.kind == "refuse", _COLORS[route.kind]
    why, _, remedy = route.why.rpartition(": ") if refused else (route.why, "", "")
    if not why:
        why, remedy = remedy, ""
    by = f": {route.kernel}" if route.kernel else ""
    moved = f", {route.nbytes:,} bytes" if route.nbytes else ""
    first = lines_of(f"{_WORDS[route.kind]}{by}{moved}", 3, 52)
    lines = lines_of(why, 5)
    advice = lines_of(remedy, 4, 54) if remedy else []
    top = canvas.y + 6
    y = top + 4
    for line in first:
        y += 15
        canvas.text(30, y, line, bold=True)
    for line in lines:
        y += 15
        canvas.text(30, y, line, size=11.5)
    for line in advice:
        y += 15
        canvas.text(30, y, line, size=11.5, bold=True)
    foot = y + 14
    if refused:
        middle = (top + foot) / 2
        canvas.line([(14, top), (14, foot)], RED, dashed=True)
        for slope in (5, -5):
            canvas.line([(9, middle - slope), (19, middle + slope)], RED)
    else:
        canvas.line([(14, top), (14, foot - 4)], color)
        canvas.head(14, foot, "down", color)
    canvas.y = foot + 4
