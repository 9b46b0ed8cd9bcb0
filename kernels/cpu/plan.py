"""Which kernel copies a layout, how its loops are blocked, and how its work is cut for threads.

Pure: no address, no memory, no compiler; `plan` is cached. A copy is a nest of loops, from the
outside in::

    outer axes, the last one fastest
        rows, a chunk at a time          read along: the source steps by one item
            planes, a chunk at a time
                cols, a chunk at a time  written along: the destination steps by one item
                    one block: rows of the chunk x planes x leaves x cols

A block is what the inner kernel (`KINDS`) does at one go. Where the result is too large for the
cache, the block is made in a scratch buffer that stays in it, and then streamed to the destination
in whole lines past the cache (non-temporal stores save reading the lines that are overwritten);
else the kernel writes to the destination itself.
"""

from __future__ import annotations

import os
from array import array
from functools import lru_cache
from math import prod
from typing import NamedTuple

__all__ = ["KINDS", "NEST", "Axis", "Key", "Plan", "plan"]

#: The inner kernels.
KINDS: dict[str, str] = {
    "memmove": "one run of bytes",
    "runs": "runs of bytes, each straight to its place",
    "items": "items of any number of bytes, or steps that no other kernel knows",
    "tile": "square blocks transposed in vector registers",
    "split": "two to four channels taken apart: a step of two to four items",
    "merge": "two to four channels put together",
    "reverse": "rows read backwards",
    "fill": "one item a row, repeated",
    "any": "any strides, item by item: a destination with gaps",
}


class Key(NamedTuple):
    """What a kernel is compiled for.

    Attributes
    ----------
    kind : str
        Out of `KINDS`.
    width : int
        Bytes an item; 0 for any number of bytes, given in the record.
    parts : int
        ``tile``: items along a side of the square; ``split``, ``merge``: channels; else 0.
    """

    kind: str
    width: int = 0
    parts: int = 0


class Axis(NamedTuple):
    """One loop: strides in **bytes**; `chunk` is how much of it a block takes."""

    extent: int
    dst: int
    src: int
    chunk: int = 0


#: The words of a kernel's record, 8 bytes each; then the outer axes, four words each: extent,
#: destination's stride, source's stride, and a counter that must come in as 0.
NEST = (
    *("dst", "src", "item", "stream", "staged", "joined", "part_src"),
    *("rows", "rows_dst", "rows_src", "rows_chunk", "rows_out"),
    *("planes", "planes_dst", "planes_src", "planes_chunk"),
    *("leaves", "leaves_dst", "leaves_src"),
    *("cols", "cols_src", "cols_chunk", "cols_first"),
    "outer",
)

#: Bytes of a cache line, which is also the widest vector.
LINE = 64

#: Bytes of the items that there are kernels for.
WIDTHS = (1, 2, 4, 8, 16)

_ONE = Axis(1, 0, 0, 1)


