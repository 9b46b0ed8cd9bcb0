"""What a copy would take on an H100, from the sectors and passes of sampled blocks.

    python -m tests.simt.model [--write]      the table; into benchmarks/results/cuda_model.md

Addresses alone are run: no byte, and no GPU. The time is that of the slowest of three resources.
Memory moves each sector that an element lies in, once. L2 gives a block each sector of the source
that its requests touch, once (L1 keeps it), and takes the sectors of each store. The load-store
units take a pass for each line of 128 bytes that a request of global memory touches, and those of
shared memory.
"""

from __future__ import annotations

import sys
from functools import cache
from math import prod
from pathlib import Path
from statistics import geometric_mean
from typing import Any, NamedTuple

import numpy as np

from arraybridge import layout
from arraybridge.kernels.cuda.family import FAMILY
from arraybridge.kernels.cuda.plan_types import Axis, Plan
from arraybridge.kernels.cuda.tuning import DEFAULT, Tuning
from benchmarks import layouts

from .launch import launch
from .memory import DST, SRC
from .nest import planned, plans
from .transactions import SECTOR, Traffic, traffic

DRAM = 3.0e12  # bytes a second, read and written, as the device-to-device copy of an H100 has them
L2 = 5.5e12  # bytes a second
PASSES = 132 * 1.755e9  # passes a second: one a cycle on each multiprocessor
SAMPLE = 32  # blocks
WAVE = 132 * 4  # blocks that are on the device at once

PAGE = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "cuda_model.md"


class Nest(NamedTuple):
    """One of the 26 layouts at full size, without its bytes; in **bytes**."""

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    start: int  # of the view's pointer in the array

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.itemsize


class Estimate(NamedTuple):
    """What the model says of one kernel on one nest."""

    seconds: float  # the slowest of the next three
    memory: float  # seconds of DRAM
    cache: float  # of L2
    passes: float  # of the load-store units
    loaded: float  # sectors that any kernel needs over those that this one moves
    stored: float
    sectors: float  # the same of both sides
    conflicts: float  # passes of shared memory over the fewest; 0 without shared memory
    width: float  # bytes that a warp's request stores
    floor: float  # seconds of a contiguous copy of as many bytes


def of_layout(entry: layouts.Layout) -> Nest:
    """One of the benchmark's layouts. Its array is never touched."""
    base = np.empty(entry.shape, entry.dtype)
    view = entry.view(base)
    start = view.ctypes.data - base.ctypes.data
    return Nest(entry.name, view.shape, view.strides, view.itemsize, start)


def needed(nest: Nest) -> int:
    """Count the sectors of the source that elements lie in. Exact where its axes nest."""
    run, starts = nest.itemsize, np.array([nest.start])
    starts += layout.span(nest.shape, nest.strides, nest.itemsize)[0]
    axes = zip((abs(stride) for stride in nest.strides), nest.shape, strict=True)
    for stride, extent in sorted(axes):
        if extent == 1 or stride == 0:
            continue
        if stride - run < SECTOR and starts.size == 1:  # no sector lies in such a gap
            run += stride * (extent - 1)
        else:
            starts = (starts[:, None] + stride * np.arange(extent)).ravel()
    starts.sort()
    first, last = starts // SECTOR, (starts + run - 1) // SECTOR
    shared = np.count_nonzero(first[1:] == last[:-1])
    return int((last - first + 1).sum()) - shared


def plan_of(nest: Nest, tuning: Tuning = DEFAULT) -> tuple[Plan, int, int]:
    """The family's launch, and the addresses to which its offsets are added."""
    dense = layout.c_strides(nest.shape, nest.itemsize)
    (made,), dst, src = planned(
        *(nest.shape, dense, nest.strides, nest.itemsize, DST, SRC + nest.start),
        small=plans.SMALL,
        tuning=tuning,
    )
    return made, dst, src


