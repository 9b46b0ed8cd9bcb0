"""The tables of the matrix, for a terminal and as Markdown: the same rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from arraybridge.cli import screen

from .cell import COPY, NA, REFUSED, TRANSFER, VIEW
from .run import Cell, failures, lost_views

KINDS = (VIEW, COPY, TRANSFER, REFUSED)
SHORT = {VIEW: "v", COPY: "c", TRANSFER: "t", REFUSED: "r"}
OUTCOMES = ("right", "error", "wrong", "crash")  # of a conversion, ours or the library's own
NATIVE = {  # first word of what the library's own conversion did -> column
    "view": "right",
    "copy": "right",
    "right": "right",
    "error": "error",
    "wrong": "wrong",
    "crash": "crash",
    "hang": "crash",
}


def _counts(cells: Iterable[Cell]) -> Counter[str]:
    return Counter(cell.verdict for cell in cells if cell.verdict != NA)


def _summary(cells: Iterable[Cell]) -> str:
    """``201 v  52 c  19 r``, then failures by their names; a count and its letter on one line."""
    counts = _counts(cells)
    parts = [f"{counts[kind]}\N{NO-BREAK SPACE}{SHORT[kind]}" for kind in KINDS if counts[kind]]
    failed = [kind for kind in counts if kind not in KINDS]
    parts += [f"**{counts[kind]}\N{NO-BREAK SPACE}{kind}**" for kind in failed]
    return " ".join(parts) or "-"


def _by(cells: Iterable[Cell], *names: str) -> dict[tuple[str, ...], list[Cell]]:
    found: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        found.setdefault(tuple(getattr(cell, name) for name in names), []).append(cell)
    return found


def pairs_table(cells, libraries):
    """Header and rows: source x target, counts of kinds."""
    return _counted(cells, libraries, "source", "from", libraries)


def cases_table(cells, libraries):
    """Header and rows: group of cases x target, over all sources."""
    groups = dict.fromkeys(cell.group for cell in cells)
    return _counted(cells, libraries, "group", "case", groups)


def _counted(cells, libraries, name, title, heads):
    groups = _by(cells, name, "target")
    yield [f"{title} \\ to", *libraries]
    for head in heads:
        yield [head, *(_summary(groups.get((head, target), ())) for target in libraries)]


def native_table(cells, libraries):
    """Header and rows: target, verdicts on arraybridge and on the library's own conversion."""
    yield [
        "to",
        "live cells",
        "arraybridge right",
        "needless error",
        "wrong",
        "crash",
        "own conversion right",
        "needless error",
        "wrong or unsafe",
        "crash",
    ]
    targets = _by((cell for cell in cells if cell.verdict != NA), "target")
    for target in libraries:
        live = targets.get((target,), [])
        counted = (Counter(map(ours, live)), Counter(theirs(cell) for cell in live if cell.native))
        numbers = (str(count[outcome]) for count in counted for outcome in OUTCOMES)
        yield [target, str(len(live)), *numbers]


def summary_table(cells, libraries):
    """Header and rows: target, its cells by kind, and the outcomes of its own conversion."""
    yield [
        *("to", "view", "copy", "transfer", "refused"),
        *("own correct", "needless error", "wrong or unsafe", "crash"),
    ]
    for target in libraries:
        live = [cell for cell in cells if cell.target == target and cell.verdict != NA]
        kinds = Counter(cell.verdict for cell in live)
        own = Counter(theirs(cell) for cell in live if cell.native)
        numbers = [*(kinds[kind] for kind in KINDS), *(own[outcome] for outcome in OUTCOMES)]
        yield [target, *(f"{number:,}" for number in numbers)]


def ours(cell: Cell) -> str:
    """Which of `OUTCOMES` a conversion by arraybridge is."""
    return {"ERROR": "error", "WRONG": "wrong", "CRASH": "crash", "HANG": "crash"}.get(
        cell.verdict, "right"
    )


def theirs(cell: Cell) -> str:
    """Which of `OUTCOMES` the target's own conversion is."""
    native = cell.native
    if native.startswith(("taken", "view that")):  # an illegal request, or read-only made writable
        return "wrong"
    word = NATIVE.get(re.split(r"\W", native)[0], "wrong")
    # An error is right if no result would be, or only a transfer that nobody asked for.
    return "right" if word == "error" and cell.verdict in (REFUSED, TRANSFER) else word