class Plan(NamedTuple):
    """How one layout is copied to another. Offsets and strides in **bytes**.

    Attributes
    ----------
    kernel : Key
        What to compile.
    nbytes : int
        Bytes of the result.
    item : int
        Bytes that one step along `cols` writes: one item, or a whole pixel (``merge``).
    stream : bool
        Whether the result goes past the cache.
    staged : bool
        Whether blocks are made in a scratch buffer.
    joined : bool
        Whether a block is one run of the destination; else each of its rows is.
    part_src : int
        From a channel to the next in the source (``split``, ``merge``).
    rows, planes, leaves, cols : Axis
        The loops of a block. `cols` steps by `item` in the destination.
    outer : tuple of Axis
        The loops around them, outermost first.
    dst_offset, src_offset : int
        From the caller's addresses to the first item: axes were turned round.
    grain : tuple of int
        Rows and cols come in multiples of these where they are cut; what is left over is no less.
    whole : bool
        Whether it must not be cut: a destination that overlaps itself.
    """

    kernel: Key
    nbytes: int
    item: int = 1
    stream: bool = False
    staged: bool = False
    joined: bool = False
    part_src: int = 0
    rows: Axis = _ONE
    planes: Axis = _ONE
    leaves: Axis = _ONE
    cols: Axis = _ONE
    outer: tuple[Axis, ...] = ()
    dst_offset: int = 0
    src_offset: int = 0
    grain: tuple[int, int] = (1, 1)
    whole: bool = False

    @property
    def name(self) -> str:
        """What ``explain`` prints, such as ``tile 4 bytes x 16, streamed``."""
        kind, width, parts = self.kernel
        words = [kind]
        if width:
            words.append(f"{width} byte{'s' if width > 1 else ''}")
        if parts:
            words.append(f"x {parts}")
        return " ".join(words) + (", streamed" if self.stream else "")

    def slices(self, dst: int, src: int, count: int = 1) -> list[array]:
        """Cut the copy into independent parts.

        Parameters
        ----------
        dst, src : int
            The caller's addresses.
        count : int
            How many parts, at most.

        Returns
        -------
        list of array of int64
            Records for the kernel, all of one length. No two write to the same byte. A kernel counts
            in its record: one call at a time for each, and every call leaves it as it was.
        """
        dst, src = dst + self.dst_offset, src + self.src_offset
        if count <= 1 or self.whole:
            return [self._record(dst, src)]
        return [
            part._record(dst + to, src + source) for part, to, source in _cut(self, count)
        ]

    def _record(self, dst: int, src: int) -> array:
        rows, planes, leaves, cols = self.rows, self.planes, self.leaves, self.cols
        rows_out = rows.dst
        first = cols.chunk
        if self.staged and not self.joined:
            run = planes.chunk * leaves.extent * cols.chunk * self.item
            # Rows of the scratch buffer start on a line each, and not all in the same set of it.
            rows_out = -(-run // LINE) * LINE + LINE
            if cols.chunk < cols.extent:
                first = _to_a_line(dst, cols.chunk, self.item, self.grain[1])
        words = array("q", (
            *(dst, src, self.item, self.stream, self.staged, self.joined, self.part_src),
            *rows, rows_out,
            *planes,
            *leaves[:3],
            *(cols.extent, cols.src, cols.chunk, first),
            len(self.outer),
        ))  # fmt: skip
        for axis in self.outer:
            words.extend((*axis[:3], 0))
        return words


def _to_a_line(dst: int, chunk: int, item: int, least: int) -> int:
    """Items of a first chunk after which the destination is at a line, if there is such a number."""
    for first in range(chunk, max(chunk - LINE, least - 1), -1):
        if (dst + first * item) % LINE == 0:
            return first
    return chunk


def _cut(whole: Plan, count: int) -> list[tuple[Plan, int, int]]:
    """Cut a plan along one loop: parts, with their offsets in the destination and the source."""
    loops: list[tuple[str | int, Axis, int]] = list(
        (place, axis, 1) for place, axis in enumerate(whole.outer)
    )
    loops.append(("rows", whole.rows, whole.grain[0]))
    loops.append(("planes", whole.planes, 1))
    loops.append(("cols", whole.cols, whole.grain[1]))
    # Along the loop that steps furthest in the destination, so that each part is one piece of it,
    # unless that is so short that the parts would be unequal.
    fit = [loop for loop in loops if loop[1].extent >= 8 * count * loop[2]]
    if fit:
        place, axis, grain = max(fit, key=lambda loop: abs(loop[1].dst))
    else:
        place, axis, grain = max(loops, key=lambda loop: loop[1].extent // loop[2])
    grains = axis.extent // grain
    count = min(count, grains)
    parts = []
    start = 0
    for part in range(1, count + 1):
        stop = grains * part // count * grain if part < count else axis.extent
        piece = axis._replace(extent=stop - start, chunk=min(axis.chunk, stop - start))
        if isinstance(place, int):
            outer = (*whole.outer[:place], piece, *whole.outer[place + 1 :])
            made = whole._replace(outer=outer)
        else:
            made = whole._replace(**{place: piece})
        parts.append((made, start * axis.dst, start * axis.src))
        start = stop
    return parts


@lru_cache(1024)
def plan(
    shape: tuple[int, ...],
    dst_strides: tuple[int, ...],
    src_strides: tuple[int, ...],
    itemsize: int,
) -> Plan:
    """Choose the kernel for a layout, and block its loops.

    Parameters
    ----------
    shape, dst_strides, src_strides, itemsize
        As for ``arraybridge.kernels.cpu.copy``; no extent is 0. Any layout gives a right plan; a
        good one comes of ``arraybridge.layout.canonical``'s, whose axes are fused.

    Returns
    -------
    Plan

    Raises
    ------
    ValueError
        Where the tuples differ in length.
    """
    axes = []
    dst_offset = src_offset = 0
    for extent, dst, src in zip(shape, dst_strides, src_strides, strict=True):
        if extent == 1:
            continue
        if dst < 0:
            dst_offset += (extent - 1) * dst
            src_offset += (extent - 1) * src
            dst, src = -dst, -src
        axes.append(Axis(extent, dst, src, extent))
    axes.sort(key=lambda axis: -axis.dst)
    nbytes = itemsize * prod(axis.extent for axis in axes)
    made = _choose(axes, itemsize, nbytes)
    return made._replace(
        dst_offset=made.dst_offset + dst_offset, src_offset=made.src_offset + src_offset
    )


def _choose(axes: list[Axis], itemsize: int, nbytes: int) -> Plan:
    """Choose for axes of two or more, in the order of the destination's strides, all forwards."""
    if not axes:
        return Plan(Key("memmove"), nbytes, cols=Axis(nbytes, 1, 1, nbytes))
    reach = itemsize
    for axis in reversed(axes):
        if axis.dst < reach:  # the destination overlaps itself, or that cannot be ruled out
            return _anyhow(axes, itemsize, nbytes, whole=True)
        reach = axis.dst * (axis.extent - 1) + reach
    return _anyhow(axes, itemsize, nbytes)


def _anyhow(axes: list[Axis], itemsize: int, nbytes: int, whole: bool = False) -> Plan:
    """Item by item; square tiles of the two inner loops, where they run along different axes."""
    width = itemsize if itemsize in WIDTHS else 0
    *outer, cols = axes
    rows = _ONE
    if outer:
        rows = min(reversed(outer), key=lambda axis: abs(axis.src))
        outer.remove(rows)
    if abs(rows.src) < abs(cols.src):
        rows, cols = rows._replace(chunk=128), cols._replace(chunk=8)
    return Plan(
        Key("any", width), nbytes, itemsize, rows=rows, cols=cols, outer=tuple(outer), whole=whole
    )
