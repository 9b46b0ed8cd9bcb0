"""The parts, each in a process of its own, with a time to end in; begun again behind what crashed or hung."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from .record import rows

SILENCE = 45  # seconds without a new row: it hangs. Compiling the first kernel takes a few.
ATTEMPTS = 12  # processes a part


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


class Outcome(NamedTuple):
    """What came of a part."""

    part: Part
    rows: list[dict]
    seconds: float
    notes: list[str]


PARTS = (
    Part("bandwidth", "The layouts", 110),
    Part("suite", "Tests", 120),
    Part("behavior", "Graphs, streams, contexts, threads", 60),
    Part("sanitizers", "Sanitizers", 75, 75),
    Part("small", "Small copies", 30),
    Part("bandwidth_jax", "The layouts, by JAX", 60),
    Part("transfers", "Transfers", 75),
    Part("host", "Host latency", 45),
    Part("exchanges", "Exchange latency", 30),
    Part("counters", "Counters (ncu), other sanitizers", 60, 60),
)
"""In the order of their worth: what comes last is cut first."""


def run(part: Part, folder: Path, env: dict[str, str], seconds: float) -> Outcome:
    """Run a part, in several processes if some die; its rows are in ``<folder>/<name>.jsonl``."""
    path = folder / f"{part.name}.jsonl"
    start, notes = time.monotonic(), []
    seconds = min(part.seconds, seconds)
    for _ in range(ATTEMPTS):
        left = start + seconds - time.monotonic()
        before = len(rows(path))
        why = _process(part, path, env, left)
        if why is None:
            break
        begun = [row["name"] for row in rows(path)]
        notes.append(f"{why}, at {begun[-1]!r}" if begun else f"{why}, before its first item")
        if len(begun) == before or start + seconds - time.monotonic() < 10:
            break  # no further than the one before, or no time
    return Outcome(part, rows(path), time.monotonic() - start, notes)


def _process(part: Part, path: Path, env: dict[str, str], seconds: float) -> str | None:
    """Why it did not come to its end, or None."""
    if seconds < 5:
        return "not begun: no time was left"
    log = path.with_suffix(".log")
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
            return f"ended by {died}, saying {tail[-1][:300]!r}" if tail else f"ended by {died}"


def _places(log: Path) -> str:
    """Where a test hung, as pytest's faulthandler said."""
    said = log.read_text(errors="replace").splitlines()
    frames = [line.strip() for line in said[-60:] if line.lstrip().startswith('File "')]
    return f" in {'; '.join(frames[:4])}" if frames else ""


def _kill(process: subprocess.Popen) -> None:
    """Kill it and what it began."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)  # one whose kernel never ends may stay for good
