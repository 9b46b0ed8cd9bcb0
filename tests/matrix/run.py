"""Every ordered pair of libraries over every case, a process each."""

from __future__ import annotations

import json
import os
import platform
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import arraybridge
from arraybridge.cli.libraries import package, version_of

from ..support import coexist
from .cases import Case
from .cell import CRASH, ERROR, HANG, LOST, NA, WRONG

FAILURES = (WRONG, ERROR, CRASH, HANG)
FIRST_EVENT_S, NEXT_EVENT_S = 180.0, 60.0  # imports, and the slowest cell (a first compilation)
MOST_CRASHES = 8  # then the rest of a pair is not tried


class Cell(NamedTuple):
    """The outcome of one case between two libraries.

    Attributes
    ----------
    verdict : str
        view, copy, transfer, refused, n/a (the source has no such array), or one of `FAILURES`.
    why : str
        The route's reason, or what went wrong.
    native : str
        What the target's own importer does: view, copy, right, error, wrong, crash or hang, and
        details.
    nbytes : int
        Bytes that are copied.
    code, gives : str
        The line that converts it, and the kind of its route where that is not the verdict: of what
        is refused, with the remedy.
    instead : str
        A line that gives a view, where the plain one copies.
    ns, native_ns : int or None
        Least time of `convert`, and of the native door where that is right; one case a pair has
        it.
    """

    source: str
    target: str
    case: str
    group: str
    verdict: str
    why: str = ""
    native: str = ""
    nbytes: int = 0
    code: str = ""
    gives: str = ""
    instead: str = ""
    ns: int | None = None
    native_ns: int | None = None


TOLD = ("nbytes", "code", "gives", "instead")


def run(
    libraries: Iterable[str],
    cases: list[Case],
    *,
    jobs: int = 2,
    native: bool = True,
    targets: Iterable[str] | None = None,
    progress: Callable[[str, str], None] = lambda source, target: None,
) -> list[Cell]:
    """Every ordered pair of ``libraries`` over ``cases``.

    Parameters
    ----------
    libraries : iterable of str
    cases : list of Case
    jobs : int
        Pairs at a time.
    native : bool
        Whether the target's own importer is asked as well.
    targets : iterable of str, optional
        Only the pairs to these.
    progress : callable
        Called with each pair that is done.
    """
    order = {name: i for i, name in enumerate(libraries)}
    wanted = set(order if targets is None else targets)
    pairs = [pair for pair in permutations(order, 2) if pair[1] in wanted]
    # Those that load for seconds start first, so that no core waits at the end.
    pairs.sort(key=lambda pair: -sum(name in ("tensorflow", "paddle", "torch") for name in pair))
    found: list[Cell] = []
    with ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(_pair, *pair, cases, native): pair for pair in pairs}
        try:
            for done in as_completed(waiting):
                found += done.result()
                progress(*waiting[done])
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    index = {case.name: i for i, case in enumerate(cases)}
    return sorted(found, key=lambda c: (order[c.source], order[c.target], index[c.case]))


def _pair(source: str, target: str, cases: list[Case], native: bool) -> list[Cell]:
    usual = [case for case in cases if case.group != "x64 off"]
    cells = _Child(source, target, usual, native).run() if usual else []
    narrow = [case for case in cases if case.group == "x64 off"]
    if narrow and target == "jax":
        cells += _Child(source, target, narrow, native, x64=False).run()
    return cells


