"""Copy one layout by several contenders in turn, and make tables of their times.

The limit is a contiguous copy of as many bytes as the result has: `memmove` of one part per core, all at once.
It takes its turn with the others, and medians are compared: the bandwidth of a shared machine drifts by a
factor of two within minutes.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from ctypes import memmove
from math import exp, log
from typing import NamedTuple

import numpy as np
import torch

import arraybridge as ab

from .layouts import Layout, aligned, lines_read

PEERS = ("numpy", "torch", "tensorflow")
NAMES = {"numpy": "NumPy", "torch": "PyTorch", "tensorflow": "TensorFlow"}
THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Row(NamedTuple):
    """Median seconds of one layout by contender, and the bytes that it moves."""

    layout: Layout
    nbytes: int  # of the result
    read: int  # in whole cache lines
    seconds: dict[str, float]

    def speed(self, who: str) -> float | None:
        """GB/s; the bytes of the result count once as read and once as written."""
        took = self.seconds.get(who)
        return None if took is None else 2 * self.nbytes / took / 1e9

    def fraction(self) -> float:
        """The share of the limit."""
        return self.seconds["limit"] / self.seconds["ours"]

    def best(self) -> str:
        """The fastest of the peers."""
        return min((p for p in PEERS if p in self.seconds), key=self.seconds.__getitem__)


class Limit:
    """The contiguous copy, by one thread per core."""

    def __init__(self, dst: np.ndarray, src: np.ndarray, pool: ThreadPoolExecutor) -> None:
        size = dst.nbytes
        step = -(-size // THREADS // 4096) * 4096
        self.parts = [
            (dst.ctypes.data + at, src.ctypes.data + at, min(step, size - at))
            for at in range(0, size, step)
        ]
        self.keep = dst, src
        self.pool = pool

    def __call__(self) -> None:
        rest = [self.pool.submit(memmove, *part) for part in self.parts[1:]]
        memmove(*self.parts[0])
        for part in rest:
            part.result()


def turns(
    contenders: dict[str, Callable],
    rounds: int,
    *,
    patience: float = 0.8,
    after: Callable[[], None] | None = None,
) -> dict[str, float]:
    """Median seconds per call of each, one call per turn; slow contenders skip turns.

    A contender takes part in at least three turns, and in more until it has used `patience` seconds. Without
    `after`, a result is dropped as soon as it is made, within the time of the call. With it, all results of a
    turn are kept to the turn's end, and `after` is called then.
    """
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for call in contenders.values():
        call()
    if after is not None:
        after()
    for turn in range(rounds):
        kept = []
        for name, call in contenders.items():
            took = times[name]
            if turn >= 3 and sum(took) > patience and name not in ("ours", "limit"):
                continue
            start = time.perf_counter()
            if after is None:
                call()
            else:
                kept.append(call())
            took.append(time.perf_counter() - start)
        kept.clear()
        if after is not None:
            after()
    return {name: statistics.median(took) for name, took in times.items()}


def tensorflow_transpose(layout: Layout, base: np.ndarray) -> Callable | None:
    """TensorFlow's transpose, its result allocated; None if it is missing, or if the layout is no permutation."""
    if layout.axes is None:
        return None
    try:
        import tensorflow
    except ImportError:
        return None
    tensor = tensorflow.constant(base if layout.grid is None else base.reshape(layout.grid))
    return lambda: tensorflow.transpose(tensor, layout.axes)


def contenders(layout: Layout, offset: int, allocate: bool, pool) -> tuple[dict, np.ndarray]:
    """The contenders of a layout, and the view that is copied."""
    base = layout.base()
    view = layout.view(base)
    count = view.nbytes
    block = aligned(count, offset)
    dst = block.view(layout.dtype).reshape(view.shape)
    tensor = torch.from_numpy(base)
    to = torch.from_numpy(dst)
    if layout.torch is None:
        strided = layout.view(tensor)
        by_torch = (lambda: strided.contiguous()) if allocate else (lambda: to.copy_(strided))
    elif allocate:
        by_torch = lambda: layout.torch(torch, tensor).contiguous()  # noqa: E731
    else:
        by_torch = lambda: to.copy_(layout.torch(torch, tensor))  # noqa: E731
    who: dict[str, Callable] = {
        "limit": Limit(block, aligned(count), pool),
        "ours": (lambda: ab.contiguous(view))
        if allocate
        else (lambda: ab.contiguous(view, out=dst)),
        "numpy": (lambda: view.copy(order="C")) if allocate else (lambda: np.copyto(dst, view)),
        "torch": by_torch,
    }
    transpose = tensorflow_transpose(layout, base)
    if transpose is not None:
        who["tensorflow"] = transpose
    return who, view


