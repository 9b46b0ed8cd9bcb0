"""Every ordered pair of libraries over every case, a process each."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable
from concurrent.futures import as_completed
from itertools import permutations
from typing import Any, NamedTuple

import arraybridge
from arraybridge.cli.child import apart, workers
from arraybridge.cli.libraries import package, version_of

from .cases import Case
from .cell import CRASH, ERROR, HANG, LOST, NA, WRONG, check

FAILURES = (WRONG, ERROR, CRASH, HANG)
CELL_S = 60.0  # the slowest compiles
MOST_CRASHES = 8  # then the rest of a pair is not tried


class Cell(NamedTuple):
    """The outcome of one case between two libraries."""

    source: str
    target: str
    case: str
    group: str
    verdict: str  # view, copy, transfer, refused, n/a (no such array), or one of `FAILURES`
    why: str = ""  # the route's reason, or what went wrong
    native: str = ""  # of the target's own importer: view, copy, right, error, wrong, crash, hang
    nbytes: int = 0  # that are copied
    code: str = ""  # the line that converts it, with the remedy if it is refused
    gives: str = ""  # the kind of that line's route, where it is not the verdict
    instead: str = ""  # a line that gives a view, where the plain one copies
    ns: int | None = None  # least time of `convert`, of one case a pair
    native_ns: int | None = None  # and of the target's own importer, where that is right


def run(
    libraries: Iterable[str],
    cases: list[Case],
    *,
    jobs: int = 2,
    native: bool = True,
    targets: Iterable[str] | None = None,
    progress: Callable[[str], None] = lambda pair: None,
) -> list[Cell]:
    """Every ordered pair of ``libraries``, or those to some targets, over ``cases``.

    ``jobs`` pairs run at a time; ``native``: the target's own importer is asked as well.
    """
    order = {name: i for i, name in enumerate(libraries)}
    wanted = set(order if targets is None else targets)
    pairs = [pair for pair in permutations(order, 2) if pair[1] in wanted]
    # Those that load for seconds start first, so that no core waits at the end.
    pairs.sort(key=lambda pair: -sum(name in ("tensorflow", "paddle", "torch") for name in pair))
    found: list[Cell] = []
    with workers(jobs) as pool:
        waiting = {pool.submit(_pair, *pair, cases, native): pair for pair in pairs}
        for done in as_completed(waiting):
            found += done.result()
            progress(" -> ".join(waiting[done]))
    index = {case.name: i for i, case in enumerate(cases)}
    return sorted(found, key=lambda c: (order[c.source], order[c.target], index[c.case]))


def _pair(source: str, target: str, cases: list[Case], native: bool) -> list[Cell]:
    usual = [case for case in cases if case.group != "x64 off"]
    narrow = [case for case in cases if case.group == "x64 off" and target == "jax"]
    return [
        *_cells(source, target, usual, native, True),
        *_cells(source, target, narrow, native, False),
    ]


def _cells(source, target, cases, native, x64) -> list[Cell]:
    """The cells of one pair; after each crash or hang, another process for what is left."""
    by_name: dict[str, Case] = {case.name: case for case in cases}
    found: dict[str, dict[str, Any]] = {name: {} for name in by_name}
    steps = [(name, "cell") for name in by_name]
    steps += [("contiguous", "latency")] * ("contiguous" in by_name)
    if native:  # last, because native functions may end the process
        steps += [(name, "native") for name in by_name]
        steps += [("contiguous", "native_latency")] * ("contiguous" in by_name)
    crashes = 0
    while steps:
        loaded = False
        try:
            for answer in apart(CELL_S, check, source, target, [*steps], x64):
                if loaded:
                    name, what = steps.pop(0)
                    found[name][what] = answer
                loaded = True
        except ChildProcessError as error:
            if not steps:
                break  # all cells have reported
            ended, crashes = str(error), crashes + 1
            verdict = {"hang": HANG, "error": ERROR}.get(ended.partition(":")[0], CRASH)
            (at, what), layout = steps[0], by_name[steps[0][0]].layout
            if not loaded or crashes > MOST_CRASHES:
                lost = ends = [*steps]
            elif what == "native":  # its siblings of another dtype would end the same way
                lost = ends = [step for step in steps if by_name[step[0]].layout == layout]
            else:
                lost, ends = [step for step in steps if step[0] == at], steps[:1]
            steps = [step for step in steps if step not in lost]
            for name, what in ends:
                why = f"{ended}, as in {at}" if loaded and name != at else ended
                outcome = {"cell": {"verdict": verdict, "why": why}, "native": why}
                found[name][what] = outcome.get(what, {})
    return [_cell(source, target, case, found[case.name]) for case in cases]


def _cell(source: str, target: str, case: Case, found: dict[str, Any]) -> Cell:
    cell = found.get("cell", {"verdict": ERROR, "why": "no answer"})
    native = "" if cell["verdict"] == NA else found.get("native", "")
    times = found.get("latency", {}) | found.get("native_latency", {})
    return Cell(source, target, case.name, case.group, native=native, **cell, **times)


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
