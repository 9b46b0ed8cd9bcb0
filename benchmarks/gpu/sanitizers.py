"""compute-sanitizer over every kernel: memcheck and racecheck."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from typing import Any

from . import machine
from .sanitized import NESTS

FAILED = 77  # the exit status for what a tool found
TOOLS = ("memcheck", "racecheck")
ENDING = 6  # seconds in which a program comes to its end behind its last nest

#: The last line of a tool without findings; warnings count as findings.
CLEAN = re.compile(
    r"========= (ERROR SUMMARY: 0 errors"
    r"|RACECHECK SUMMARY: 0 hazards displayed \(0 errors, 0 warnings\))\s*"
)


def program(module: str, seconds: float) -> list[str]:
    """A program that starts no work near the end of so many seconds, of which a tool takes some."""
    return [
        sys.executable,
        "-m",
        f"benchmarks.gpu.{module}",
        f"{time.time() + seconds - ENDING:.0f}",
    ]


def run_program(command: list[str], seconds: float) -> tuple[int | None, str]:
    """Its exit status, None if it had to be stopped, and the output of it and its children.

    They are stopped with it: what a tool leaves running would disturb the measurements that follow.
    """
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        try:
            said, _ = process.communicate(timeout=max(seconds, 1))
            return process.returncode, said
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            said, _ = process.communicate()
            return None, said


def copies(said: str) -> list[list[str]]:
    """What `sanitized` prints of a copy: its name, its kernels, the outcome."""
    return [line.split(" | ") for line in said.splitlines() if line.count(" | ") == 2]


def alone(seconds: float) -> dict[str, Any]:
    """Without a tool: the results are right."""
    status, said = run_program(program("sanitized", seconds), seconds)
    done = copies(said)
    wrong = "; ".join(f"{name}: {came}" for name, _, came in done if came != "right")
    if status or len(done) < len(NESTS):
        last = (said.strip().splitlines() or ["no output"])[-1]
        raise AssertionError(f"{len(done)} of {len(NESTS)} nests, status {status}: {wrong or last}")
    from arraybridge.kernels.cuda.family import FAMILY

    kernels = sorted({name for _, names, _ in done for name in names.split(", ")})
    return {
        "nests": len(done),
        "kernels": kernels,
        "not reached": sorted(set(FAMILY) - set(kernels)),
    }


def under(tool: str, seconds: float) -> dict[str, Any]:
    """Run under a tool, which must find nothing in any process, not even a warning.

    Errors of the driver's functions are not among what it looks for: arraybridge checks each call's
    code, and asks for what may not be there.
    """
    sanitizer = machine.tool("compute-sanitizer")
    if sanitizer is None:
        raise FileNotFoundError(f"compute-sanitizer is not on the path, nor in {machine.toolkit()}")
    options = ["--tool", tool, "--target-processes", "all", "--report-api-errors", "no"]
    command = [sanitizer, *options, "--error-exitcode", str(FAILED), *program("sanitized", seconds)]
    status, said = run_program(command, seconds)
    lines = [line for line in said.splitlines() if line.startswith("=========")]
    summaries = [line for line in lines if "SUMMARY" in line]
    nests = len(copies(said))
    clean = bool(summaries) and all(CLEAN.fullmatch(line) for line in summaries)
    if status != 0 or not clean or nests < len(NESTS):
        what = f"{nests} of {len(NESTS)} nests, status {status}, {len(summaries)} summaries"
        shown = [*(line for line in summaries if not CLEAN.fullmatch(line)), *lines[:30]]
        raise AssertionError("\n".join([what, *(shown or [said[-800:]])]))
    return {"summary": summaries[-1].strip("= "), "nests": nests}


def run(record: Any) -> None:
    record.attempt("no tool", alone, min(record.left() - 2, 30))
    record.attempt(TOOLS[0], under, TOOLS[0], record.left() / 2, needs=16)
    record.attempt(TOOLS[1], under, TOOLS[1], record.left() - 2, needs=10)
