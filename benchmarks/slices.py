"""Compare a copy in one slice with one in many, on one thread: ``python -m benchmarks.slices``."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from ctypes import CFUNCTYPE, c_int64
from itertools import pairwise
from math import prod

import numpy as np

from arraybridge.kernels.cpu import copying, loader, plan
from arraybridge.layout import c_strides, canonical

from .contest import mean
from .layouts import LAYOUTS, aligned
from .results import command, head

COUNTS, LEAST = (1, 2, 8, 16, 64), 0.85  # slices; of the speed in one slice
SEED = 17  # of layouts that nothing was tuned on


def drawn(seed: int, count: int) -> Iterator[tuple[str, np.ndarray]]:
    """Draw views of 4 to 64 MB: axes permuted, cut, stepped, flipped and broadcast."""
    rng = random.Random(seed)
    while count:
        item, ndim = rng.choice([1, 2, 4, 8, 16, 3, 12]), rng.randint(1, 6)
        items, parts = 2 ** rng.uniform(22, 26) / item, [rng.random() + 0.1 for _ in range(ndim)]
        shape = [max(round(items ** (part / sum(parts))), 2) for part in parts]
        steps = [rng.choice([1, 1, 1, 1, 1, -1, 2, -3, 0]) for _ in shape]
        sides = [max(n * abs(step), 1) for n, step in zip(shape, steps, strict=True)]
        more, order = [rng.choice([0, 0, 0, 7]) for _ in shape], rng.sample(range(ndim), ndim)
        whole = [sides[axis] + more[axis] for axis in order]
        if prod(whole) * item <= 1 << 28 and any(steps):
            x = aligned(prod(whole) * item).view(f"V{item}").reshape(whole)
            x = x.transpose([order.index(axis) for axis in range(ndim)])
            x = x[tuple(map(slice, sides))][tuple(slice(None, None, step or 1) for step in steps)]
            x = np.broadcast_to(x, shape)
            if 1 << 22 <= x.nbytes <= 1 << 26 and not x.flags.c_contiguous:
                yield f"{x.shape}, strides {x.strides}, items of {item}", x
                count -= 1


def measured(x: np.ndarray, rounds: int) -> dict[int, float]:
    """Return number of slices -> the least CPU seconds of one thread that copies them all."""
    form = canonical(x.shape, c_strides(x.shape, x.itemsize), x.strides, x.itemsize)
    made, out = plan.plan(form), aligned(x.nbytes)
    record = made.record(loader.address(made.kernel))
    nest = CFUNCTYPE(None, *[c_int64] * 5)(loader.nest(made.kernel))
    dst = out.ctypes.data + form.dst_offset + made.dst_offset
    src = x.__array_interface__["data"][0] + form.src_offset + made.src_offset
    most = 1 if made.whole else made.blocks // copying.MIN_SLICE_BLOCKS
    took = {n: [] for n in COUNTS}
    for _ in range(rounds + 1):  # at first the destination is in the cache
        for n in COUNTS:
            cuts = [made.blocks * i // min(n, most) for i in range(min(n, most) + 1)]
            start = time.thread_time()
            for part in pairwise(cuts):
                nest(record.buffer_info()[0], dst, src, *part)
            took[n].append(time.thread_time() - start)
    return {n: min(each[1:]) for n, each in took.items()}


def report(*, quick: bool = False) -> str:
    given = ((each.name, each.view(each.base())) for each in LAYOUTS)
    lines = [
        f"Goal: {LEAST} of the speed in one slice, by one thread's CPU time.",
        head("numpy"),
        "",
    ]
    lines += ["| layouts | n | geometric mean | least | of |", "| --- | ---: | ---: | ---: | --- |"]
    for what, views in ("of `allocated`", given), ("drawn", drawn(SEED, 4 if quick else 48)):
        every = {name: measured(x, 2 if quick else 9) for name, x in views}
        for n in COUNTS[1:]:
            shares = {name: took[1] / took[n] for name, took in every.items()}
            worst, every_mean = min(shares, key=shares.__getitem__), mean(shares.values())
            bold = "**" * (shares[worst] < LEAST)
            lines.append(
                f"| {len(shares)} {what} | {n} | {every_mean:.2f} | {bold}{shares[worst]:.2f}{bold} | {worst} |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    command("slices", __doc__, report)