def check(layout: Layout, view: np.ndarray) -> None:
    """Compare the bytes with NumPy's copy."""
    expected = np.ascontiguousarray(view)
    out = np.zeros_like(expected)
    ab.contiguous(view, out=out)
    bits = f"V{view.itemsize}"
    assert (out.view(bits) == expected.view(bits)).all(), f"wrong bytes: {layout.name}"


def measure(
    layouts: list[Layout],
    rounds: int,
    *,
    offset: int = 0,
    allocate: bool = False,
    after: Callable[[], None] | None = None,
) -> list[Row]:
    """Return one row per layout."""
    rows = []
    with ThreadPoolExecutor(max(1, THREADS - 1)) as pool:
        for layout in layouts:
            who, view = contenders(layout, offset, allocate, pool)
            if not allocate:
                check(layout, view)
            seconds = turns(who, rounds, after=after)
            rows.append(Row(layout, view.nbytes, lines_read(view), seconds))
            del who, view
    return rows


def mean(ratios) -> float:
    """The geometric mean."""
    ratios = list(ratios)
    return exp(sum(map(log, ratios)) / len(ratios))


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}" if value < 1 else f"{value:.1f}"


def table(rows: list[Row]) -> list[str]:
    lines = [
        "| layout | element, bytes | limit | ours | of the limit | NumPy | PyTorch | TensorFlow | times the fastest |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        times = row.seconds[row.best()] / row.seconds["ours"]
        lost = f"**{times:.2f}** ({NAMES[row.best()]})" if times < 1 else f"{times:.2f}"
        speeds = (number(row.speed(who)) for who in ("numpy", "torch", "tensorflow"))
        lines.append(
            f"| {row.layout.name} | {np.dtype(row.layout.dtype).itemsize} | {number(row.speed('limit'))} "
            f"| {number(row.speed('ours'))} | {row.fraction():.2f} | {' | '.join(speeds)} | {lost} |"
        )
    return lines


def behind(rows: list[Row]) -> list[str]:
    """The layouts in which another library is faster."""
    return [
        f"{r.layout.name} ({r.seconds[r.best()] / r.seconds['ours']:.2f} of {NAMES[r.best()]})"
        for r in rows
        if r.seconds[r.best()] < r.seconds["ours"]
    ]


def summary(rows: list[Row]) -> list[str]:
    """The geometric means, and the layouts in which another library is faster."""
    over = {
        peer: mean(r.seconds[peer] / r.seconds["ours"] for r in rows if peer in r.seconds)
        for peer in PEERS
        if any(peer in r.seconds for r in rows)
    }
    peers = ", ".join(f"{ratio:.1f} times {NAMES[peer]}" for peer, ratio in over.items())
    theirs = ", ".join(
        f"{NAMES[p]} {mean(r.seconds['limit'] / r.seconds[p] for r in rows if p in r.seconds):.2f}"
        for p in over
    )
    needed = mean(r.fraction() * max(1.0, (r.read + r.nbytes) / (2 * r.nbytes)) for r in rows)
    lost = behind(rows)
    return [
        "",
        f"Geometric means: **{mean(r.fraction() for r in rows):.2f} of the limit** ({theirs}); {peers}. "
        f"With every cache line that has to be read, gaps included: {needed:.2f} of the limit.",
        "",
        f"Slower than another library: {'; '.join(lost)}."
        if lost
        else "No layout is slower than the fastest of the three.",
    ]
