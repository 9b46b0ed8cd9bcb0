"""Paired timing: our call and the peer in turn, so that a drift of the machine affects both."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import timeit
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple


class Pair(NamedTuple):
    """Medians in nanoseconds per call, the median ratio of neighboring rounds, and our least."""

    ours: float
    peer: float
    ratio: float
    least: float


def paired(ours, peer, *, rounds: int = 15, seconds: float = 0.01, setup=lambda: None) -> Pair:
    """Time two callables turn by turn, ``rounds`` times about ``seconds`` each, `setup` before each."""
    timers = [timeit.Timer(ours, setup), timeit.Timer(peer, setup)]
    numbers = []
    for timer in timers:
        timer.timeit(1)
        number, took = 1, timer.timeit(1)
        while took < seconds / 4:
            number *= 4
            took = timer.timeit(number)
        numbers.append(max(1, round(number * seconds / max(took, 1e-9))))
    times = [
        [timer.timeit(number) / number * 1e9 for timer, number in zip(timers, numbers, strict=True)]
        for _ in range(rounds)
    ]
    return Pair(
        statistics.median(mine for mine, _ in times),
        statistics.median(theirs for _, theirs in times),
        statistics.median(mine / theirs for mine, theirs in times),
        min(mine for mine, _ in times),
    )


def machine() -> str:
    """The processor, cores and Python version, for the head of a result."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as lines:
            model = next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        pass
    return f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {sys.version.split()[0]}"


def versions(*names: str) -> str:
    """``name version`` of those of the distributions that are installed."""
    found = []
    for name in names:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)
