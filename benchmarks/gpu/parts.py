"""The parts, each in its own process with a time limit; restarted after an item that crashed or hung."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from .record import append, drop, rows

SILENCE = 45  # seconds without a new row: it hangs. Compiling the first kernel takes a few.
ATTEMPTS = 12  # processes per part
OVERHEAD = 35  # seconds of a call outside its parts: imports, what the machine has, the files
BUDGET = 390  # seconds that a call may take


class Part(NamedTuple):
    """What one process does.

    Attributes
    ----------
    name : str
        ``benchmarks.gpu.<name>``, whose ``run(record)`` it is.
    title : str
    seconds : float
        That it may take.
    silence : float
        Seconds without a new row after which it is taken to hang.
    """

    name: str
    title: str
    seconds: float
    silence: float = SILENCE


_KERNELS = Part("kernels", "Kernels, compiled in as many processes as there are cores", 40)

CALLS = {
    1: (
        _KERNELS,
        Part("sanitizers", "Sanitizers", 60, 60),
        Part("bandwidth", "The layouts", 105),
        Part("suite", "Tests", 100),
        Part("small", "Small copies", 30),
        Part("exchanges", "Exchange latency", 20),
    ),
    2: (
        _KERNELS,
        Part("bandwidth_jax", "The layouts, by JAX", 55),
        Part("transfers", "Transfers", 55),
        Part("host", "Host latency", 40),
    ),
}
"""Two calls, as a machine is lent for minutes at a time; their parts in the order of their worth.

Each part's seconds are its own, and add up to less than `BUDGET`: none is cut because another took
long. The first call has what decides whether the copies are right and fast, the sanitizers ahead
of all: where they find something, no time that follows counts.
"""

PARTS = tuple(dict.fromkeys(part for call in CALLS.values() for part in call))


def run(part: Part, path: Path, env: dict[str, str], seconds: float, logs: Path) -> None:
    """Run a part, in several processes if some die; its rows in ``path`` replace earlier ones.

    What the processes print is in ``<logs>/<name>.log``.
    """
    start, notes = time.monotonic(), []
    seconds = min(part.seconds, seconds)
    if seconds < 5:
        return  # what an earlier call found stays
    drop(path, part.name)
    for _ in range(ATTEMPTS):
        left = start + seconds - time.monotonic()
        before = len(rows(path, part.name))
        why = _process(part, path, env, left, logs / f"{part.name}.log")
        if why is None:
            break
        found = rows(path, part.name)
        notes.append(
            f"{why}, at {found[-1]['name']!r}" if found else f"{why}, before its first item"
        )
        if len(found) == before or start + seconds - time.monotonic() < 10:
            break  # no further than the one before, or no time
    took = time.monotonic() - start
    append(path, part=part.name, ended={"seconds": round(took, 1), "notes": notes})


def _process(part: Part, path: Path, env: dict[str, str], seconds: float, log: Path) -> str | None:
    """Why it did not end normally, or None."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.gpu.part",
        part.name,
        str(path),
        f"{seconds - 3:.0f}",
    ]
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, env=env, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        ends, last, size = time.monotonic() + seconds, time.monotonic(), -1
        while True:
            try:
                code = process.wait(0.2)
            except subprocess.TimeoutExpired:
                now, grown = time.monotonic(), path.stat().st_size if path.exists() else 0
                if grown != size:
                    size, last = grown, now
                if now < ends and now - last < part.silence:
                    continue
                _kill(process)
                silent = f"stopped, silent for {part.silence:.0f} s{_places(log)}"
                return "stopped, out of time" if now >= ends else silent
            if code == 0:
                return None
            tail = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
            died = signal.Signals(-code).name if code < 0 else f"status {code}"
            return f"ended by {died}, printing {tail[-1][:300]!r}" if tail else f"ended by {died}"


def _places(log: Path) -> str:
    """The place at which a test hung, from the report of pytest's faulthandler."""
    said = log.read_text(errors="replace").splitlines()
    frames = [line.strip() for line in said[-60:] if line.lstrip().startswith('File "')]
    return f" in {'; '.join(frames[:4])}" if frames else ""


def _kill(process: subprocess.Popen) -> None:
    """Kill it and its children."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)  # a process whose kernel never ends may stay
