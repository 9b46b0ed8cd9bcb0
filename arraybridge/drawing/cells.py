"""Which element of an array is in which item of its memory, for the few items that are drawn."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from ..layout import span

ROWS = 4  # of boxes; of longer memory the first and last rows are drawn
_TRIES = 80  # steps of the search for the elements in one item
MOST = 5  # the most elements that share an item; more are not counted
_WIDEST = 9  # characters of an index; a longer one is replaced by the number of the element


class Cell(NamedTuple):
    """One item of memory."""

    at: int  # items from element 0, ..., 0; negative below it
    element: tuple[int, ...] | None  # the first element there; None for a gap
    label: str  # the text in the box
    sharing: int = 1  # elements found there, counted once along axes of stride 0
    known: bool = True  # whether all elements were found; otherwise it may not be a gap


class Memory(NamedTuple):
    """The items that a layout covers, in the order of addresses."""

    low: int  # items from element 0, ..., 0 to the lowest; 0 or negative
    length: int  # items from the lowest to the highest, both included; 0 without elements
    width: int  # items in a row of the picture
    rows: tuple[tuple[Cell, ...], ...]
    hidden: int  # items that are not drawn
    after: int  # rows that are drawn before the hidden items
    repeats: int  # how often each item is read along axes of stride 0
    numbered: bool  # whether labels are numbers of elements in C order, not indices


def label_width(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, bool]:
    """Return the length of the longest label, and whether labels are numbers of elements."""
    wide = sum(
        1 if step == 0 and extent > 1 else len(str(extent - 1))
        for extent, step in zip(shape, strides, strict=True)
    ) + max(len(shape) - 1, 0)
    if wide <= _WIDEST and len(shape) <= 5:
        return max(wide, 1), False
    return 1 + len(str(max(prod(shape) - 1, 0))), True


def memory_of(shape: tuple[int, ...], strides: tuple[int, ...], most: int) -> Memory:
    """Return the items that a layout (in elements) covers, in rows of at most `most` boxes."""
    low, high = span(shape, strides, 1)
    length = high - low
    _, numbered = label_width(shape, strides)
    repeats = prod(
        extent for extent, step in zip(shape, strides, strict=True) if step == 0 and extent > 1
    )
    width = _row(shape, strides, length, most)
    count = -(-length // width)
    if count <= ROWS:
        shown = list(range(count))
    else:
        shown = [*range(ROWS // 2), *range(count - ROWS // 2, count)]
    find = _Finder(shape, strides, low, numbered)
    rows = tuple(
        tuple(
            find(at) for at in range(low + row * width, low + min((row + 1) * width, length))
        )
        for row in shown
    )  # fmt: skip
    hidden = length - sum(map(len, rows))
    return Memory(
        low, length, width, rows, hidden, ROWS // 2 if hidden else len(rows), repeats, numbered
    )


def _row(shape: tuple[int, ...], strides: tuple[int, ...], length: int, most: int) -> int:
    """Return the items per row: all, or a multiple of a stride, which aligns the columns."""
    if length <= most:
        return max(length, 1)
    steps = [
        abs(step)
        for extent, step in zip(shape, strides, strict=True)
        if extent > 1 and 3 <= abs(step) <= most
    ]
    if not steps:
        return most
    step = max(steps)
    return step if length <= ROWS * step else step * (most // step)


class _Finder:
    """Finds the elements in an item of memory from its position."""

    def __init__(
        self, shape: tuple[int, ...], strides: tuple[int, ...], low: int, numbered: bool
    ) -> None:
        self.shape, self.low, self.numbered = shape, low, numbered
        self.repeated = {
            axis
            for axis, (extent, step) in enumerate(zip(shape, strides, strict=True))
            if step == 0 and extent > 1
        }
        axes = [
            (abs(step), extent, axis, step < 0)
            for axis, (extent, step) in enumerate(zip(shape, strides, strict=True))
            if extent > 1 and step != 0
        ]
        axes.sort(reverse=True)
        self.axes = axes
        self.reach = [0]  # items covered by the axes from each one on
        for step, extent, _, _ in reversed(axes):
            self.reach.append(self.reach[-1] + step * (extent - 1))
        self.reach.reverse()

    def __call__(self, at: int) -> Cell:
        found, ended = self._elements(at - self.low)
        if not found:
            return Cell(at, None, "" if ended else "?", known=ended)
        index = min(found)
        return Cell(at, index, self._label(index), len(found), known=ended)

    def _elements(self, place: int) -> tuple[list[tuple[int, ...]], bool]:
        """Return the elements ``place`` items above the lowest, and whether these are all."""
        found: list[tuple[int, ...]] = []
        pending: list[tuple[int, int, tuple[int, ...]]] = [(0, place, ())]
        tries, cut = _TRIES, False
        while pending:
            depth, left, steps = pending.pop()
            if depth == len(self.axes):
                if left == 0:
                    index = [0] * len(self.shape)
                    for (_, extent, axis, back), i in zip(self.axes, steps, strict=True):
                        index[axis] = extent - 1 - i if back else i
                    found.append(tuple(index))
                    if len(found) == MOST:
                        return found, False
                continue
            step, extent, _, _ = self.axes[depth]
            first = max(-((self.reach[depth + 1] - left) // step), 0)
            last = min(left // step, extent - 1)
            stop = min(last, first + MOST) + 1
            cut = cut or stop <= last
            for i in range(first, stop):
                tries -= 1
                pending.append((depth + 1, left - i * step, (*steps, i)))
            if tries < 0:
                return found, False
        return found, not cut

    def _label(self, index: tuple[int, ...]) -> str:
        if self.numbered:
            number = 0
            for extent, i in zip(self.shape, index, strict=True):
                number = number * extent + i
            return f"#{number}"
        return ",".join(":" if a in self.repeated else str(i) for a, i in enumerate(index)) or "()"
