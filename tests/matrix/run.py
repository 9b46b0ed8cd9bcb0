"""Every two libraries over every case, both ways, a process for each two."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import packages_distributions, version
from itertools import combinations
from typing import Any, NamedTuple

import arraybridge

from .cases import Case
from .cell import CRASH, ERROR, HANG, LOST, NA, WRONG, Step, check
from .libraries import package
from .process import apart

FAILURES = (WRONG, ERROR, CRASH, HANG)
CELL_S = 60.0  # the slowest compiles
MOST_ENDINGS = 8  # of the process by own functions; then the rest of a pair is not tried


class Cell(NamedTuple):
    """The outcome of one case between two libraries."""

    source: str
    target: str
    case: str
    verdict: str  # view, copy, transfer, refused, n/a (no such array), or one of `FAILURES`
    why: str = ""  # the route's reason, or what went wrong
    native: str = ""  # of the target's own importer: view, copy, right, error, wrong, crash, hang


def run(
    libraries: Iterable[str],
    cases: list[Case],
    *,
    jobs: int = 2,
    native: bool = True,
    first: str | None = None,
) -> list[Cell]:
    """Every two of ``libraries``, or ``first`` and those after it, over ``cases``, both ways.

    ``jobs`` pairs run at a time; ``native`` asks the target's own importer as well.
    """
    order = {name: i for i, name in enumerate(libraries)}
    pairs = [pair for pair in combinations(order, 2) if first in (None, pair[0])]
    # Those that load for seconds start first, so that no core waits at the end.
    pairs.sort(key=lambda pair: -sum(name in ("tensorflow", "paddle", "torch") for name in pair))
    with ThreadPoolExecutor(jobs) as pool:
        cells = pool.map(lambda pair: _cells(*pair, cases, native), pairs)
        found = [cell for each in cells for cell in each]
    return sorted(found, key=lambda cell: (order[cell.source], order[cell.target]))


def _cells(a: str, b: str, cases: list[Case], native: bool) -> list[Cell]:
    """The cells of one pair; after each crash or hang, another process for what is left."""
    layouts = {case.name: case.layout for case in cases}
    wanted = [(way, name) for way in ((a, b), (b, a)) for name in layouts]
    found: dict[Any, dict[str, Any]] = {cell: {} for cell in wanted}
    # The libraries' own functions come last, because they may end the process.
    kinds = ("cell", "native") if native else ("cell",)
    steps = [Step(*cell, kind) for kind in kinds for cell in wanted]
    endings = dict.fromkeys(((a, b), (b, a)), 0)
    while steps:
        loaded = False
        try:
            for answer in apart(CELL_S, check, a, b, [*steps]):
                if loaded:
                    way, name, kind = steps.pop(0)
                    found[way, name][kind] = answer
                loaded = True
        except ChildProcessError as error:
            if not steps:
                break  # all cells have reported
            at, ended = steps[0], str(error)
            lost = [at]
            if not loaded:
                lost = [*steps]
            elif at.what == "native":  # its siblings of another dtype would end the same way
                endings[at.way] += 1
                lost = [step for step in steps if step.way == at.way]
                if endings[at.way] <= MOST_ENDINGS:
                    lost = [step for step in lost if layouts[step.case] == layouts[at.case]]
            verdict = HANG if ended.startswith("hang") else CRASH
            for way, name, kind in lost:
                outcome = {"verdict": verdict, "why": ended} if kind == "cell" else ended
                found[way, name][kind] = outcome
            steps = [step for step in steps if step not in lost]
    return [_cell(way, name, told) for (way, name), told in found.items()]


def _cell(way: tuple[str, str], case: str, found: dict[str, Any]) -> Cell:
    cell = found.get("cell", {"verdict": ERROR, "why": "no answer"})
    theirs = "" if cell["verdict"] == NA else found.get("native", "")
    return Cell(*way, case, native=theirs, **cell)


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
    return [cell for cell in cells if cell.verdict in FAILURES or lost_views((cell,))]


def versions(libraries: Iterable[str]) -> dict[str, str]:
    """Return versions by the distributions' metadata; nothing is imported."""
    owners = packages_distributions()
    found = {"python": platform.python_version(), "arraybridge": arraybridge.__version__}
    for name in libraries:
        if names := owners.get(package(name).partition(".")[0]):
            own = package(name).replace(".", "-")  # one of several in a namespace package
            found[name] = version(own if own in names else names[0])
    return found
