"""Measure the first calls of a process: import, view, export, strided copy.

python -m benchmarks.startup        prints the tables
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

from .results import head

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
import {}
print(time.perf_counter() - start)
"""
FIRST = """
import time
import numpy as np, arraybridge as ab
{}
start = time.perf_counter()
{}
print(time.perf_counter() - start)
"""
_TORCH = "import torch; x = torch.ones(100)"
_NUMPY = "x = np.ones(100, 'f4')"
_JAX = "import jax; x = jax.numpy.ones(100); x.__dlpack__()"

#: Name -> the code before it, the call, the goal in milliseconds.
CALLS = {
    "first view, NumPy to PyTorch": (f"import torch; {_NUMPY}", "ab.convert(x, 'torch')", 5),
    "first view, PyTorch to NumPy": (_TORCH, "ab.convert(x, 'numpy')", 5),
    "first view, JAX to NumPy": (_JAX, "ab.convert(x, 'numpy')", 5),
    "first view, JAX to PyTorch": (f"import torch; {_JAX}", "ab.convert(x, 'torch')", 5),
    "first view with a keyword": (_TORCH, "ab.convert(x, 'numpy', copy=False)", 5),
    "first small copy": (_NUMPY, "ab.contiguous(x[::-1])", 5),
    "first Array, over PyTorch": (_TORCH, "ab.from_dlpack(x)", 20),
    "first Array, over NumPy": (_NUMPY, "ab.from_dlpack(x)", 20),
    "first export of an Array": (f"{_TORCH}; a = ab.from_dlpack(x)", "np.from_dlpack(a)", 20),
}
COPY_MS = 25


def seconds(code: str) -> float:
    """Return what a fresh process prints. Its bytecode is on disk, as after an installation."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": _bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


_bytecode = os.path.join(tempfile.gettempdir(), f"arraybridge-bytecode-{os.getuid()}")


def verdict(value: float, goal: float) -> str:
    return "kept" if value <= goal else "**missed**"


def first_calls(rounds: int) -> list[str]:
    """The first call of each kind, in milliseconds."""
    codes = {"import arraybridge": (IMPORT.format("arraybridge"), None)}
    codes |= {
        name: (FIRST.format(before, call), goal) for name, (before, call, goal) in CALLS.items()
    }
    took: dict[str, list[float]] = {name: [] for name in codes}
    for turn in range(rounds + 1):  # the first one writes the bytecode
        for name, (code, _) in codes.items():
            value = seconds(code) * 1e3
            if turn:
                took[name].append(value)
    lines = ["| | ms | goal | |", "| --- | ---: | ---: | --- |"]
    for name, (_, goal) in codes.items():
        value = statistics.median(took[name])
        lines.append(
            f"| {name} | {value:.1f} | {goal or ''} | {verdict(value, goal) if goal else ''} |"
        )
    return lines


def report(rounds: int = 5) -> list[str]:
    took: dict[str, list[float]] = {IMPORT.format("numba"): [], COPY: []}
    for turn in range(rounds + 1):  # the first one writes the bytecode
        for code, of in took.items():
            value = seconds(code) * 1e3
            if turn:
                of.append(value)
    numba, copy = map(statistics.median, took.values())
    return [
        "Goal: as in the tables. Measured: the first calls of fresh processes.",
        "",
        head("numpy torch numba"),
        "",
        "### The first calls of a process",
        "",
        f"With NumPy and the libraries already imported; the time includes what the call imports from arraybridge. Medians of {rounds}.",
        "",
        *first_calls(rounds),
        "",
        "### The first strided copy of a process",
        "",
        f"With NumPy already imported, without the copy itself. Medians of {rounds}.",
        "",
        "| | ms | goal | |",
        "| --- | ---: | ---: | --- |",
        f"| the kernels' library is opened, one kernel found | {copy:.1f} | {COPY_MS} | {verdict(copy, COPY_MS)} |",
        f"| `import numba`, for comparison: it is not needed | {numba:.0f} | | |",
    ]


if __name__ == "__main__":
    print("\n".join(report()))
