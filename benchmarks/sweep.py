"""Copies of 1 KB to 64 MB whose result is allocated in the call, beside NumPy's and PyTorch's.

python -m benchmarks.sweep                prints the table
python -m benchmarks.sweep --write        and keeps it in benchmarks/RESULTS.md
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # see `allocated`

import time
from collections.abc import Callable, Iterator
from math import sqrt

import numpy as np
import torch

import arraybridge as ab

from .layouts import aligned
from .results import command, head

SIZES = [1 << power for power in range(10, 27, 2)]
#: A row is lost if it takes this many times as long as the better peer, and this many ns longer.
SLOWER, BY = 1.1, 200
GOAL = 10


def layouts(nbytes: int) -> Iterator[tuple[str, Callable[[], np.ndarray]]]:
    """The name of each layout, and what makes an array of about so many bytes."""

    def new(dtype: str, *shape: int) -> np.ndarray:
        count = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return aligned(count).view(dtype).reshape(shape)

    def side(itemsize: int, power: float = 1 / 2) -> int:
        return max(2, round((nbytes / itemsize) ** power))

    four, pixels, heads = side(4), int(sqrt(nbytes / 3)), max(1, nbytes // 1024)
    for n, dtype in ((side(1), "u1"), (four, "f4"), (side(8), "f8")):
        yield f"transpose, {dtype}", lambda n=n, dtype=dtype: new(dtype, n, n).T
    yield "inner slice, f4", lambda: new("f4", four, four + 2)[:, 1:-1]
    yield "every other row, f4", lambda: new("f4", 2 * four, four)[::2]
    yield "every other column, f4", lambda: new("f4", four, 2 * four)[:, ::2]
    yield "rows flipped, f4", lambda: new("f4", four, four)[::-1]
    yield "columns flipped, f4", lambda: new("f4", four, four)[:, ::-1]
    yield "HWC to CHW, u1", lambda: new("u1", pixels, pixels, 3).transpose(2, 0, 1)
    yield "CHW to HWC, u1", lambda: new("u1", 3, pixels, pixels).transpose(1, 2, 0)
    yield "attention heads, f2", lambda: new("i2", heads, 8, 64).transpose(1, 0, 2)
    yield "three axes reversed, f4", lambda: new("f4", *[side(4, 1 / 3)] * 3).transpose(2, 1, 0)
    yield "columns broadcast, f4", lambda: np.broadcast_to(new("f4", four, 1), (four, four))
    yield "rows broadcast, f4", lambda: np.broadcast_to(new("f4", four), (four, four))


def peers(x: np.ndarray) -> list[Callable[[], object]]:
    by_numpy = lambda: x.copy(order="C")  # noqa: E731
    if min(x.strides) < 0 or not x.flags.writeable:  # PyTorch has no such tensors
        return [by_numpy]
    block = torch.from_numpy(x.base.view(x.dtype))
    start = (x.ctypes.data - x.base.ctypes.data) // x.itemsize
    tensor = block.as_strided(x.shape, [stride // x.itemsize for stride in x.strides], start)
    return [by_numpy, tensor.contiguous]


def least(calls: list[Callable[[], object]], seconds: float) -> list[float]:
    """The least ns of each call, turn by turn."""
    clock, counts = time.perf_counter_ns, []
    for call in calls:
        call(), call()
        start = clock()
        call()
        counts.append(max(1, 100_000 // max(1, clock() - start)))
    best, end, turns = [1e18] * len(calls), clock() + seconds * 1e9, 0
    while clock() < end or turns < 4:
        for at, (call, count) in enumerate(zip(calls, counts, strict=True)):
            start = clock()
            for _ in range(count):
                result = call()
            best[at] = min(best[at], (clock() - start) / count)
            del result
        turns += 1
    return best


def report(*, quick: bool = False) -> str:
    sizes = SIZES[::4] if quick else SIZES
    names = [f"{n >> 10} KB" if n < 1 << 20 else f"{n >> 20} MB" for n in sizes]
    lines = [f"| layout | {' | '.join(names)} |", f"| --- |{' ---: |' * len(sizes)}"]
    lost = count = 0
    for at, (name, _) in enumerate(layouts(1024)):
        cells = []
        for nbytes in sizes:
            x = list(layouts(nbytes))[at][1]()
            ours, *theirs = least([lambda x=x: ab.contiguous(x), *peers(x)], 0.05 if quick else 0.3)
            behind = ours > SLOWER * min(theirs) and ours > min(theirs) + BY
            lost, count = lost + behind, count + 1
            times = f"{min(theirs) / ours:.2f}"
            cells.append(f"**{times}**" if behind else times)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    rule = f"by more than {SLOWER - 1:.0%} and {BY} ns"
    return "\n".join([
        f"Goal: at most {GOAL} of {len(SIZES) * 14} slower than the better of NumPy and PyTorch {rule}. Here: {lost} of {count}.",
        "",
        "Measured: `contiguous` beside `x.copy(order='C')` and `tensor.contiguous()`, the least of many turns, each result dropped. The number is the speed",
        "in times the better peer's; PyTorch takes part where it has such a view of writable memory.",
        "",
        head("numpy torch", f"{torch.get_num_threads()} threads"),
        "",
        *lines,
    ])  # fmt: skip


if __name__ == "__main__":
    command("sweep", __doc__, report)
