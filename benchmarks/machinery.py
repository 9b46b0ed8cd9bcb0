"""Measure what the native machinery gains over simple alternatives (docs/machine_code.md).

python -m benchmarks.machinery            all of it, 2 minutes
python -m benchmarks.machinery pool       or a part: pool, flat, cache

The alternatives take turns, call by call, each first in its turn; medians. On a busy machine,
`chrt -f 10` in front gives these processes the cores while they run.
"""

from __future__ import annotations

import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np

from arraybridge.kernels.cpu import copying, pool
from arraybridge.kernels.cpu.plan import plan
from arraybridge.layout import canonical

from .startup import IMPORT, seconds
from .timing import machine, versions

MEGABYTES = (2, 4, 16, 64)  # to 1 MB the caller copies alone
KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_int64)
EXECUTOR = ThreadPoolExecutor(pool.MOST)
POOL = pool.run
Job = Callable[[int, int, int, int], None]


def alone(kernel: int, records: int, stride: int, count: int) -> None:
    """The caller does every slice."""
    call = KERNEL(kernel)
    for record in range(records, records + stride * count, stride):
        call(record)


def futures(kernel: int, records: int, stride: int, count: int) -> None:
    """A persistent ThreadPoolExecutor: an idle thread takes the next slice, as in the pool."""
    call = KERNEL(kernel)
    left = iter(range(records, records + stride * count, stride))

    def drain() -> None:
        for record in left:
            call(record)

    helpers = [EXECUTOR.submit(drain) for _ in range(pool.get_num_threads() - 1)]
    drain()
    for helper in helpers:
        if not helper.cancel():  # otherwise it has not begun, and has no work left
            helper.result()


@contextmanager
def busy(wanted: bool) -> Iterator[None]:
    """Another Python thread that computes."""
    ended = not wanted

    def spin() -> None:
        count = 0
        while not ended:
            count += 1

    thread = threading.Thread(target=spin)
    thread.start()
    try:
        yield
    finally:
        ended = True
        thread.join()


