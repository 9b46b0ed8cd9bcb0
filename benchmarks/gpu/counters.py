"""The 26 layouts, counted by Nsight Compute (ncu); and the less important sanitizers.

python -m benchmarks.gpu.counters TIME      a copy of each; none is begun after it, in seconds since 1970
"""

from __future__ import annotations

import csv
import io
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from . import machine, rehearsal
from .bandwidth import layouts
from .bare import Bare, copy, extents
from .ours import tuning_here
from .sanitized import of_layout
from .sanitizers import OTHERS, copies, program, run_program, under

#: Per launch: at most ten passes of a kernel.
METRICS = {
    "gpu__time_duration.sum": "time",
    "dram__bytes_read.sum": "read",
    "dram__bytes_write.sum": "written",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "share of the memory's peak",
    "lts__t_sectors_op_read.sum": "sectors of L2 read",
    "lts__t_sectors_op_write.sum": "sectors of L2 written",
    "smsp__issue_active.avg.pct_of_peak_sustained_active": "issue slots used",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "warps active",
    "launch__registers_per_thread": "registers",
    "l1tex__data_bank_conflicts_pipe_lsu.sum": "bank conflicts",
}
FEW = tuple(METRICS)[:3]  # if a release of ncu does not know all of them


def counted(seconds: float, metrics: tuple[str, ...] = tuple(METRICS)) -> list[list[Any]]:
    """A list of launches for each layout, after its name: ``[name, launch, ...]``."""
    ncu = machine.tool("ncu")
    if ncu is None:
        raise FileNotFoundError(
            f"ncu is not on the path, nor in {machine.toolkit()} or /opt/nvidia"
        )
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "table.csv")
        # The clocks stay as they are: the machine is lent.
        command = [
            ncu, "--csv", "--log-file", str(table), "--clock-control", "none", "--kernel-name", "regex:arraybridge_",
            "--target-processes", "all", "--metrics", ",".join(metrics), *program("counters", seconds),
        ]  # fmt: skip
        status, said = run_program(command, seconds)
        text = table.read_text() if table.exists() else ""
    launches = parsed(text)
    if not launches:
        raise AssertionError(f"status {status}: {text[-800:]}\n{said[-800:]}".strip())
    found = []
    for name, kernels, _ in copies(said):
        expected = [] if kernels == "memcpy" else kernels.split(", ")
        these, launches = launches[: len(expected)], launches[len(expected) :]
        if [launch["kernel"] for launch in these] != expected:
            raise AssertionError(f"{name} launches {expected}, and ncu's next are {these}"[:800])
        found.append([name, *these])
    return found


def parsed(text: str) -> list[dict[str, str]]:
    """One dictionary per launch, from ncu's table, which has one line per metric."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    table = "\n".join(line for line in lines[start:] if line.startswith('"'))
    launches: dict[str, dict[str, str]] = {}
    for row in csv.DictReader(io.StringIO(table)):
        kernel = re.sub(r".*arraybridge_(\w+).*", r"\1", row["Kernel Name"])
        launch = launches.setdefault(row["ID"], {"kernel": kernel})
        launch[METRICS.get(row["Metric Name"], row["Metric Name"])] = (
            f"{row['Metric Value']} {row['Metric Unit']}".strip()
        )
    return list(launches.values())


def run(record: Any) -> None:
    done: list[str] = []

    def count(metrics: tuple[str, ...]) -> dict[str, Any]:
        for name, *launches in counted(record.left() * 0.6, metrics):
            for launch in launches:
                record.write(name=name, values=launch)
            done.append(name)
        if len(done) < len(layouts()):
            raise AssertionError(f"{len(done)} of {len(layouts())} layouts: time ran out")
        return {"nests": len(done), "summary": "counted"}

    record.attempt("ncu", count, tuple(METRICS), needs=15)
    if not done and machine.tool("ncu") is not None:
        record.attempt("ncu, few metrics", count, FEW, needs=30)
    for tool in OTHERS:
        record.attempt(tool, under, tool, record.left() / 2, needs=20)


def main() -> None:
    if rehearsal.WANTED:
        rehearsal.install()
    ends = float(sys.argv[1])
    memory, tuning = Bare(), tuning_here()
    for nest in map(of_layout, layouts()):
        if time.time() > ends:
            break
        copy(memory, nest, *(np.zeros(size, np.uint8) for _, size in extents(nest)))
        kernels = [plan.kernel for plan in nest.tuned(tuning)]
        print(f"{nest.name} | {', '.join(kernels)} | copied", flush=True)


if __name__ == "__main__":
    main()
