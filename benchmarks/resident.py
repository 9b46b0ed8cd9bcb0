"""Resident memory of a process, of a call, and of loops that drop their copies (Linux).

python -m benchmarks.resident        prints the table, which benchmarks.allocated includes
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np

import arraybridge as ab

from .goals import verdict

Copy = Callable[[np.ndarray], object]


def resident() -> int:
    """Bytes of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak(work: Callable[[], object], *, warm: bool = True) -> int:
    """Bytes that a call adds at its peak; with `warm`, of the second call."""
    if warm:
        work()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # resets the peak
    before = resident()
    work()
    with open("/proc/self/status") as file:
        high = next(line for line in file if line.startswith("VmHWM"))
    return max(0, int(high.split()[1]) * 1024 - before)


def one_size(copy: Copy, source: np.ndarray) -> None:
    for _ in range(20):
        copy(source)


def many_sizes(copy: Copy, source: np.ndarray) -> None:
    for n in range(60):
        copy(source[: 64 * (1 + 37 * n % 64)])


def four_alive(copy: Copy, source: np.ndarray) -> None:
    for _ in range(5):
        alive = [copy(source) for _ in range(4)]
        alive.clear()


LOOPS = {
    "20 of 64 MB, one after the other": one_size,
    "60 of 1 to 64 MB, one after the other": many_sizes,
    "20 of 64 MB, four alive at a time": four_alive,
}


def child(who: str, name: str) -> None:
    """Print in bytes what a loop adds at its peak and leaves, and the limit of the cache."""
    source = np.ones((4096, 4096), np.float32).T
    copy = ab.contiguous if who == "ours" else np.ascontiguousarray
    copy(source[:512])  # kernels and threads
    ab.empty_block_cache()
    before = resident()
    added = peak(lambda: LOOPS[name](copy, source), warm=False)
    print(added, max(0, resident() - before), ab.get_block_cache_limit())


def report() -> list[str]:
    lines = [
        "Goal: at most the limit of the block cache more than with NumPy. Measured: what loops over copies add to a fresh process, at",
        "their highest and after all results are dropped.",
        "",
        "| results | highest with NumPy, MB | ours | after, NumPy, MB | ours | limit, MB | |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for name in LOOPS:
        found = []
        for who in ("numpy", "ours"):
            command = [sys.executable, "-m", "benchmarks.resident", who, name]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found.append([int(word) / 1e6 for word in done.stdout.split()])
        (theirs, their_rest, _), (ours, our_rest, bound) = found
        lines.append(
            f"| {name} | {theirs:,.0f} | {ours:,.0f} | {their_rest:,.0f} | {our_rest:,.0f} | {bound:,.0f} "
            f"| {verdict(max(ours - theirs, our_rest - their_rest), bound)} |"
        )
    return lines


if __name__ == "__main__":
    if sys.argv[1:]:
        child(*sys.argv[1:])
    else:
        print("\n".join(report()))
