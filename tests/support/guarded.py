"""Drawn copies for the guarded-memory fuzz: layouts, settings, and what NumPy says of them.

A case follows from a seed and a number alone, so that one line repeats it. Cases come in blocks
with one width of vector and few widths of items each: every kernel is compiled first.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from importlib import import_module
from math import prod
from typing import NamedTuple

import numpy as np

from arraybridge import layout
from arraybridge.kernels.cpu import copying, loader, pool

from .pages import Pages
from .strategies import CANARY, Layout

__all__ = ["FAMILIES", "Case", "draw", "planned", "run"]

plans = import_module("arraybridge.kernels.cpu.plan")
HOST = plans.VECTOR
#: Widths of vector that this host can run; its own more often.
VECTORS = [HOST] + [vector for vector in (16, 32, 64) if vector <= HOST]
BLOCK = 3000
NEVER = 1 << 60

#: name: what the planner is made to believe, so that it chooses otherwise.
FORCED: dict[str, dict[str, object]] = {
    "": {},
    "items": {"WIDTHS": ()},  # no vectors
    "runs": {"RUN": 1, "WIDTHS": ()},  # every item is a run
}


class Case(NamedTuple):
    """One copy: its layout, where its memory lies, and what is forced upon the kernels."""

    family: str
    given: Layout
    dst_start: int | None  # of `Pages`
    src_start: int | None
    vector: int
    stream: str  # "always", "fresh" (as that, with ordinary stores), "never", "default"
    force: str  # of `FORCED`
    threads: int
    slice: int  # bytes; 0 is the default


class Draw(random.Random):
    """Random numbers, and the widths of items of a block of cases."""

    def __init__(self, seed: object, number: int) -> None:
        super().__init__(f"{seed}/{number}")
        block = random.Random(f"{seed}/block {number // BLOCK}")
        #: Bytes of items that kernels move in vectors, and of others; the same on every host.
        self.widths = block.sample([1, 2, 4, 8, 16], 2)
        self.others = block.sample(range(3, 33), 2)
        self.vector = block.choice(VECTORS)

    def width(self, *, vectors: bool = False) -> int:
        return self.choice(self.widths if vectors or self.random() < 0.8 else self.others)

    def whole(self, sides: list[int], itemsize: int) -> list[int]:
        """Sides of a few items; half of the time rounded to whole vectors of 16 bytes."""
        unit = max(16 // itemsize, 1) if self.random() < 0.5 else 1
        return [-(-side // unit) * unit for side in sides]


def draw(seed: object, number: int) -> Case:
    """Draw a case."""
    rng = Draw(seed, number)
    family = rng.choice([*FAMILIES, "channels", "network", "network", "nest"])
    limit = rng.choice([8 << 10] * 6 + [64 << 10] * 6 + [400 << 10] * 3 + [2 << 20])
    given = FAMILIES[family](rng, limit)
    starts = [None, None, 0, 0, rng.randrange(1, 64)]
    nbytes = given.itemsize * prod(given.shape)
    sliced = nbytes <= copying.SINGLE_THREAD_MAX_BYTES or rng.random() < 0.5
    return Case(
        family,
        given,
        dst_start=rng.choice(starts),
        src_start=rng.choice(starts),
        vector=rng.vector,
        stream=rng.choice(["always", "always", "fresh", "never", "default"]),
        force=rng.choice(["", "", "", "", "", "", "items", "runs"]),
        threads=rng.randint(1, 3),
        slice=max(nbytes // rng.choice([2, 3, 4, 5, 7, 12]), 1) if sliced else 0,
    )


def of_view(
    rng: Draw, shape: Sequence[int], order: Sequence[int], itemsize: int, *, wild=0.0
) -> Layout:
    """The copy of an array with its axes permuted into a dense one.

    ``wild`` is how often an axis of the source is pitched, stepped, turned round or repeated.
    """
    src, step = [0] * len(shape), itemsize
    for axis in reversed(order):
        if rng.random() < wild:
            step += rng.choice([1, itemsize, 2 * itemsize, step])
        src[axis] = step * (rng.choice([-1, 0, 1, 2]) if rng.random() < wild else 1)
        step *= shape[axis] * (2 if abs(src[axis]) > step else 1)
    return Layout(tuple(shape), layout.c_strides(tuple(shape), itemsize), tuple(src), itemsize)


def _fitted(rng, shape: list[int], nbytes: int, itemsize: int) -> list[int]:
    """The shape, its longest axes halved until it is small enough."""
    shape = list(shape)
    while prod(shape) * itemsize > nbytes and max(shape, default=1) > 1:
        shape[shape.index(max(shape))] //= 2
    return shape


def _channels(rng, limit):
    """A few channels taken apart or put together, between axes of any extent."""
    itemsize, channels = rng.width(vectors=True), rng.randint(2, 4)
    outer = [rng.randint(2, 5) for _ in range(rng.randint(0, 3))]
    outer = _fitted(rng, outer, limit // (64 * channels * itemsize), itemsize=1)
    most = max(limit // (prod(outer) * channels * itemsize), 17)
    pixels = rng.randint(1, 20) + rng.choice([16, 32, 48, 64, min(most, 600), min(most, 3000)])
    (pixels,) = rng.whole([pixels], itemsize)
    shape = [*outer, channels, pixels]
    n = len(outer)
    order = rng.sample(range(n), n)
    if rng.random() < 0.6:  # taken apart, some of them left out
        given = of_view(rng, shape, [*order, n + 1, n], itemsize, wild=0.05)
        wanted = rng.randint(1, channels)
        skipped = (*outer, wanted, pixels)
        dense = layout.c_strides(skipped, itemsize)
        return given._replace(shape=skipped, dst_strides=dense)
    shape[n:] = pixels, channels
    return of_view(rng, shape, [*order, n + 1, n], itemsize, wild=0.05)


def _network(rng, limit):
    """Many short axes in any order, as tensor networks have them; behind them perhaps channels."""
    itemsize = rng.width()
    last = rng.choice([[], [], [rng.randint(2, 4), rng.choice([17, 20, 32, 48, 64])]])
    most = max(limit // (prod(last) * itemsize), 4)
    outer = []
    while prod(outer) * 2 <= most and len(outer) < 14:
        outer.append(rng.choice([2, 2, 2, 2, 3, 4]))
    n = len(outer)
    order = list(range(n))[::-1] if rng.random() < 0.5 else rng.sample(range(n), n)
    return of_view(rng, [*outer, *last], [*order, *([n + 1, n] if last else [])], itemsize,
                   wild=rng.choice([0, 0, 0.05]))  # fmt: skip


def _matrix(rng, limit, itemsize=0):
    """Transposes, alone and in batches."""
    itemsize = itemsize or rng.width(vectors=True)
    sides = [rng.randint(2, 300), rng.randint(2, 300)] + [rng.randint(2, 6)] * rng.randint(0, 2)
    rng.shuffle(sides)
    shape = rng.whole(_fitted(rng, sides, limit, itemsize), itemsize)
    order = rng.sample(range(len(shape)), len(shape))
    return of_view(rng, shape, order, itemsize, wild=rng.choice([0, 0.2]))


def _wide(rng, limit):
    """Items of any number of bytes."""
    sizes = [rng.width(), 33, 48, 63, 64, 65, 100, 257, 1000, 1024, 4099]
    return _matrix(rng, limit, rng.choice(sizes))


def _nest(rng, limit):
    """Axes that lie side by side in the destination and not in the source."""
    itemsize = rng.width()
    sides = rng.choices([3, 5, 17, 20, 48, 64, 70, 100, 128, 200], k=rng.randint(3, 5))
    if rng.random() < 0.5:
        sides.sort(key=lambda side: abs(side - 64))
    shape = _fitted(rng, sides, max(limit, 256 << 10), itemsize)
    order = rng.sample(range(len(shape)), len(shape))
    if rng.random() < 0.5:  # the first axis is the nearest in the source
        order.remove(0)
        order.append(0)
    return of_view(rng, shape, order, itemsize)


def _rows(rng, limit):
    """Rows that are read forwards, backwards, in steps, or again and again."""
    itemsize = rng.width(vectors=True)
    shape = _fitted(rng, [rng.randint(1, 40), rng.randint(2, 3000)], limit, itemsize)
    step = itemsize * rng.choice([-1, -1, 0, 0, 2, 3, 4, 5, -2, 9])
    pitch = (abs(step) or itemsize) * shape[1] + rng.choice([0, 0, 1, itemsize, 64])
    return Layout(
        tuple(shape), layout.c_strides(tuple(shape), itemsize), (rng.choice([-1, 1]) * pitch, step),
        itemsize,
    )  # fmt: skip


def _gaps(rng, limit):
    """A destination with gaps, its axes in any order, some of them backwards."""
    itemsize = rng.width()
    sides = [rng.randint(1, 60) for _ in range(rng.randint(1, 4))]
    shape = _fitted(rng, sides, limit, itemsize)
    dst, step = [0] * len(shape), itemsize
    for axis in rng.sample(range(len(shape)), len(shape)):
        step += rng.choice([0, 0, 1, 3, itemsize, 64])
        dst[axis] = rng.choice([step, step, -step])
        step *= shape[axis]
    order = rng.sample(range(len(shape)), len(shape))
    return of_view(rng, shape, order, itemsize, wild=0.2)._replace(dst_strides=tuple(dst))


def _windows(rng, limit):
    """A source whose elements overlap: any strides at all."""
    itemsize = rng.width()
    sides = [rng.randint(1, 50) for _ in range(rng.randint(1, 4))]
    shape = tuple(_fitted(rng, sides, limit, itemsize))
    src = tuple(
        rng.choice([0, 1, itemsize, -itemsize, rng.randint(-3 * itemsize, 3 * itemsize)])
        for _ in shape
    )
    return Layout(shape, layout.c_strides(shape, itemsize), src, itemsize)


def _runs(rng, limit):
    """Runs of bytes with gaps between them on both sides."""
    run = rng.randint(1, 5000)
    rows = max(min(limit // run, rng.randint(2, 300)), 2)
    dst, src = (run + rng.choice([0, 0, 1, 7, 64, run]) for _ in range(2))
    return Layout((rows, run), (dst, 1), (rng.choice([src, src, -src, 0]), 1), 1)


FAMILIES: dict[str, Callable[[Draw, int], Layout]] = {
    "channels": _channels,
    "network": _network,
    "matrix": _matrix,
    "nest": _nest,
    "rows": _rows,
    "gaps": _gaps,
    "windows": _windows,
    "wide": _wide,
    "runs": _runs,
}


def planned(case: Case):
    """The plan of a case and its layout as planned; None if there is nothing to copy."""
    form = layout.canonical(*case.given)
    if 0 in form.shape:
        return None
    stream = {"never": NEVER, "default": plans.STREAM_MIN_BYTES}.get(case.stream, 0)
    tiled = plans.STREAM_TILES_MIN_BYTES if case.stream == "default" else stream
    forced = {
        **FORCED[case.force],
        "VECTOR": case.vector,
        "STREAM_MIN_BYTES": stream,
        "STREAM_TILES_MIN_BYTES": tiled,
    }
    before = {name: getattr(plans, name) for name in forced}
    vars(plans).update(forced)
    try:
        return plans.plan.__wrapped__(form, case.stream == "fresh"), form
    finally:
        vars(plans).update(before)


_random = np.random.default_rng(0).integers(0, 256, 1 << 20, np.uint8)


def run(case: Case) -> None:
    """Copy between guarded pages and compare with NumPy, byte for byte.

    Raises
    ------
    AssertionError
        If a byte is not what it should be. A read or write out of bounds ends the process.
    """
    made = planned(case)
    if made is None:
        return
    plan, form = made
    given = case.given
    low, high = layout.span(given.shape, given.src_strides, given.itemsize)
    source = Pages(high - low, case.src_start)
    source.bytes[:] = np.resize(_random, len(source.bytes))
    source.lock()
    src = source.address - low
    low, high = layout.span(given.shape, given.dst_strides, given.itemsize)
    target = Pages(high - low, case.dst_start)
    target.bytes[:] = CANARY
    dst = target.address - low
    names = "SINGLE_THREAD_MAX_BYTES", "MIN_SLICE_BYTES", "MIN_SLICE_BLOCKS"
    before = {name: getattr(copying, name) for name in names}
    if case.slice:
        vars(copying).update(zip(names, (0, case.slice, 1), strict=True))
    try:
        with pool.num_threads(case.threads):
            way = copying.way(plan, form.dst_offset, form.src_offset)
            assert way, loader.unavailable()
            copying.run(way, dst, src)
    finally:
        vars(copying).update(before)
    _compare(target, dst, src, given)


def _compare(target: Pages, dst: int, src: int, given: Layout) -> None:
    first = target.bytes.ctypes.data
    expected = np.full(len(target.bytes), CANARY, np.uint8)
    wanted = expected.ctypes.data + dst - first
    copying.copy_by_numpy(wanted, src, *given)
    wrong = np.flatnonzero(expected != target.bytes)
    assert not len(wrong), (
        f"{len(wrong)} bytes are wrong, the first of them {wrong[0] + first - target.address} "
        f"bytes from the destination's first"
    )
