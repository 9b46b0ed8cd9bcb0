"""Which kernel copies a layout, and how its loops are blocked.

Pure functions without addresses, memory or a compiler; `plan` is cached. See `plan_types`.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

from arraybridge.kernels.cpu.checks import check
from arraybridge.kernels.cpu.loader import VECTOR
from arraybridge.kernels.cpu.plan_types import (
    LINE,
    ONE,
    SCRATCH,
    STREAM_MIN_BYTES,
    Axis,
    Key,
    Plan,
)
from arraybridge.layout import Canonical

#: Item sizes in bytes with vector kernels.
WIDTHS = (1, 2, 4, 8, 16)

#: The least bytes of a result whose tiles are streamed past the cache. Tiles store short pieces to
#: many rows: unstreamed, results of 2 to 8 MB took 3 to 15 times as long.
STREAM_TILES_MIN_BYTES = 3 << 18

#: Bytes of a run from which on it is moved directly to its destination.
RUN = 1024

#: Bytes of: the part of the scratch buffer that fits the nearest cache; a block that is one run;
#: one row of a block of several; what a block reads from one row of the source.
L1_BYTES, BLOCK, RUN_OUT, ROW_IN = 48 << 10, 16 << 10, 512, 256

#: Bytes: steps of less, in rows of more, the CPU itself fetches beforehand. To assemble such items
#: in a buffer costs more than it gains.
NEAR, LONG = 96, 16 << 10

#: Columns of a block of several rows: the number of source lines that are requested at once.
COLS = 128

#: (ROW_IN, COLS) of staged tiles, by item size: the best, or nearly, of about ten pairs per width
#: on eleven layouts. Source lines a page apart share few sets of the caches: more columns would
#: evict prefetched lines.
TILES = {1: (128, 192), 2: (256, 96), 4: (256, 48), 8: (384, 32), 16: (512, 64)}

#: The same for items that are moved one by one: (least item size, ROW_IN, COLS).
ITEMS = ((0, 256, 64), (32, 256, 128), (64, 1024, 16), (256, 256, 32), (512, 256, 1))


@lru_cache(1024)
def plan(form: Canonical, fresh: bool = False) -> Plan:
    """Choose the kernel for a layout that is not empty, and block its loops.

    The caller adds the offsets of the canonical form. `fresh`: the destination has no pages yet.
    The system clears each at its first write, which brings it into the cache: writing past the
    cache would take 1.4 times as long.
    """
    axes = [*map(Axis, form.shape, form.dst_strides, form.src_strides, form.shape)]
    made = _choose(axes, form.itemsize, form.itemsize * prod(form.shape))
    wrong = check(made)
    if wrong:
        raise RuntimeError(
            f"the plan of this copy does not fit its kernel: {wrong}. Please report it, with {made}"
        )
    return made._replace(stream=False) if fresh else made


def _choose(axes: list[Axis], itemsize: int, nbytes: int) -> Plan:
    """Choose for axes of at least two items, ordered by the destination's positive strides."""
    stream = nbytes >= STREAM_MIN_BYTES
    if not axes:
        # memcpy decides itself when to write past the cache.
        return Plan(Key("runs", vector=VECTOR), nbytes, cols=Axis(nbytes, 1, 1, nbytes))
    *outer, cols = axes
    reach = itemsize
    for axis in reversed(axes):
        if axis.dst < reach:  # the destination may overlap itself
            return _items(outer, cols, itemsize, nbytes, _nearest(outer))._replace(whole=True)
        reach += axis.dst * (axis.extent - 1)
    if itemsize >= RUN or (cols.dst != itemsize and itemsize >= LINE):
        rows, cols = _pieces(cols, Axis(itemsize, 1, 1), 1)
        made = _plan("runs", 0, outer, cols, nbytes, 1, rows=rows)
        return made._replace(stream=stream and itemsize >= RUN)
    if cols.dst != itemsize:
        return _items(outer, cols, itemsize, nbytes, _nearest(outer))
    chosen = _vectors(outer, cols, itemsize, nbytes) if itemsize in WIDTHS else None
    made = chosen or _items(outer, cols, itemsize, nbytes)
    if made.kernel.kind == "tile":
        stream = nbytes >= min(STREAM_TILES_MIN_BYTES, STREAM_MIN_BYTES)
        if not stream and itemsize >= 8 and made.rows.dst % LINE:
            # Every vector store would cross a line: 1.5 times as slow as single items.
            made = _items(outer, cols, itemsize, nbytes)
    elif made.kernel.kind == "items" and made.rows is ONE and 0 < abs(cols.src) < NEAR:
        stream &= cols.extent * abs(cols.src) < LONG
    made = _blocked(made._replace(stream=stream, staged=stream))
    if outer and nbytes <= min(16 * itemsize, 256) * made.blocks:  # a few items a call
        long = (axis for axis in reversed(outer) if axis.extent >= 16)
        rows = next(long, max(outer, key=lambda axis: axis.extent))
        made = _items(outer, cols, itemsize, nbytes, rows)
    return made


