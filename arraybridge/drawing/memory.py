"""The memory of an array as boxes in the order of addresses, each with the element in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .canvas import BLUE, LETTER, WIDTH, Canvas
from .cells import Cell, Memory, label_width, memory_of

if TYPE_CHECKING:
    from ..core.records import TensorInfo

_BOX, _SMALL, _FOOT, _LEVEL = 24, 10.5, 14, 18  # pixels: box, text, space below, arrow above
_LEFT = 18  # the margin, for arrows from row to row
_AXES = 6  # axes that are described
_OPAQUE = 3  # DLDataTypeCode of a data type that DLPack does not have
#: Pending conversions of arrays whose elements are not at their strides.
_ELSEWHERE = {
    "fraction": "the elements are not at multiples of their size",
    "bitpacked": "the elements are packed, eight to a byte",
    "chunks": "the elements are in several blocks of memory",
    "columns": "each column is in a separate block of memory",
}
_WORDS = {"c": "C order", "fortran": "Fortran order"}
_PENDING = {
    "conj": "conjugate bit set",
    "neg": "negative bit set",
    "byteorder": "bytes in the other order",
    "packed": "elements packed, several to a byte",
    "truth": "booleans not stored as 0 and 1",
}


def number(value: int) -> str:
    """Return a number with a real minus sign."""
    return f"{value:,}".replace("-", "−")


def nameless(info: TensorInfo) -> bool:
    """Whether DLPack lacks the data type, so that its name and size are unknown."""
    return info.refused is not None and info.dtype.code == _OPAQUE


def unit_of(info: TensorInfo) -> tuple[int, str]:
    """Return the size of an element, and the unit: bits if elements are packed."""
    if nameless(info):
        return 1, "elements"
    if "bitpacked" in info.pending:
        return 1, "bits"
    if info.dtype.subbyte and not info.padded:
        return info.dtype.bits * info.dtype.lanes, "bits"
    return info.itemsize, "B"


def not_drawn(info: TensorInfo) -> str | None:
    """Return why there is no picture of this memory, or None."""
    for what in info.pending:
        if what in _ELSEWHERE:
            return _ELSEWHERE[what]
    if nameless(info):
        return "DLPack has no such data type"
    if len(info.strides) != len(info.shape):
        return "the strides are not known"
    return None if info.data or not info.size else "the array has no memory of its own"


def format_strides(info: TensorInfo) -> str:
    """Return the strides in bytes, or bits, as a tuple."""
    size, unit = unit_of(info)
    inner = ", ".join(number(step * size) for step in info.strides[:_AXES])
    more = ", …" if len(info.strides) > _AXES else ("," if len(info.strides) == 1 else "")
    return f"({inner}{more}) {unit}"


def format_shape(shape: tuple[int, ...]) -> str:
    """Return a shape as a tuple; of many axes, the first."""
    if len(shape) <= 2 * _AXES:
        return str(shape)
    return f"({', '.join(map(str, shape[: 2 * _AXES]))}, … {len(shape)} axes)"


def format_layout(info: TensorInfo) -> str:
    """Return the layout, and flags and pending conversions, in a few words."""
    flags = ["read-only"] if info.readonly else []
    pending = [_PENDING.get(what) or _ELSEWHERE.get(what, what) for what in info.pending]
    return ", ".join([_WORDS.get(info.layout, info.layout), *flags, *pending])


def facts(info: TensorInfo) -> str:
    """Return the data type, if it has a name, and the shape in one line."""
    return f"{'' if nameless(info) else f'{info.dtype_name} '}{format_shape(info.shape)}"


def memory_svg(info: TensorInfo, *, title: str = "", page: bool = False) -> str:
    """Return the picture of an array's memory as SVG; see `Canvas.svg` for the options."""
    canvas = Canvas()
    description = draw_memory(canvas, info)
    return canvas.svg(description, page=page, title=title)


