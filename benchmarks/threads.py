"""Compare conversions from several threads at once with NumPy's own copies in as many.

python -m benchmarks.threads            prints the table
python -m benchmarks.threads --write    and keeps it in benchmarks/RESULTS.md
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable

import numpy as np
import torch

import arraybridge as ab

from .results import command, head

MOST = 8
LEAST = 0.9  # of the peer's scaling, or of its calls per second
Work = Callable[[int], Callable[[], object]]


def strided(side: int) -> tuple[Work, Work]:
    """(ours, NumPy's) per thread: transposed copies into its own buffers."""

    def arrays() -> tuple[np.ndarray, np.ndarray]:
        return np.ones((side, side), np.float32).T, np.ones((side, side), np.float32)

    def ours(_: int) -> Callable[[], object]:
        x, out = arrays()
        return lambda: ab.contiguous(x, out=out)

    def peer(_: int) -> Callable[[], object]:
        x, out = arrays()
        return lambda: np.copyto(out, x)

    return ours, peer


def allocating(side: int) -> tuple[Work, Work]:
    """The same with the result allocated, as `convert` makes it."""

    def ours(_: int) -> Callable[[], object]:
        x = np.ones((side, side), np.float32).T
        return lambda: ab.convert(x, "torch", copy=True)

    def peer(_: int) -> Callable[[], object]:
        x = np.ones((side, side), np.float32).T
        return lambda: torch.from_numpy(x.copy())

    return ours, peer


def views() -> tuple[Work, Work]:
    def ours(_: int) -> Callable[[], object]:
        tensor = torch.ones(24)
        return lambda: ab.convert(tensor, "numpy", device="cpu")

    def peer(_: int) -> Callable[[], object]:
        tensor = torch.ones(24)
        return lambda: np.from_dlpack(tensor)

    return ours, peer


CASES = {
    "contiguous, 4 KB transposed, into a buffer": (strided(32), "np.copyto"),
    "contiguous, 8 MB transposed, into a buffer": (strided(1448), "np.copyto"),
    "convert, 4 KB transposed, copy=True": (allocating(32), "torch.from_numpy(x.copy())"),
    "convert, 8 MB transposed, copy=True": (allocating(1448), "torch.from_numpy(x.copy())"),
    "convert, a planned view": (views(), "np.from_dlpack"),
}


def rate(works: list[Callable[[], object]], seconds: float) -> float:
    """Calls per second of all threads together, each with its own work and clock."""
    ready, stop = threading.Barrier(len(works) + 1), threading.Event()
    each = [0.0] * len(works)

    def run(place: int, work: Callable[[], object]) -> None:
        work()
        ready.wait()
        count, start = 0, time.perf_counter()
        while not stop.is_set():
            work()
            count += 1
        each[place] = count / (time.perf_counter() - start)

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(works)]
    for thread in threads:
        thread.start()
    ready.wait()
    time.sleep(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    return sum(each)


def rates(case: tuple[Work, Work], rounds: int, seconds: float) -> dict[tuple[str, int], float]:
    """Return (who, threads) -> the median of the rates, measured in turn."""
    works = {
        (who, count): [make(place) for place in range(count)]
        for who, make in zip(("ours", "peer"), case, strict=True)
        for count in (1, MOST)
    }
    found: dict[tuple[str, int], list[float]] = {key: [] for key in works}
    for _ in range(rounds):
        for key, work in works.items():
            found[key].append(rate(work, seconds))
    return {key: statistics.median(each) for key, each in found.items()}


def report(*, quick: bool = False) -> str:
    rounds, seconds = (1, 0.02) if quick else (7, 0.2)
    lines = [
        f"Goal: {LEAST} of the other call's scaling or, because our large copy uses all cores even from one thread, {LEAST} of its calls per second.",
        "",
        f"Measured: calls per second of {MOST} threads together, each with its own arrays. Scaling is their number divided by that of one thread.",
        "",
        head("numpy torch"),
        "",
        f"| call | ours, 1 thread | ours, {MOST} | scaling | compared with | 1 thread | {MOST} | scaling | ours / its, {MOST} threads | |",
        "| --- | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for what, (case, peer) in CASES.items():
        found = rates(case, rounds, seconds)
        cells = []
        for who, name in (("ours", what), ("peer", peer)):
            one, many = found[who, 1], found[who, MOST]
            cells.append(f"| {name} | {one:,.0f} | {many:,.0f} | {many / one:.2f} ")
        times = found["ours", MOST] / found["peer", MOST]
        scaling = times * found["peer", 1] / found["ours", 1]
        kept = "kept" if max(times, scaling) >= LEAST else "**missed**"
        lines.append("".join(cells) + f"| {times:.2f} | {kept} |")
    return "\n".join(lines)


if __name__ == "__main__":
    command("threads", __doc__, report)