class _Child:
    """The processes of one pair: a new one after each crash or hang, for what is left."""

    def __init__(self, source, target, cases, native, x64=True):
        self.source, self.target, self.x64 = source, target, x64
        self.cases = {case.name: case for case in cases}
        self.found: dict[str, dict[str, Any]] = {name: {} for name in self.cases}
        self.native = native
        self.crashes = 0

    def run(self) -> list[Cell]:
        steps = [[name, "cell"] for name in self.cases]
        if "contiguous" in self.cases:
            steps.append(["contiguous", "latency"])
        if self.native:  # last, as it is the native doors that end processes
            steps += [[name, "native"] for name in self.cases]
            if "contiguous" in self.cases:
                steps.append(["contiguous", "native_latency"])
        self._all(steps)
        return [self._cell(case) for case in self.cases.values()]

    def _all(self, steps):
        while steps:
            ended, at = self._process(steps)
            if ended is None:
                return
            self.crashes += 1
            if at is None or self.crashes > MOST_CRASHES:
                for name, what in steps:
                    self._record(name, what, ended)
                return
            name, what = at
            self._record(name, what, ended)
            steps = steps[steps.index(at) + 1 :]
            if at[1] == "native":  # its siblings of another dtype would end the same way
                layout = self.cases[at[0]].layout
                alike = [step for step in steps if self.cases[step[0]].layout == layout]
                for name, what in alike:
                    self._record(name, what, f"{ended}, as in {at[0]}")
                steps = [step for step in steps if step not in alike]
            else:
                steps = [step for step in steps if step[0] != at[0]]

    def _record(self, name, what, ended):
        hang = ended.startswith("hang")
        if what == "cell":
            outcome: Any = {"verdict": HANG if hang else CRASH, "why": ended}
            if ended.startswith("failed"):
                outcome = {"verdict": ERROR, "why": ended}
        else:
            outcome = ended if what == "native" else {}
        self.found[name][what] = outcome

    def _process(self, steps) -> tuple[str | None, list | None]:
        """(how it ended, or None if all went well; the step at which)."""
        read, write = os.pipe()
        job = {
            "source": self.source,
            "target": self.target,
            "x64": self.x64,
            "steps": steps,
            "events": write,
        }
        with tempfile.TemporaryFile() as noise:
            child = subprocess.Popen(
                [sys.executable, "-m", "tests.matrix.cell"],
                stdin=subprocess.PIPE,
                stdout=noise,
                stderr=noise,
                pass_fds=[write],
                env=environment(),
            )
            os.close(write)
            try:
                assert child.stdin is not None
                child.stdin.write(json.dumps(job).encode())
                child.stdin.close()
                return self._listen(child, read, noise)
            finally:
                os.close(read)
                if child.poll() is None:
                    child.kill()
                child.wait()

    def _listen(self, child, read, noise):
        at, rest, patience = None, b"", FIRST_EVENT_S
        while True:
            ready, _, _ = select.select([read], [], [], patience)
            if not ready:
                return f"hang: nothing for {patience:.0f} s", at
            chunk = os.read(read, 1 << 16)
            if not chunk:
                return self._death(child, noise), at
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                event = json.loads(line)
                if "end" in event:
                    return None, None
                if "failed" in event:
                    return f"failed to load: {event['failed']}", None
                if "start" in event:
                    at = event["start"]
                elif "step" in event:
                    name, what = event["step"]
                    self.found[name][what] = event[what]
            patience = NEXT_EVENT_S

    def _death(self, child, noise) -> str:
        code = child.wait()
        noise.seek(0)
        last = [line.strip() for line in noise.read().decode(errors="replace").splitlines() if line]
        if code >= 0:
            return f"crash: exit code {code}: {last[-1] if last else ''}"[:300]
        try:
            return f"crash: {signal.Signals(-code).name}"
        except ValueError:
            return f"crash: signal {-code}"

    def _cell(self, case) -> Cell:
        found = self.found[case.name]
        cell = dict(found.get("cell", {"verdict": ERROR, "why": "no answer"}))
        native = found.get("native", "")
        if cell["verdict"] == NA:
            native = ""
        return Cell(
            self.source,
            self.target,
            case.name,
            case.group,
            cell["verdict"],
            cell.get("why", ""),
            native,
            *(cell.get(name, Cell._field_defaults[name]) for name in TOLD),
            **found.get("latency", {}),
            **found.get("native_latency", {}),
        )


def environment() -> dict[str, str]:
    """The environment of the children: what the libraries want, and this checkout on the path."""
    environ = dict(os.environ)
    coexist.prepare(environ)
    root = str(Path(__file__).resolve().parents[2])
    environ["PYTHONPATH"] = os.pathsep.join(filter(None, (root, environ.get("PYTHONPATH"))))
    environ.setdefault("OMP_NUM_THREADS", "1")  # two pairs share the machine
    return environ


def lost_views(cells: Iterable[Cell]) -> list[Cell]:
    """Copies where the library's own importer gives a right view that breaks no contract.

    One kind is none: Paddle takes negative strides on import, and where the outer axis has one, its
    own ``numpy()`` and slices then fail, having computed a negative size of the memory.
    """
    return [
        cell
        for cell in cells
        if cell.native == LOST and not (cell.target == "paddle" and "negative strides" in cell.why)
    ]


def failures(cells: Iterable[Cell]) -> list[Cell]:
    """Every cell that makes the exit status 1."""
    return [cell for cell in cells if cell.verdict in FAILURES or cell in lost_views((cell,))]


def versions(libraries: Iterable[str]) -> dict[str, str]:
    """Versions of Python, arraybridge and libraries, by their metadata: nothing is imported."""
    found = {"python": platform.python_version(), "arraybridge": arraybridge.__version__}
    return found | {name: version_of(package(name)) for name in libraries}