def _plan(
    kind: str, width: int, outer: list[Axis], cols: Axis, nbytes: int, item: int, *,
    parts: int = 0, count: int = 0, rows: Axis = ONE,
) -> Plan:  # fmt: skip
    """Make a plan, perhaps with one of the outer axes as rows."""
    key, outer = Key(kind, width, parts, count, VECTOR), _without(outer, rows)
    return Plan(key, nbytes, item, rows=rows, cols=cols, outer=tuple(outer))


def _items(
    outer: list[Axis], cols: Axis, itemsize: int, nbytes: int, given: Axis | None = None
) -> Plan:
    """Items one by one, with an axis as rows that has a smaller stride in the source.

    With `given` rows, items are written to their destination at once.
    """
    rows = given or _nearest(outer)
    if not given and abs(rows.src) >= min(abs(cols.src), RUN):
        rows = ONE
    width = itemsize if itemsize <= 32 else 0
    made = _plan("items", width, outer, cols, nbytes, itemsize, rows=rows)
    if not given:
        return made
    if rows.extent > 1 and abs(rows.src) < abs(cols.src):
        rows, cols = rows._replace(chunk=128), cols._replace(chunk=8)
    else:
        rows, cols = _pieces(rows, cols, itemsize)
    return made._replace(rows=rows, cols=cols)


def _nearest(axes: list[Axis]) -> Axis:
    """Return the axis with the smallest stride in the source, but not 0; the last of equals."""
    return min(reversed(axes), key=lambda axis: abs(axis.src) or 2**62, default=ONE)


