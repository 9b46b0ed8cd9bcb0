"""Memory traffic of five layouts, counted by Nsight Compute; and the sanitizers of less weight."""

from __future__ import annotations

import csv
import io
import sys
from typing import Any

from . import machine
from .sanitizers import OTHERS, run_program, under

METRICS = {
    "dram__bytes_read.sum": "read",
    "dram__bytes_write.sum": "written",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "share of the peak, %",
    "gpu__time_duration.sum": "time",
    "l1tex__data_bank_conflicts_pipe_lsu.sum": "bank conflicts",
    "launch__registers_per_thread": "registers",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "warps active, %",
}


def counted(seconds: float) -> list[dict[str, Any]]:
    program = machine.tool("ncu")
    if program is None:
        raise FileNotFoundError(
            f"ncu is not on the path, nor in {machine.toolkit()} or /opt/nvidia"
        )
    # The clocks stay as they are: the machine is lent.
    command = [
        program, "--csv", "--clock-control", "none", "--kernel-name", "regex:arraybridge", "--target-processes",
        "all", "--metrics", ",".join(METRICS), sys.executable, "-m", "benchmarks.gpu.sanitized", "--large",
    ]  # fmt: skip
    run = run_program(command, seconds)
    kernels = parsed(run.stdout)
    if not kernels:
        raise AssertionError(f"status {run.returncode}: {(run.stdout + run.stderr)[-800:]}")
    names = [line.split(" | ")[0] for line in run.stdout.splitlines() if line.count(" | ") == 2]
    return [{"layout": name, **found} for name, found in zip(names, kernels, strict=False)]


def parsed(text: str) -> list[dict[str, Any]]:
    """A dictionary a launch, of ncu's table, which has a line a metric."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return []
    table = "\n".join(line for line in lines[start:] if line.startswith('"'))
    launches: dict[str, dict[str, Any]] = {}
    for row in csv.DictReader(io.StringIO(table)):
        launch = launches.setdefault(row["ID"], {"kernel": row["Kernel Name"]})
        launch[METRICS.get(row["Metric Name"], row["Metric Name"])] = (
            f"{row['Metric Value']} {row['Metric Unit']}".strip()
        )
    return list(launches.values())


def run(record: Any) -> None:
    record.attempt("ncu", counted, record.left() - 2, needs=15)
    for tool in OTHERS:
        record.attempt(tool, under, tool, record.left() - 2, needs=10)
