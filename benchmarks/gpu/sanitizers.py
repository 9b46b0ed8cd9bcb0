"""compute-sanitizer over every kernel: memcheck and racecheck."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

from . import machine

PROGRAM = [sys.executable, "-m", "benchmarks.gpu.sanitized"]
FAILED = 77  # the exit status for what a tool found
TOOLS = ("memcheck", "racecheck")
OTHERS = ("synccheck", "initcheck")  # where time is left in the end


def run_program(command: list[str], seconds: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=max(seconds, 1))


def alone(seconds: float) -> dict[str, Any]:
    """Without a tool: the results are right, and the kernels are on disk for the runs with one."""
    run = run_program(PROGRAM, seconds)
    lines = [line for line in run.stdout.splitlines() if line.count(" | ") == 2]
    wrong = [line for line in lines if not line.endswith("| right")]
    kernels = sorted({name for line in lines for name in line.split(" | ")[1].split(", ")})
    if run.returncode or wrong or not lines:
        said = "; ".join(wrong) or (run.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise AssertionError(f"after {len(lines)} nests: {said}"[:1500])
    from arraybridge.kernels.cuda.family import FAMILY

    return {
        "nests": len(lines),
        "kernels": kernels,
        "not reached": sorted(set(FAMILY) - set(kernels)),
    }


def under(tool: str, seconds: float) -> dict[str, Any]:
    program = machine.tool("compute-sanitizer")
    if program is None:
        raise FileNotFoundError(f"compute-sanitizer is not on the path, nor in {machine.toolkit()}")
    command = [
        program,
        "--tool",
        tool,
        "--target-processes",
        "all",
        "--error-exitcode",
        str(FAILED),
        *PROGRAM,
    ]
    run = run_program(command, seconds)
    said = [line for line in run.stdout.splitlines() if line.startswith("=========")]
    summary = next((line for line in reversed(said) if "SUMMARY" in line), "no summary").strip("= ")
    nests = sum(line.count(" | ") == 2 for line in run.stdout.splitlines())
    if run.returncode or not re.search(r"\b0 (errors|hazards)", summary):
        told = "\n".join(said[:30]) or run.stderr[-800:]
        raise AssertionError(f"{summary}, status {run.returncode}, after {nests} nests:\n{told}")
    return {"summary": summary, "nests": nests}


def run(record: Any) -> None:
    record.attempt("no tool", alone, record.left() - 2)
    for tool in TOOLS:
        record.attempt(tool, under, tool, record.left() - 2, needs=8)