def draw_memory(canvas: Canvas, info: TensorInfo, color: str = BLUE) -> str:
    """Draw the boxes and axes of an array; return a description."""
    why = not_drawn(info)
    if why is None and 0 in info.shape:
        why = "no elements, no memory"
    if why is not None:
        canvas.y += 16
        canvas.text(_LEFT, canvas.y, why, faint=True)
        canvas.y += 8
        return f"{facts(info)}: {why}"
    chars, _ = label_width(info.shape, info.strides)
    width = max(28.0, round(chars * _SMALL * LETTER + 8, 1))
    room = WIDTH - _LEFT - 2
    memory = memory_of(info.shape, info.strides, max(int(room // width), 1))
    if len(memory.rows) == 1:  # wider boxes read better
        width = min(max(width, 44.0), room / memory.width)
    _rows(canvas, info, memory, round(width, 1), color)
    _axes(canvas, info)
    return _description(info, memory)


def _rows(canvas: Canvas, info: TensorInfo, memory: Memory, width: float, color: str) -> None:
    size, unit = unit_of(info)
    places: dict[int, tuple[float, float]] = {}  # the middle of a box's upper edge
    for row, cells in enumerate(memory.rows):
        if row == memory.after and memory.hidden:
            _hidden(canvas, memory)
        here = {cell.at for cell in cells}
        if 0 in here:
            levels = sum(step in here for _, step in _moving(info))
            canvas.y += levels * _LEVEL + 4 * (levels > 0)
        top = canvas.y
        for place, cell in enumerate(cells):
            x = _LEFT + place * width
            places[cell.at] = x + width / 2, top
            _cell(canvas, cell, x, top, width, info, memory, color)
        offset = cells[0].at * size
        if offset:
            label = f"{'+' if offset > 0 else ''}{number(offset)} {unit}"
            canvas.text(_LEFT, top + _BOX + 11, label, size=10, mono=True, faint=True)
        if 0 in here:
            anchor = "middle" if offset else "start"
            x = places[0][0] if offset else _LEFT
            canvas.text(x, top + _BOX + 11, "start", size=11, bold=True, anchor=anchor)
        canvas.y = top + _BOX + _FOOT + 2
    if 0 in places:
        _arrows(canvas, info, places)


def _hidden(canvas: Canvas, memory: Memory) -> None:
    shown = {cell.at for cells in memory.rows for cell in cells}
    start = "" if 0 in shown else ", including the start"
    canvas.text(_LEFT, canvas.y + 14, f"… {memory.hidden:,} more{start}", faint=True)
    canvas.y += 22


def _moving(info: TensorInfo) -> list[tuple[int, int]]:
    """Return the last two axes that step through memory, innermost first: (axis, stride)."""
    moving = [
        (axis, step)
        for axis, (extent, step) in enumerate(zip(info.shape, info.strides, strict=True))
        if extent > 1 and step
    ]
    return moving[:-3:-1]


def _cell(
    canvas: Canvas,
    cell: Cell,
    x: float,
    y: float,
    width: float,
    info: TensorInfo,
    memory: Memory,
    color: str,
) -> None:
    size, unit = unit_of(info)
    where = f"{number(cell.at * size)} {unit}"
    if cell.element is None:
        named = f"{where}: no element" if cell.known else f"{where}: unknown"
        canvas.box(x, y, width, _BOX, dashed=True, stroke=0.4, named=named)
        if cell.known:
            canvas.hatch(x, y, width, _BOX)
        else:
            canvas.text(x + width / 2, y + 16, "?", size=_SMALL, mono=True, anchor="middle")
        return
    index = ", ".join(map(str, cell.element))
    often = memory.repeats * cell.sharing
    least = "" if cell.known else " at least"
    shared = f", read{least} {often:,} times" if often > 1 else f", read{least} once" * bool(least)
    canvas.box(x, y, width, _BOX, fill=color, opacity=0.5 if cell.at == 0 else 0.18,
               named=f"{where}: element ({index}){shared}")  # fmt: skip
    canvas.text(x + width / 2, y + 16, cell.label, size=_SMALL, mono=True, anchor="middle",
                bold=cell.at == 0)  # fmt: skip
    if cell.sharing > 1:
        more = f"{'' if cell.known else '≥ '}+{cell.sharing - 1}"
        canvas.text(x + width - 2, y + _BOX + 9, more, size=9, anchor="end")


def _arrows(canvas: Canvas, info: TensorInfo, places: dict[int, tuple[float, float]]) -> None:
    """Draw a step from the start along each of the last two axes with a stride."""
    x, top = places[0]
    high = top
    for axis, step in _moving(info):
        to = places.get(step)
        if to is None:
            continue
        if to[1] == top:
            high -= _LEVEL
            y = high + 7
            canvas.line([(x, top - 1), (x, y), (to[0], y), (to[0], top - 4)])
            canvas.head(to[0], top - 1, "down")
            canvas.text((x + to[0]) / 2, y - 2, f"axis {axis}", size=10, anchor="middle")
        else:  # in another row
            foot, head = top + _BOX / 2, to[1] + _BOX / 2
            near, far = _LEFT - 3, _LEFT - 11
            canvas.line([(near, foot), (far, foot), (far, head), (near - 3, head)])
            canvas.head(near + 1, head, "right")
            break


def _axes(canvas: Canvas, info: TensorInfo) -> None:
    """Write the number of elements and the stride of each axis."""
    size, unit = unit_of(info)
    axes = list(zip(info.shape, info.strides, strict=True))
    canvas.y += 3
    for axis, (extent, step) in enumerate(axes[:_AXES]):
        canvas.y += 14
        if extent == 1:
            label = "one element, no step"
        elif step == 0:
            label = f"{extent:,} times the same memory: step 0 {unit}"
        else:
            way = "← toward lower addresses" if step < 0 else "→"
            label = f"{extent:,} elements, step {number(step * size)} {unit} {way}"
        canvas.text(_LEFT, canvas.y, f"axis {axis}: {label}", size=11.5, faint=True)
    if len(axes) > _AXES:
        canvas.y += 14
        canvas.text(_LEFT, canvas.y, f"… {len(axes) - _AXES} more axes", size=11.5, faint=True)
    canvas.y += 6


def _description(info: TensorInfo, memory: Memory) -> str:
    """Return a description of the picture."""
    size, unit = unit_of(info)
    name = "bytes" if unit == "B" else unit
    cells = [cell for row in memory.rows for cell in row]
    gaps = " with gaps between the elements" if any(c.element is None for c in cells) else ""
    first = cells[0].element
    lowest = "a gap" if first is None else f"element ({', '.join(map(str, first))})"
    often = f", each read {memory.repeats:,} times" if memory.repeats > 1 else ""
    return (
        f"Memory of {facts(info)}, strides {format_strides(info)}, {format_layout(info)}: "
        f"{memory.length:,} items of {size} {name}{often}{gaps}; at the lowest address is "
        f"{lowest}, and element 0 of all axes is {number(-memory.low * size)} {name} above it"
    )
