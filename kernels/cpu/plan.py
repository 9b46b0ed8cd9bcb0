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

from array import array
from functools import lru_cache
from math import prod
from typing import NamedTuple

from arraybridge.kernels.cpu.host import CACHE, VECTOR

__all__ = ["KINDS", "NEST", "Axis", "Key", "Plan", "plan"]

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

#: Bytes of the items that there are kernels for.
WIDTHS = (1, 2, 4, 8, 16)

#: Bytes of a result from which on it is streamed past the cache; tiles are sooner.
STREAM = CACHE // 2

#: Bytes of a run from which on it is moved straight to its place.
RUN = 1024

#: Bytes of the scratch buffer; of what of it a block takes, so that it stays in the nearest cache;
#: of a block that is one run; of one row of a block that is several; and of what a block reads
#: from one row of the source.
SCRATCH, NEAREST, BLOCK, RUN_OUT, ROW_IN = 96 << 10, 48 << 10, 16 << 10, 512, 256

#: Columns of a block that is several rows: so many lines of the source are asked for at once. With
#: `ROW_IN`, 32 KB a block for every width of item: best or near it of 16 pairs for 1 and 16 bytes.
COLS = 128

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
    rows: Axis = _ONE
    planes: Axis = _ONE
    leaves: Axis = _ONE
    cols: Axis = _ONE
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
    if not whole.joined and whole.planes == whole.leaves == _ONE:  # else a run goes on past them
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
    stream = nbytes >= STREAM
    if not axes:
        # memcpy knows by itself when to go past the cache.
        return Plan(Key("runs", vector=VECTOR), nbytes, cols=Axis(nbytes, 1, 1, nbytes))
    *outer, cols = axes
    reach = itemsize
    for axis in reversed(axes):
        if axis.dst < reach:  # the destination overlaps itself, or that cannot be ruled out
            return _item_by_item(outer, cols, itemsize, nbytes)._replace(whole=True)
        reach += axis.dst * (axis.extent - 1)
    if itemsize >= RUN or (cols.dst != itemsize and itemsize >= LINE):
        run = Axis(itemsize, 1, 1, itemsize)
        return Plan(
            Key("runs", vector=VECTOR), nbytes, 1, stream and itemsize >= RUN,
            rows=cols, cols=run, outer=tuple(outer),
        )  # fmt: skip
    if cols.dst != itemsize:
        return _item_by_item(outer, cols, itemsize, nbytes)
    made = None
    if itemsize in WIDTHS:
        made = _vectors(outer, cols, itemsize, nbytes)
    if made is None:
        rows = _ONE
        if outer:
            nearest = min(reversed(outer), key=lambda axis: abs(axis.src))
            if abs(nearest.src) < min(abs(cols.src), RUN):
                rows = nearest
                outer = _without(outer, rows)
        width = itemsize if itemsize <= 32 else 0
        made = Plan(
            Key("items", width, vector=VECTOR), nbytes, itemsize,
            rows=rows, cols=cols, outer=tuple(outer),
        )  # fmt: skip
    if made.kernel.kind == "tile":
        # Tiles store short pieces to many rows: past the cache they win earlier, and much earlier
        # where the rows fall into the same few sets of the nearest cache.
        clash = made.rows.dst % 2048 == 0
        stream = nbytes >= (STREAM // 16 if clash else STREAM // 4)
    return _blocked(made._replace(stream=stream, staged=stream))


def _item_by_item(outer: list[Axis], cols: Axis, itemsize: int, nbytes: int) -> Plan:
    """Square tiles of the two inner loops, where they run along different axes."""
    rows = _ONE
    if outer:
        rows = min(reversed(outer), key=lambda axis: abs(axis.src))
        outer = _without(outer, rows)
        if abs(rows.src) < abs(cols.src):
            rows, cols = rows._replace(chunk=128), cols._replace(chunk=8)
    key = Key("items", itemsize if itemsize <= 32 else 0, vector=VECTOR)
    return Plan(key, nbytes, itemsize, rows=rows, cols=cols, outer=tuple(outer))


def _without(axes: list[Axis], axis: Axis) -> list[Axis]:
    place = next(place for place, other in enumerate(axes) if other is axis)
    return axes[:place] + axes[place + 1 :]


def _vectors(outer: list[Axis], cols: Axis, width: int, nbytes: int) -> Plan | None:
    """Choose an inner kernel that moves vectors; None where the extents are too short for all."""
    lanes = VECTOR // width

    def made(kind, *, parts=0, count=0, rows=_ONE, pixels=cols, rest=outer, item=width, **more):
        return Plan(
            Key(kind, width, parts, count, VECTOR), nbytes, item,
            rows=rows, cols=pixels, outer=tuple(rest), **more,
        )  # fmt: skip

    # Channels put together: the columns are channels, and pixels the axis around them.
    if outer and cols.extent <= 4 and width < 16:
        pixels = outer[-1]
        if pixels.src == width and pixels.dst == cols.extent * width and pixels.extent >= lanes:
            return made(
                "merge", parts=cols.extent, pixels=pixels, rest=outer[:-1],
                item=pixels.dst, part_src=cols.src,
            )  # fmt: skip
    if cols.src == 0 and cols.extent >= lanes:
        return made("fill")
    if cols.src == -width and cols.extent >= lanes:
        return made("reverse")
    rows = next((axis for axis in reversed(outer) if abs(axis.src) == width), _ONE)
    step = cols.src // width
    if width < 16 and cols.src == step * width and 2 <= step <= 4 and rows.extent <= step:
        least = lanes + (rows.extent < step)
        if rows.src >= 0 and cols.extent >= least:
            rest = _without(outer, rows) if rows is not _ONE else outer
            return made("split", parts=step, count=rows.extent, rows=rows, rest=rest)
    for side in (64, 32, 16, 8, 4, 2):
        if side * width <= VECTOR and side * width >= 4 and side <= min(rows.extent, cols.extent):
            rest = _without(outer, rows)
            dst_offset = src_offset = 0
            if rows.src < 0:  # read forwards, and write the rows from the last to the first
                dst_offset, src_offset = ((rows.extent - 1) * by for by in (rows.dst, rows.src))
                rows = rows._replace(dst=-rows.dst, src=-rows.src)
            return made(
                "tile", parts=side, rows=rows, rest=rest, dst_offset=dst_offset,
                src_offset=src_offset,
            )  # fmt: skip
    return None


def _blocked(made: Plan) -> Plan:
    """Find what of the loops one block takes: a long run of the destination, whole source lines."""
    rows, cols, outer = made.rows, made.cols, list(made.outer)
    least = made.kernel.least
    run = made.item * cols.extent
    planes = leaves = _ONE
    joined = False
    target = BLOCK if rows.extent == 1 else min(max(RUN_OUT, COLS * made.item), 2 * BLOCK)
    long = target // made.item if rows.extent == 1 else min(COLS, 2 * BLOCK // made.item)
    if cols.extent > long or not made.staged:
        cols = cols._replace(chunk=min(cols.extent, _multiple(long, LINE, least)))
        more = next((axis for axis in reversed(outer) if axis.dst == run), None)
        if made.staged and more is not None:  # the run goes on: no line is left in two parts
            outer, planes = _without(outer, more), more._replace(chunk=1)
        run = made.item * cols.chunk
    else:
        # Axes that go on where the run ends, until it is long; of the last one a chunk will do.
        while run < target and not joined:
            if rows.extent > 1 and rows.dst == run:
                target, joined = BLOCK, True
                chunk = max(target // run, made.kernel.parts)
                rows = rows._replace(chunk=_multiple(chunk, 8, made.kernel.parts))
                break
            more = next((axis for axis in reversed(outer) if axis.dst == run), None)
            if more is None or planes is not _ONE:
                break
            outer = _without(outer, more)
            beyond = next((axis for axis in outer if axis.dst == more.extent * run), None)
            if (
                leaves is _ONE
                and beyond is not None
                and more.extent * run <= min(4 * target, NEAREST)
            ):
                outer, leaves = _without(outer, beyond), more
                run *= more.extent
                planes = beyond._replace(chunk=min(beyond.extent, max(1, target // run)))
                run *= planes.chunk
                break
            if more.extent * run >= target or leaves is not _ONE:
                planes = more._replace(chunk=min(more.extent, max(1, target // run)))
                run *= planes.chunk
                break
            leaves = more
            run *= more.extent
    if planes is _ONE and not joined:
        planes, leaves = leaves, _ONE
    if not joined and rows.extent > 1:
        chunk = ROW_IN // abs(rows.src) if rows.src else 1
        if made.staged:  # a chunk fits the nearest cache, and with what may be left over the buffer
            most = SCRATCH // (run + least * made.item + 3 * LINE) - made.kernel.parts
            chunk = min(chunk, NEAREST // (run + 3 * LINE), most)
        rows = rows._replace(chunk=_multiple(chunk, made.kernel.parts or 1, made.kernel.parts or 1))
    if rows.extent * abs(rows.src) < 8 * LINE and outer:
        # The lines that a block has read hold more: what is next to it comes next.
        near = min(reversed(outer), key=lambda axis: abs(axis.src) or 2**62)
        outer = [*_without(outer, near), near]
    grain = (made.kernel.parts if made.kernel.kind == "tile" else 1, least)
    rows, planes, cols = (
        axis._replace(chunk=min(axis.chunk, axis.extent)) for axis in (rows, planes, cols)
    )
    return made._replace(
        rows=rows, cols=cols, planes=planes, leaves=leaves, outer=tuple(outer), joined=joined,
        grain=grain,
        ahead=max(1, LINE // max(abs(cols.src), 1)) if made.staged else 0,
    )  # fmt: skip


def _multiple(count: int, of: int, least: int) -> int:
    """The multiple of `of` that is next below `count`, but no less than `least`."""
    return max(count // of * of, least, 1)
