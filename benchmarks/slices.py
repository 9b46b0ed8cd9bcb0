"""Compare the work of a copy in one slice with that in many, as many threads would have them.

python -m benchmarks.slices            prints the table
python -m benchmarks.slices --write    and keeps it in benchmarks/RESULTS.md
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from math import prod

import numpy as np

from arraybridge.kernels.cpu import loader, plan
from arraybridge.kernels.cpu.copying import MIN_SLICE_BLOCKS
from arraybridge.layout import c_strides, canonical
from arraybridge.native import C

from .contest import mean
from .layouts import LAYOUTS, aligned
from .results import command, head

COUNTS = (1, 2, 8, 16, 64)
LEAST = 0.85  # of the speed in one slice
SEED = 20261128  # of layouts that nothing was tuned on


def drawn(seed: int, count: int) -> Iterator[tuple[str, np.ndarray]]:
    """Draw views of 4 to 64 MB: axes permuted, sliced, stepped, flipped and broadcast."""
    rng = random.Random(seed)
    while count:
        item, ndim = rng.choice([1, 2, 4, 8, 16, 3, 12]), rng.randint(1, 6)
        items = 2 ** rng.uniform(22, 26) / item
        parts = [rng.random() + 0.1 for _ in range(ndim)]
        shape = [max(round(items ** (part / sum(parts))), 2) for part in parts]
        steps = [rng.choice([1, 1, 1, 1, 1, -1, 2, -3, 0]) for _ in shape]
        margins = [rng.choice([0, 0, 0, rng.randint(1, 9)]) for _ in shape]
        sides = [max(n * abs(s), 1) + m for n, s, m in zip(shape, steps, margins, strict=True)]
        order = rng.sample(range(ndim), ndim)
        if prod(sides) * item > 1 << 28 or not any(steps):
            continue
        x = aligned(prod(sides) * item).view(f"V{item}").reshape([sides[axis] for axis in order])
        x = x.transpose([order.index(axis) for axis in range(ndim)])
        cut = [slice(m // 2, m // 2 + max(n * abs(s), 1)) for n, s, m in zip(shape, steps, margins, strict=True)]  # fmt: skip
        x = x[tuple(cut)][tuple(slice(None, None, step or 1) for step in steps)]
        x = np.broadcast_to(x, shape)
        if 1 << 22 <= x.nbytes <= 1 << 26 and not x.flags.c_contiguous:
            yield f"{x.shape}, steps of {x.strides} bytes", x
            count -= 1


def measured(x: np.ndarray, rounds: int) -> dict[int, float]:
    """Return number of slices -> the least CPU seconds of one thread that copies them all."""
    form = canonical(x.shape, c_strides(x.shape, x.itemsize), x.strides, x.itemsize)
    made, out = plan.plan(form), aligned(x.nbytes)
    record, nest = made.record(loader.address(made.kernel)), loader.nest(made.kernel)
    dst = out.ctypes.data + form.dst_offset + made.dst_offset
    src = x.__array_interface__["data"][0] + form.src_offset + made.src_offset
    took = {n: [] for n in COUNTS}
    for _ in range(rounds + 1):  # the first time the destination is in the cache
        for n in COUNTS:
            start = time.thread_time()
            parts = 1 if made.whole else min(n, made.blocks // MIN_SLICE_BLOCKS)
            C.call_slices(nest, record.buffer_info()[0], dst, src, made.blocks, parts, 1)
            took[n].append(time.thread_time() - start)
    return {n: min(each[1:]) for n, each in took.items()}


def report(*, quick: bool = False) -> str:
    sets = {
        "the other benchmarks' 26": ((each.name, each.view(each.base())) for each in LAYOUTS),
        "48 that are drawn": drawn(SEED, 48),
    }
    lines = [
        f"Goal: {LEAST} of the speed in one slice, for every layout.",
        "",
        "Measured: the CPU time of one thread for a copy in one slice, divided by that in n slices.",
        "",
        head("numpy"),
        "",
        "| layouts | slices | geometric mean | least | of | |",
        "| --- | ---: | ---: | ---: | --- | --- |",
    ]
    for what, views in sets.items():
        every = {name: measured(x, 2 if quick else 7) for name, x in views}
        for n in COUNTS[1:]:
            shares = {name: took[1] / took[n] for name, took in every.items()}
            worst = min(shares, key=shares.__getitem__)
            kept = "kept" if shares[worst] >= LEAST else "**missed**"
            lines.append(f"| {what} | {n} | {mean(shares.values()):.2f} | {shares[worst]:.2f} | {worst} | {kept} |")  # fmt: skip
    return "\n".join(lines)


if __name__ == "__main__":
    command("slices", __doc__, report)
