"""The first strided copy of a process: with nothing on disk, with its kernel on disk.

python -m benchmarks.startup        prints the table; benchmarks.contiguous has it in its own
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

COPY = """
import time, sys
import numpy as np, arraybridge as ab
x, out = np.ones((1024, 1024), "f4"), np.empty((1024, 1024), "f4")
start = time.perf_counter()
ab.contiguous(x.T, out=out)
first = time.perf_counter() - start
start = time.perf_counter()
ab.contiguous(x.T, out=out)
print(first - (time.perf_counter() - start))
"""
IMPORT = """
import time
import numpy
start = time.perf_counter()
import numba
print(time.perf_counter() - start)
"""
COLD_S = 2.0
OVER_NUMBA_S = 0.2


def seconds(code: str, folder: str) -> float:
    """What a fresh process prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "ARRAYBRIDGE_CACHE_DIR": folder},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def report(rounds: int = 5) -> list[str]:
    took: dict[str, list[float]] = {"numba": [], "cold": [], "warm": []}
    seconds(IMPORT, "")  # the file cache
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            took["numba"].append(seconds(IMPORT, folder))
            took["cold"].append(seconds(COPY, folder))
            took["warm"].append(seconds(COPY, folder))
    numba, cold, warm = (statistics.median(took[name]) for name in ("numba", "cold", "warm"))
    most = numba + OVER_NUMBA_S

    def verdict(value: float, goal: float) -> str:
        return "kept" if value <= goal else "**missed**"

    return [
        "### The first strided copy of a process",
        "",
        f"Fresh processes in turn, with NumPy already imported; medians of {rounds}, the copy itself subtracted.",
        "",
        "| | s | goal | |",
        "| --- | ---: | ---: | --- |",
        f"| `import numba`, for comparison | {numba:.2f} | | |",
        f"| no cache: Numba compiles | {cold:.2f} | {COLD_S} | {verdict(cold, COLD_S)} |",
        f"| kernel in the disk cache | {warm:.3f} | {most:.2f} (Numba's import + {OVER_NUMBA_S}) | {verdict(warm, most)} |",
    ]


if __name__ == "__main__":
    print("\n".join(report()))
