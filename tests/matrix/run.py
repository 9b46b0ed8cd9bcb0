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


def run(
    libraries: Iterable[str],
    cases: list[Case],
    *,
    jobs: int = 2,
    native: str | None = "native",
    first: str | None = None,
) -> list[Cell]:
    """Every two of ``libraries``, or ``first`` and those after it, over ``cases``, both ways.

    ``jobs`` pairs run at a time. ``native`` is the step that asks the target's own importer:
    "native"; "native_without_view", only where arraybridge gives no view; or None.
    """
    order = {name: i for i, name in enumerate(libraries)}
    pairs = [pair for pair in combinations(order, 2) if first in (None, pair[0])]
    # Those that load for seconds start first, so that no core waits at the end.
    pairs.sort(key=lambda pair: -sum(name in ("tensorflow", "paddle", "torch") for name in pair))
    with ThreadPoolExecutor(jobs) as pool:
        cells = pool.map(lambda pair: _cells(*pair, cases, native), pairs)
        found = [cell for each in cells for cell in each]
    index = {case.name: i for i, case in enumerate(cases)}
    return sorted(found, key=lambda c: (order[c.source], order[c.target], index[c.case]))


def _cells(a: str, b: str, cases: list[Case], native: str | None) -> list[Cell]:
    """The cells of one pair; after each crash or hang, another process for what is left."""
    by_name = {case.name: case for case in cases}
    # Each way comes first in a process, in one of `make matrix` and the tests.
    ways = ((b, a), (a, b)) if native == "native" else ((a, b), (b, a))
    # JAX narrows while x64 is off, as at its start: these come first.
    wanted = [
        (way, case.name)
        for narrow in (True, False)
        for way in ways
        for case in cases
        if (case.group == "x64 off") is narrow and (not narrow or way[1] == "jax")
    ]
    found: dict[tuple[tuple[str, str], str], dict[str, Any]] = {cell: {} for cell in wanted}
    steps = [Step(*cell, "cell") for cell in wanted]
    if native:  # last, because native functions may end the process
        steps += [Step(*cell, native) for cell in wanted]
    crashes = dict.fromkeys(ways, 0)
    while steps:
        loaded = False
        try:
            for answer in apart(CELL_S, check, a, b, [*steps]):
                if loaded:
                    way, name, what = steps.pop(0)
                    found[way, name][what] = answer
                loaded = True
        except ChildProcessError as error:
            if not steps:
                break  # all cells have reported
            ended, at = str(error), steps[0]
            crashes[at.way] += 1
            verdict = {"hang": HANG, "error": ERROR}.get(ended.partition(":")[0], CRASH)
            here = [step for step in steps if step.way == at.way]
            if not loaded:
                lost = ends = [*steps]
            elif crashes[at.way] > MOST_CRASHES:
                lost = ends = here
            elif at.what == native:  # its siblings of another dtype would end the same way
                layout = by_name[at.case].layout
                lost = ends = [step for step in here if by_name[step.case].layout == layout]
            else:
                lost, ends = [step for step in here if step.case == at.case], [at]
            steps = [step for step in steps if step not in lost]
            for way, name, what in ends:
                why = f"{ended}, as in {at.case}" if loaded and name != at.case else ended
                outcome = {"cell": {"verdict": verdict, "why": why}, native: why}
                found[way, name][what] = outcome.get(what, {})
    return [_cell(way, by_name[name], told, native) for (way, name), told in found.items()]


def _cell(way: tuple[str, str], case: Case, found: dict[str, Any], native: str | None) -> Cell:
    cell = found.get("cell", {"verdict": ERROR, "why": "no answer"})
    theirs = "" if cell["verdict"] == NA else found.get(native, "")
    return Cell(*way, case.name, case.group, native=theirs, **cell)


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
    """Return versions by the distributions' metadata; nothing is imported."""
    owners = packages_distributions()
    found = {"python": platform.python_version(), "arraybridge": arraybridge.__version__}
    for name in libraries:
        if names := owners.get(package(name).partition(".")[0]):
            own = package(name).replace(".", "-")  # one of several in a namespace package
            found[name] = version(own if own in names else names[0])
    return found
