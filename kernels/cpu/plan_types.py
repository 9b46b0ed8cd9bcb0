"""The loop nest of a copy as data: its axes, and the record that a kernel reads.

From the outside in::

    outer axes, the last one fastest
        rows, a chunk at a time          read along: the source steps by one item
            planes, a chunk at a time
                cols, a chunk at a time  written along: the destination steps by one item
                    one block: rows of the chunk x planes x leaves x cols

The inner kernel copies one block per call. If the result is too large for the cache, the block is
made in a scratch buffer in the cache, and then streamed to the destination in whole lines past the
cache (non-temporal stores avoid reading the lines to overwrite); otherwise the kernel writes to the
destination.
"""

from __future__ import annotations

import contextlib
from array import array
from math import prod
from typing import NamedTuple

from arraybridge.kernels.cpu.loader import VECTOR


def _cache() -> int:
    """Read the size of the last-level cache on Linux; elsewhere assume 16 MiB."""
    units = {"K": 1 << 10, "M": 1 << 20}
    for level in (3, 2):
        with contextlib.suppress(OSError, ValueError, KeyError):
            with open(f"/sys/devices/system/cpu/cpu0/cache/index{level}/size") as file:
                size = file.read().strip()
            return int(size[:-1]) * units[size[-1]]
    return 1 << 24


#: The least bytes of a result that is written past the caches: half of the last one, at most 8 MB,
#: as many cores may share it. Copies of 8 to 64 MB were 1.3 to 2.7 times as fast past a cache of
#: 300 MB, and still faster with a read afterwards.
STREAM_MIN_BYTES = min(_cache() // 2, 8 << 20)


class Key(NamedTuple):
    """The compile-time parameters of a kernel."""

    kind: str  # "runs", "items", "tile", "split", "merge", "reverse" or "fill": see docs/kernels.md
    width: int = 0  # bytes per item; 0: any number, from the record
    parts: int = 0  # ``tile``: items along a side of the square; ``split``, ``merge``: channels
    rows: int = 0  # ``split``: the number of wanted channels
    vector: int = VECTOR  # bytes of the host's vectors

    @property
    def least_rows(self) -> int:
        """The least rows of a block; ``split`` has exactly as many."""
        return {"tile": self.parts, "split": self.rows}.get(self.kind, 1)

    @property
    def least_cols(self) -> int:
        """The least columns of a block."""
        if self.kind == "tile":
            return self.parts
        if self.kind == "split":
            return self.vector // self.width + (self.rows < self.parts)
        if self.kind in ("merge", "reverse", "fill"):
            return self.vector // self.width
        return 1


class Axis(NamedTuple):
    """One loop of a copy."""

    extent: int  # steps
    dst: int  # like `src`, **bytes** from one step to the next
    src: int
    chunk: int = 0  # steps per block


#: The words of a record, 8 bytes each. Three words per outer axis follow: extent, destination's
#: stride, source's stride.
NEST = (
    "inner least_rows least_cols parts item stream staged joined part_src "
    "rows rows_dst rows_src rows_chunk rows_out planes planes_dst planes_src planes_chunk "
    "leaves leaves_dst leaves_src cols cols_dst cols_src cols_chunk ahead outer"
).split()

#: The most outer axes: more have no end, as each has at least two steps.
MOST_OUTER = 64

#: Bytes of a cache line, and of the widest vector.
LINE = 64

#: Bytes of the scratch buffer.
SCRATCH = 96 << 10

ONE = Axis(1, 0, 0, 1)


class Plan(NamedTuple):
    """How one layout is copied to another. Offsets and strides in **bytes**."""

    kernel: Key
    nbytes: int  # bytes of the result
    item: int = 1  # bytes that one step along `cols` writes: one item, or a whole pixel (``merge``)
    stream: bool = False  # whether the result goes past the cache
    staged: bool = False  # whether blocks are made in a scratch buffer
    joined: bool = False  # whether a block is one run of the destination, rather than each row
    part_src: int = 0  # from one channel to the next in the source (``split``, ``merge``)
    rows: Axis = ONE  # this and the next three are a block's loops; `cols` steps by `item`
    planes: Axis = ONE
    leaves: Axis = ONE
    cols: Axis = ONE
    outer: tuple[Axis, ...] = ()  # the loops around them, outermost first
    whole: bool = False  # whether it is not cut in slices: the destination may overlap itself
    dst_offset: int = 0  # these are added to the caller's addresses, as axes were reversed
    src_offset: int = 0
    ahead: int = 0  # columns per line of the source, if the next block is prefetched; else 0

    @property
    def rows_out(self) -> int:
        """Bytes from one row to the next where a block is made."""
        if not self.staged or self.joined:
            return self.rows.dst
        cols = _most(self.cols, self.kernel.least_cols)
        run = self.planes.chunk * self.leaves.extent * cols * self.item
        # One line before each row for the rest of its last part, and one after it that may be read,
        # which also keeps rows in different sets of the cache.
        return -(-run // LINE) * LINE + 2 * LINE

    @property
    def scratch(self) -> int:
        """Bytes of the scratch buffer that the blocks need."""
        if not self.staged:
            return 0
        rows = _most(self.rows, self.kernel.least_rows)
        if not self.joined:
            return rows * self.rows_out
        cols = self.cols.extent * self.item
        return rows * self.planes.chunk * self.leaves.extent * cols + 2 * LINE

    @property
    def blocks(self) -> int:
        """The number of blocks: calls of the inner kernel, or of several if it has leaves."""
        key = self.kernel
        loops = (self.rows, key.least_rows), (self.planes, 1), (self.cols, key.least_cols)
        chunks = [1 + (axis.extent - least) // axis.chunk for axis, least in loops]
        return prod(chunks) * prod(axis.extent for axis in self.outer)

    def record(self, inner: int) -> array[int]:
        """Return the words that the nest reads (`NEST`), for the address of the inner kernel."""
        key = self.kernel
        words = array("q", (
            *(inner, key.least_rows, key.least_cols, key.parts),
            *(self.item, self.stream, self.staged, self.joined, self.part_src),
            *self.rows[:4], self.rows_out,
            *self.planes[:4],
            *self.leaves[:3],
            *self.cols[:4],
            self.ahead, len(self.outer),
        ))  # fmt: skip
        for axis in self.outer:
            words.extend(axis[:3])
        return words


def _most(axis: Axis, least: int) -> int:
    """Return the steps of the longest chunk: the last one takes a rest of less than `least`."""
    return min(axis.extent, axis.chunk + least - 1)