def turns(ways: dict[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    """Microseconds of each call, the alternatives in turn."""
    names = list(ways)
    took: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        for place in range(len(names)):
            name = names[(turn + place) % len(names)]
            start = time.perf_counter()
            ways[name]()
            took[name].append((time.perf_counter() - start) * 1e6)
    return took


def table(ways_of: Callable[[int], dict[str, Callable[[], None]]]) -> list[str]:
    lines: list[str] = []
    for spinning in (False, True):
        with busy(spinning):
            for megabytes in MEGABYTES:
                ways = ways_of(megabytes << 20)
                for way in ways.values():
                    way()
                took = turns(ways, max(30, 600 // megabytes))
                found = {name: statistics.median(times) for name, times in took.items()}
                names, ours = list(found), next(iter(found.values()))
                if not lines:
                    lines.append(f"| | MB | {' | '.join(names)} | {' | '.join(names[1:])} |")
                    lines.append(f"| --- | ---: |{' ---: |' * (2 * len(names) - 1)}")
                cells = [f"{value:,.0f}" for value in found.values()]
                cells += [f"{found[name] / ours:.2f}" for name in names[1:]]
                name = "a Python thread busy" if spinning else "idle"
                lines.append(f"| {name} | {megabytes} | {' | '.join(cells)} |")
    return lines


def strided_ways(nbytes: int) -> dict[str, Callable[[], None]]:
    """A transpose of 4-byte items: the same kernel and slices by each alternative."""
    side = int((nbytes // 4) ** 0.5)
    source, result = np.ones((side, side), "f4"), np.zeros((side, side), "f4")
    made = plan(canonical((side, side), result.strides, source.T.strides, 4))

    def way(run: Job) -> Callable[[], None]:
        def call() -> None:
            pool.run = run
            copying.copy_planned(result.ctypes.data, source.ctypes.data, made)

        return call

    return {"pool": way(POOL), "executor": way(futures), "alone": way(alone)}


def flat_ways(nbytes: int) -> dict[str, Callable[[], None]]:
    """One run of bytes: streamed in slices, by memmove in slices, by one memmove."""
    source, result = np.ones(nbytes, "u1"), np.zeros(nbytes, "u1")
    copying.PARTED = 0
    count = copying.SLICES * pool.get_num_threads()
    cuts = [nbytes * part // count for part in range(count + 1)]
    memmove = ctypes.CDLL(None).memmove
    memmove.argtypes = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t

    def ours() -> None:
        copying.copy_run(result.ctypes.data, source.ctypes.data, nbytes)

    def in_slices() -> None:
        to, at = result.ctypes.data, source.ctypes.data
        left = iter(pairwise(cuts))

        def drain() -> None:
            for start, stop in left:
                memmove(to + start, at + start, stop - start)

        helpers = [EXECUTOR.submit(drain) for _ in range(pool.get_num_threads() - 1)]
        drain()
        for helper in helpers:
            if not helper.cancel():
                helper.result()

    def one() -> None:
        memmove(result.ctypes.data, source.ctypes.data, nbytes)

    return {"pool, streaming": ours, "executor, memmove": in_slices, "one memmove": one}


#: Modules with a cfunc in Numba's own cache.
NUMBA = {
    "ours": """
from numba import cfunc, types
from arraybridge.kernels.cpu.nest import function
from arraybridge.kernels.cpu.plan_types import Key
kernel = cfunc(types.void(types.int64), cache=True)(function(Key("tile", 4, 16, 0, 64)))
""",
    "empty": """
from numba import cfunc, types
@cfunc(types.void(types.int64), cache=True)
def kernel(record):
    pass
""",
}
OURS = """
import time, numpy
start = time.perf_counter()
from arraybridge.kernels.cpu import cache
kernel = cache.compiled("nest", "tile", 4, 16, 0, 64)
print(time.perf_counter() - start, int(kernel.cached))
"""


def loaded(folder: str, code: str) -> tuple[float, bool]:
    """Seconds that a fresh process takes for a kernel, and whether the cache had it."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={
            **os.environ,
            "ARRAYBRIDGE_CACHE_DIR": folder,
            "PYTHONPATH": f"{folder}:{os.getcwd()}",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    took, hit = done.stdout.split()
    return float(took), hit == "1"


def cache_table(rounds: int = 5) -> list[str]:
    lines = [
        "| cache | empty cache, s | later process, s | found on disk |",
        "| --- | ---: | ---: | --- |",
    ]
    for name in ("arraybridge", *NUMBA):
        cold, warm, hits = [], [], 0
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as folder:
                code = OURS
                if name in NUMBA:
                    Path(folder, "held.py").write_text(NUMBA[name])
                    code = (
                        "import time, numpy\nstart = time.perf_counter()\nimport held\n"
                        "print(time.perf_counter() - start, held.kernel.cache_hits)"
                    )
                cold.append(loaded(folder, code)[0])
                took, hit = loaded(folder, code)
                warm.append(took)
                hits += hit
        told = {"ours": "`cache=True`, the same kernel", "empty": "`cache=True`, an empty one"}
        lines.append(
            f"| {told.get(name, name)} | {statistics.median(cold):.2f} | {statistics.median(warm):.2f} "
            f"| {hits} of {rounds} |"
        )
    numba = statistics.median(seconds(IMPORT.format("numba"), "") for _ in range(rounds))
    return [*lines, "", f"`import numba` alone takes {numba:.2f} s."]


PARTS: dict[str, tuple[str, Callable[[], list[str]]]] = {
    "pool": ("A transpose of 4-byte items", lambda: table(strided_ways)),
    "flat": ("One run of bytes", lambda: table(flat_ways)),
    "cache": ("A kernel for a new process", cache_table),
}


if __name__ == "__main__":
    print(
        f"{machine()}; {versions('numpy', 'numba', 'llvmlite')}; {pool.get_num_threads()} threads"
    )
    for part in sys.argv[1:] or PARTS:
        title, made = PARTS[part]
        print(f"\n### {title}\n\n" + "\n".join(made()))
        print(f"\nLoad average {os.getloadavg()[0]:.1f}.")