def latency_table(cells, libraries):
    """Header and rows: source x target, ns of ``convert`` and of the library's own conversion."""
    timed = {(cell.source, cell.target): cell for cell in cells if cell.ns}
    yield ["from \\ to", *libraries]
    for source in libraries:
        row = [source]
        for target in libraries:
            cell = timed.get((source, target))
            row.append("-" if cell is None else f"{micro(cell.ns)} / {micro(cell.native_ns)}")
        yield row


def micro(ns: int | None) -> str:
    """Microseconds in the digits that matter."""
    return "-" if ns is None else f"{ns / 1000:.2f}" if ns < 10_000 else f"{ns / 1000:.0f}"


def reasons_table(cells, libraries):
    """Header and rows: why cells were copied or refused, and to which libraries."""
    yield ["kind", "cells", "why", "to"]
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        if cell.verdict in (COPY, REFUSED):
            groups.setdefault((cell.verdict, _general(cell)), []).append(cell)
    for (kind, why), alike in sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1]))):
        targets = {cell.target for cell in alike}
        to = "every other" if len(targets) >= len(libraries) - 1 else ", ".join(sorted(targets))
        yield [kind, str(len(alike)), why, to]


def _general(cell: Cell) -> str:
    """A cell's reason without what differs from cell to cell."""
    why = re.sub(rf"\b{cell.target}'s\b", "its", cell.why)
    why = re.sub(rf"\b{cell.target}\b(?! has no|\.)", "it", why)
    why = re.sub(rf"^{cell.target} has no [^:]+", "it has no such dtype", why)
    why = re.sub(r"this is aligned to \d+", "this is aligned to fewer", why)
    why = re.sub(r"the layout is [\w -]+", "the layout is another", why)
    why = re.sub(r"this has \d+", "this has more or fewer", why)
    return re.sub(rf"\b{re.escape(_dtype(cell))}\b", "this dtype", why) if _dtype(cell) else why


def _dtype(cell: Cell) -> str:
    return cell.case.partition(" ")[0] if cell.group == "dtype x layout" else ""


def failures_table(cells, libraries):
    """Header and rows: the cells that should not be, those that failed alike together."""
    yield ["from", "to", "verdict", "cells", "first", "why", "own conversion"]
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell in failures(cells):
        key = (cell.source, cell.target, cell.verdict, re.sub(r"\d+", "", cell.why))
        groups.setdefault(key, []).append(cell)
    for (source, target, verdict, _), alike in groups.items():
        first = alike[0]
        yield [source, target, verdict, str(len(alike)), first.case, first.why, first.native]


TABLES = (
    ("Pairs", pairs_table, "v view, c copy, t transfer (requested by device=), r refused."),
    ("Cases", cases_table, "Over all sources that can express the case."),
    (
        "The libraries' own conversions",
        native_table,
        "The same cells by the target's own `from_dlpack` or its equivalent. Unsafe: read-only "
        "memory became writable, or gradients or masks were dropped silently. If no result is "
        "right, an error is.",
    ),
    (
        "Latency",
        latency_table,
        "Microseconds for a float32 of shape (3, 4, 2): convert / the target's own conversion, if "
        "that is right. The best of 19 rounds, while other pairs ran; `python -m benchmarks.calls` "
        "measures more carefully.",
    ),
    ("Reasons", reasons_table, "Why cells were copied or refused."),
)


def print_tables(cells: list[Cell], libraries: list[str], seconds: float) -> None:
    """Every table but the reasons, to the terminal; failures last."""
    shown = [table for table in TABLES if table[1] is not reasons_table]
    if failures(cells):
        shown.append(("Failures", failures_table, ""))
    for title, rows, note in shown:
        header, *body = rows(cells, libraries)
        lay_out = screen.table if rows is failures_table else screen.counts
        print(title, lay_out(body, header), screen.fold(note), "", sep="\n")
    print(verdict(cells, seconds))


def verdict(cells: list[Cell], seconds: float) -> str:
    counts = _counts(cells)
    kinds = ", ".join(f"{counts[kind]:,} {kind}" for kind in (*KINDS, *(counts.keys() - {*KINDS})))
    lost = len(lost_views(cells))
    return (
        f"{sum(counts.values()):,} live cells of {len(cells):,} in {seconds:,.0f} s: {kinds}; "
        f"{lost} copied although the library itself gives a view; {len(failures(cells))} failures"
    )
