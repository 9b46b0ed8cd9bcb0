"""Measure views of every size, and the import.

python -m benchmarks.exchange            prints the tables
python -m benchmarks.exchange --write    and keeps them in benchmarks/RESULTS.md
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

import numpy as np
import torch

import arraybridge as ab

from .goals import verdict
from .resident import resident
from .results import command, head
from .timing import paired

SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)


def flatness(sizes: tuple[int, ...]) -> list[str]:
    """The time and memory of a view, by size."""
    lines = [
        "| float32 elements | torch to NumPy, ns | NumPy to torch, ns | added resident memory, bytes |",
        "| ---: | ---: | ---: | ---: |",
    ]
    for size in sizes:
        array = np.ones(size, np.float32)
        tensor = torch.ones(size)
        ab.convert(array, "torch"), ab.convert(tensor, "numpy")
        before = resident()
        views = [ab.convert(array, "torch"), ab.convert(tensor, "numpy")]
        added = resident() - before
        pair = paired(
            lambda t=tensor: ab.convert(t, "numpy"), lambda a=array: ab.convert(a, "torch")
        )
        del views
        lines.append(f"| {size:,} | {pair.ours:,.0f} | {pair.peer:,.0f} | {added:,} |")
    return lines


def import_cost(rounds: int = 15) -> list[str]:
    """Whole processes in turn, minus an empty one."""
    commands = {"nothing": "pass", "numpy": "import numpy", "arraybridge": "import arraybridge"}
    took: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, code in commands.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            if turn:  # the first warms the file cache
                took[name].append(time.perf_counter() - start)
    empty = statistics.median(took["nothing"])
    numpy, ours = (statistics.median(took[name]) - empty for name in ("numpy", "arraybridge"))
    ratio = ours / numpy
    return [
        "| import | ms | ratio | goal | |",
        "| --- | ---: | ---: | ---: | --- |",
        f"| numpy | {numpy * 1e3:.0f} | 1 | | |",
        f"| arraybridge | {ours * 1e3:.0f} | {ratio:.2f} | 1.3 | {verdict(ratio, 1.3)} |",
    ]


def report(*, quick: bool = False) -> str:
    sizes = SIZES[:4] if quick else SIZES
    return "\n".join(
        [
            "Goal: a view takes the same time at every size and no memory; `import arraybridge` takes at most 1.3 times as long as `import numpy`.",
            "",
            head("numpy torch"),
            "",
            "### Size",
            "",
            "Measured: views of arrays of 4 KB to 400 MB.",
            "",
            *flatness(sizes),
            "",
            "### Import",
            "",
            "Measured: whole processes in turn, minus an empty one; medians of 15.",
            "",
            *import_cost(3 if quick else 15),
        ]
    )


if __name__ == "__main__":
    command("exchange", __doc__, report)