def _pieces(rows: Axis, cols: Axis, item: int) -> tuple[Axis, Axis]:
    """Limit a block to `BLOCK` bytes, so that there are enough blocks for many threads."""
    cols = cols._replace(chunk=min(cols.extent, max(BLOCK // item, 1)))
    return rows._replace(chunk=min(rows.extent, max(BLOCK // (item * cols.chunk), 1))), cols


def _without(axes: list[Axis], axis: Axis) -> list[Axis]:
    return [other for other in axes if other is not axis]


def _vectors(outer: list[Axis], cols: Axis, width: int, nbytes: int) -> Plan | None:
    """Choose an inner kernel that moves vectors; None if the extents are too short."""
    lanes, given = VECTOR // width, (cols, nbytes, width)
    # Channels to merge: the columns are channels, and the axis around them is the pixels.
    if outer and cols.extent <= 4 and width < 16:
        *rest, pixels = outer
        item = cols.extent * width
        if pixels.src == width and pixels.dst == item and pixels.extent >= lanes:
            made = _plan("merge", width, rest, pixels, nbytes, item, parts=cols.extent)
            return made._replace(part_src=cols.src)
    if cols.src == 0 and cols.extent >= lanes:
        return _plan("fill", width, outer, *given)
    if cols.src == -width and cols.extent >= lanes:
        return _plan("reverse", width, outer, *given)
    rows = next((axis for axis in reversed(outer) if abs(axis.src) == width), ONE)
    step = cols.src // width
    if width < 16 and cols.src == step * width and 2 <= step <= 4 and rows.extent <= step:
        least = lanes + (rows.extent < step)
        if rows.src >= 0 and cols.extent >= least:
            return _plan("split", width, outer, *given, parts=step, count=rows.extent, rows=rows)
    for side in (64, 32, 16, 8, 4, 2):
        if side * width <= VECTOR and side * width >= 4 and side <= min(rows.extent, cols.extent):
            made = _plan("tile", width, outer, *given, parts=side, rows=rows)
            if rows.src > 0:
                return made
            # Read forwards, write the rows from the last to the first.
            dst, src = ((rows.extent - 1) * by for by in (rows.dst, rows.src))
            rows = rows._replace(dst=-rows.dst, src=-rows.src)
            return made._replace(rows=rows, dst_offset=dst, src_offset=src)
    return None


def _blocked(made: Plan) -> Plan:
    """Choose the part of each loop in a block: long runs of the destination, whole lines."""
    rows, cols, outer = made.rows, made.cols, list(made.outer)
    least, least_rows = made.kernel.least_cols, made.kernel.least_rows
    run = made.item * cols.extent
    planes = leaves = ONE
    joined = False
    target = BLOCK if rows.extent == 1 else min(max(RUN_OUT, COLS * made.item), 2 * BLOCK)
    long = target // made.item if rows.extent == 1 else min(COLS, 2 * BLOCK // made.item)
    if made.kernel.kind == "split" and rows.extent > 1:  # whose source is read in one piece
        long = (BLOCK // 4 if made.staged else BLOCK) // (made.item * rows.extent)
    row_in, across, whole = ROW_IN, _multiple(long, min(LINE, max(long, 1)), least), BLOCK
    if made.staged and made.kernel.kind == "tile":
        row_in, across = TILES[made.kernel.width]
        whole = 2 * BLOCK
    elif made.staged and made.kernel.kind == "items" and rows.extent > 1:
        row_in, across = next(pair for start, *pair in reversed(ITEMS) if made.item >= start)
        across = min(across, long)
    if cols.extent > long or not made.staged:
        cols = cols._replace(chunk=min(cols.extent, max(across, least)))
        more = next((axis for axis in reversed(outer) if axis.dst == run), None)
        if made.staged and more is not None:  # the run continues: its lines stay whole
            outer, planes = _without(outer, more), more._replace(chunk=1)
        run = made.item * cols.chunk
    else:
        # Add axes that continue the run until it is long enough, of the last one only a chunk.
        # `fits`: the bytes per row if the least number of rows are in the buffer.
        fits = SCRATCH // (2 * least_rows - 1) - least * made.item - 3 * LINE
        while run < target and not joined:
            if rows.extent > 1 and rows.dst == run:
                target, joined = whole, True
                chunk = max(target // run, made.kernel.parts)
                rows = rows._replace(chunk=_multiple(chunk, 8, made.kernel.parts))
                break
            more = next((axis for axis in reversed(outer) if axis.dst == run), None)
            if more is None or planes is not ONE:
                break
            outer = _without(outer, more)
            beyond = next((axis for axis in outer if axis.dst == more.extent * run), None)
            if (
                leaves is ONE
                and beyond is not None
                and more.extent * run <= min(4 * target, L1_BYTES, fits)
            ):
                outer, leaves = _without(outer, beyond), more
                run *= more.extent
                planes = beyond._replace(chunk=min(beyond.extent, max(1, target // run)))
                run *= planes.chunk
                break
            if more.extent * run >= target or leaves is not ONE:
                planes = more._replace(chunk=min(more.extent, max(1, target // run)))
                run *= planes.chunk
                break
            leaves = more
            run *= more.extent
    if planes is ONE and not joined:
        planes, leaves = leaves, ONE
    if not joined and rows.extent > 1:
        chunk = row_in // abs(rows.src) if rows.src else 1
        if made.staged:  # a chunk fits the nearest cache, and with a remainder the buffer
            most = SCRATCH // (run + least * made.item + 3 * LINE) - made.kernel.parts
            space = L1_BYTES if cols.chunk < cols.extent else L1_BYTES // 2
            chunk = min(chunk, space // (run + 3 * LINE), most)
        rows = rows._replace(chunk=_multiple(chunk, made.kernel.parts or 1, made.kernel.parts or 1))
    if rows.extent * abs(rows.src) < 8 * LINE and outer:
        # The lines that a block has read have more items: continue with its neighbors.
        near = _nearest(outer)
        outer = [*_without(outer, near), near]
    kind = made.kernel.kind
    if kind in ("fill", "reverse", "items") and rows is ONE and outer and not made.staged:
        rows = outer.pop()._replace(chunk=max(BLOCK // run, 1))  # several runs a call
    rows, planes, cols = (
        axis._replace(chunk=min(axis.chunk, axis.extent)) for axis in (rows, planes, cols)
    )
    # The next block is prefetched, unless it shares lines with this one, or the CPU itself fetches
    # what is read in one piece.
    cut = (axis for axis in (cols, planes, rows) if axis.chunk < axis.extent)
    beyond = next(cut, outer[-1]._replace(chunk=1) if outer else ONE)
    far = abs(beyond.chunk * beyond.src) >= LINE and (kind != "split" or rows.extent == 1)
    return made._replace(
        rows=rows, cols=cols, planes=planes, leaves=leaves, outer=tuple(outer), joined=joined,
        ahead=max(1, LINE // max(abs(cols.src), 1)) if made.staged and far else 0,
    )  # fmt: skip


def _multiple(count: int, of: int, least: int) -> int:
    """Round `count` down to a multiple of `of`, but at least `least`."""
    return max(count // of * of, least, 1)