def elementwise(nest: Nest) -> tuple[Plan, int, int]:
    """The launch of a kernel as libraries have it: an item a thread, in the destination's order."""
    dense = layout.c_strides(nest.shape, nest.itemsize)
    form = layout.canonical(nest.shape, dense, nest.strides, nest.itemsize)
    axes = [Axis(*a) for a in zip(form.shape, form.dst_strides, form.src_strides, strict=True)]
    axes.reverse()
    if form.itemsize > nest.itemsize:
        axes.insert(0, Axis(form.itemsize // nest.itemsize, nest.itemsize, nest.itemsize))
    made = plans._pieces("gather", nest.itemsize, axes)
    return made, DST + form.dst_offset, SRC + nest.start + form.src_offset


def counted(made: Plan, dst: int, src: int, blocks: Any) -> Traffic:
    requests: list[Any] = []
    launch(made, FAMILY[made.kernel].factory, dst, src, blocks=blocks, requests=requests)
    return traffic(requests)


def sampled(grid: int) -> list[int]:
    """Blocks to look at, their neighbors left out."""
    if grid <= SAMPLE:
        return list(range(grid))
    return sorted(set(np.random.default_rng(1).integers(0, grid, SAMPLE).tolist()))


def estimate(nest: Nest, made: Plan, dst: int, src: int) -> Estimate:
    """Scale up what some blocks of a launch do."""
    seen = counted(made, dst, src, sampled(made.grid))
    scale = nest.nbytes / seen.bytes_stored
    least = needed(nest) * SECTOR, -(-nest.nbytes // SECTOR) * SECTOR
    moved = seen.load_block * scale * SECTOR, seen.store_sectors * scale * SECTOR
    passes = (seen.lines + seen.shared_reads + seen.shared_writes) * scale / PASSES
    memory, cache = sum(least) / DRAM, sum(moved) / L2
    return Estimate(
        max(memory, cache, passes),
        memory,
        cache,
        passes,
        least[0] / moved[0],
        least[1] / moved[1],
        sum(least) / sum(moved),
        seen.conflicts,
        seen.bytes_stored / seen.stores,
        2 * nest.nbytes / DRAM,
    )


def wave(made: Plan, dst: int, src: int, blocks: int = WAVE) -> float:
    """Bytes stored and as many loaded, over the sectors of a wave of blocks, each moved once.

    For sources without gaps.
    """
    first = min(made.grid // 3, max(made.grid - blocks, 0))
    seen = counted(made, dst, src, range(first, min(made.grid, first + blocks)))
    return 2 * seen.bytes_stored / ((seen.load_once + seen.store_once) * SECTOR)


HEAD = (
    "layout", "kernel", "sectors", "loads", "stores", "wave", "bytes a store", "conflicts",
    "time", "DRAM", "L2", "passes", "elementwise: sectors", "time",
)  # fmt: skip


class Looked(NamedTuple):
    """One of the 26 layouts: what the model says of its kernel and of an elementwise one."""

    name: str
    made: Plan
    own: Estimate
    other: Estimate


@cache
def looked_at(entry: layouts.Layout) -> Looked:
    """Run the model on one of the 26 layouts."""
    nest = of_layout(entry)
    made, dst, src = plan_of(nest)
    own, other = estimate(nest, made, dst, src), estimate(nest, *elementwise(nest))
    return Looked(nest.name, made, own, other)


def merged(entry: layouts.Layout) -> str:
    """The column "wave": takes ten times as long as the others."""
    nest = of_layout(entry)
    dense = nest.nbytes <= needed(nest) * SECTOR < nest.nbytes + SECTOR
    return f"{wave(*plan_of(nest)):.2f}" if dense else ""


def row(entry: layouts.Layout, by_wave: str | None = None) -> tuple[str, ...]:
    """One line of the table; ``by_wave`` is its column "wave"."""
    name, made, own, other = looked_at(entry)
    return (
        name,
        plans.name(made).removeprefix("cuda "),
        *(f"{min(number, 1):.2f}" for number in (own.sectors, own.loaded, own.stored)),
        merged(entry) if by_wave is None else by_wave,
        f"{own.width:.0f}",
        f"{own.conflicts:.2f}" if own.conflicts else "",
        *(f"{s / own.floor:.2f}" for s in (own.seconds, own.memory, own.cache, own.passes)),
        f"{min(other.sectors, 1):.2f}",
        f"{other.seconds / own.floor:.2f}",
    )


def table(rows: list[tuple[str, ...]]) -> str:
    """The rows in Markdown."""
    lines = [HEAD, ("---", "---", *["---:"] * (len(HEAD) - 2)), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def summary() -> str:
    """The geometric means of the times over the table."""
    seen = [looked_at(entry) for entry in layouts.LAYOUTS]
    own, other = (
        geometric_mean([one.seconds / one.floor for one in estimates])
        for estimates in zip(*[(one.own, one.other) for one in seen], strict=True)
    )
    return f"Geometric mean of the times: {own:.2f}; of the elementwise kernel's: {other:.2f}.\n"


if __name__ == "__main__":
    text = table([row(entry) for entry in layouts.LAYOUTS]) + "\n" + summary()
    if "--write" in sys.argv[1:]:
        before, begin, rest = PAGE.read_text().partition("<!-- table: begin -->\n")
        _, end, after = rest.partition("<!-- table: end -->")
        PAGE.write_text(before + begin + text + end + after)
    else:
        sys.stdout.write(text)
