"""Times, on the device by events and on the host by the clock: several contenders in turn, medians."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Work = Callable[[int], object]
"""Does it once; the number of the call, by which it takes its turn of several buffers."""

SPIN = 400_000  # cycles, 0.2 ms: the host queues its calls meanwhile, and the device never waits for it


def rotating(make: Callable[[Any], object], sources: Sequence[Any]) -> Work:
    """``make`` of each source in turn; results live until their turn comes again.

    One buffer read and written again and again would stay in the L2 cache, as far as it fits.
    """
    kept: list[object] = [None] * len(sources)

    def work(turn: int) -> None:
        at = turn % len(kept)
        kept[at] = make(sources[at])

    return work


def events(work: Work, calls: int, spin: int = SPIN) -> float:
    """Seconds per call on the device, of successive calls on torch's current stream."""
    import torch

    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(spin)
    first.record()
    for turn in range(calls):
        work(turn)
    last.record()
    last.synchronize()
    return first.elapsed_time(last) / 1e3 / calls


def burst(work: Work, calls: int) -> float:
    """Seconds per call by the clock, of successive calls and one wait at the end."""
    import torch

    torch.cuda.synchronize()
    start = time.perf_counter()
    for turn in range(calls):
        work(turn)
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / calls


def waited(work: Work, calls: int) -> float:
    """Seconds of a call and the wait for it, by the clock: the median of several."""
    import torch

    times = []
    for turn in range(calls):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work(turn)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def host(work: Work, calls: int) -> float:
    """Seconds per call on the host, without the wait; so few calls that the queue is never full."""
    import torch

    torch.cuda.synchronize()
    start = time.perf_counter()
    for turn in range(calls):
        work(turn)
    took = (time.perf_counter() - start) / calls
    torch.cuda.synchronize()
    return took


def in_turns(
    contenders: Mapping[str, Work],
    measure: Callable[[Work, int], float],
    *,
    rounds: int,
    calls: int,
    failed: dict[str, str],
    seconds: float = 3.0,
) -> dict[str, list[float]]:
    """The times of each contender, measured in turn; fewer rounds if ``seconds`` are over.

    Each is warmed up first: its code is compiled and loaded, its allocator has the memory. What one
    raises then is put into ``failed``, and the others are measured without it.
    """
    found: dict[str, list[float]] = {}
    for name, work in contenders.items():
        try:
            measure(work, calls)
            found[name] = []
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"[:300]
    start = time.perf_counter()
    for turn in range(rounds):
        for name, times in found.items():
            times.append(measure(contenders[name], calls))
        if turn >= 2 and time.perf_counter() - start > seconds:
            break
    return found


def spread(times: Sequence[float]) -> float:
    """Half the interquartile range, as a share of the median."""
    if len(times) < 4:
        return 0.0
    low, middle, high = statistics.quantiles(times, n=4)
    return (high - low) / 2 / middle if middle else 0.0
