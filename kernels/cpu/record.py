"""The loop nest of a copy as data: its axes, the record that a kernel reads, its parts for threads.

From the outside in::

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

from array import array
from typing import Any, NamedTuple

from arraybridge.kernels.cpu.host import VECTOR

__all__ = ["KINDS", "LINE", "NEST", "ONE", "SCRATCH", "Axis", "Key", "Plan"]

#: The inner kernels.
KINDS: dict[str, str] = {
    "runs": "runs of bytes, each straight to its place; one run is memmove",
    "items": "item by item: of any number of bytes, any steps, a destination with gaps",
    "tile": "square blocks transposed in vector registers",
    "split": "two to four channels taken apart: a step of two to four items",
    "merge": "two to four channels put together",
    "reverse": "rows read backwards",
    "fill": "one item a row, repeated",
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
    rows : int
        ``split``: how many of the channels are wanted; else 0.
    vector : int
        Bytes of the host's vectors.
    """

    kind: str
    width: int = 0
    parts: int = 0
    rows: int = 0
    vector: int = VECTOR

    @property
    def least(self) -> int:
        """Columns that a block must have."""
        if self.kind == "tile":
            return self.parts
        if self.kind == "split":
            return self.vector // self.width + (self.rows < self.parts)
        if self.kind in ("merge", "reverse", "fill"):
            return self.vector // self.width
        return 1


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
    *("cols", "cols_dst", "cols_src", "cols_chunk"),
    *("ahead", "outer"),
)

#: Bytes of a cache line, which is also the widest vector.
LINE = 64

#: Bytes of the scratch buffer.
SCRATCH = 96 << 10

ONE = Axis(1, 0, 0, 1)


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
    ahead : int
        Columns that one line of the source holds, if it is asked for a block ahead; else 0.
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
    rows: Axis = ONE
    planes: Axis = ONE
    leaves: Axis = ONE
    cols: Axis = ONE
    outer: tuple[Axis, ...] = ()
    dst_offset: int = 0
    src_offset: int = 0
    grain: tuple[int, int] = (1, 1)
    whole: bool = False
    ahead: int = 0

    @property
    def name(self) -> str:
        """What ``explain`` prints, such as ``tile 4 bytes x 16, streamed``."""
        kind, width, parts = self.kernel[:3]
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
            Records for the kernel, all of one length. No two write to the same byte. A kernel
            counts in its record: one call at a time for each; every call leaves it as it was.
        """
        dst, src = dst + self.dst_offset, src + self.src_offset
        if count <= 1 or self.whole:
            return [self._record(dst, src)]
        return [part._record(dst + to, src + source) for part, to, source in _cut(self, count)]

    @property
    def rows_out(self) -> int:
        """Bytes from a row to the next where a block is made."""
        if not self.staged or self.joined:
            return self.rows.dst
        cols = _most(self.cols, self.kernel.least)
        run = self.planes.chunk * self.leaves.extent * cols * self.item
        # A line in front of each row for what is left of the last stretch, one behind it that may
        # be read; and no two rows begin in the same set of the cache.
        return -(-run // LINE) * LINE + 2 * LINE

    @property
    def scratch(self) -> int:
        """Bytes of the scratch buffer that the blocks need."""
        if not self.staged:
            return 0
        rows = _most(self.rows, self.grain[0])
        if not self.joined:
            return rows * self.rows_out
        cols = self.cols.extent * self.item
        return rows * self.planes.chunk * self.leaves.extent * cols + 2 * LINE

    def _record(self, dst: int, src: int) -> array:
        words = array("q", (
            *(dst, src, self.item, self.stream, self.staged, self.joined, self.part_src),
            *self.rows, self.rows_out,
            *self.planes,
            *self.leaves[:3],
            *self.cols,
            self.ahead, len(self.outer),
        ))  # fmt: skip
        for axis in self.outer:
            words.extend((*axis[:3], 0))
        return words


def _most(axis: Axis, least: int) -> int:
    """Steps of the longest chunk: the last one, where less than `least` would have been left."""
    return min(axis.extent, axis.chunk + least - 1)


def _cut(whole: Plan, count: int) -> list[tuple[Plan, int, int]]:
    """Cut a plan along one loop: parts, with their offsets in the destination and the source."""
    loops: list[tuple[str | int, Axis, int]] = [
        (place, axis, 1) for place, axis in enumerate(whole.outer)
    ]
    loops.append(("rows", whole.rows, whole.grain[0]))
    loops.append(("planes", whole.planes, 1))
    if not whole.joined and whole.planes == whole.leaves == ONE:  # else a run goes on past them
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
            named: dict[str, Any] = {place: piece}
            made = whole._replace(**named)
        parts.append((made, start * axis.dst, start * axis.src))
        start = stop
    return parts
