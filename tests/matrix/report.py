"""The tables of the matrix, as the page docs/matrix.md has them."""

from __future__ import annotations

import platform
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from .cell import COPY, ERROR, NA, REFUSED, TRANSFER, VIEW, WRONG
from .run import Cell, failures, lost_views

PAGE = Path(__file__).resolve().parents[2] / "docs" / "matrix.md"
KINDS = {VIEW: "v", COPY: "c", TRANSFER: "t", REFUSED: "r"}
OUTCOMES = ("right", "error", "wrong", "crash")  # of the target's own conversion
Rows = Iterator[list[str]]

TOP = """\
# Conversion matrix

Every case (data type, layout, state) was converted between every two libraries, each pair in its
own process, and the result checked: the values bit for bit against NumPy, data type, shape, sharing
(by address and by a write through the view), the read-only flag, the lifetime of either array
without the other, `copy=True` and `copy=False`, and `explain` against the first and later calls.

## Each library as the target

The first four numbers count what arraybridge does with the cases of all other libraries, the others
the results of the target's own function (`from_dlpack` or its equivalent) for the same cases. An
error is *needless* if a correct result exists. A result is *unsafe* if read-only memory became
writable, or if gradients or masks were dropped silently.
"""


def markdown(
    cells: list[Cell], libraries: list[str], versions: dict[str, str], seconds: float
) -> str:
    """Return the text of the page."""
    live = [cell for cell in cells if cell.verdict != NA]
    lines = [TOP, *_table(summary(live, libraries)), "", "## Pairs", ""]
    lines += ["v view, c copy, t transfer (with `device=`), r refused.", ""]
    lines += [*_table(pairs(live, libraries)), ""]
    if failures(cells):
        lines += ["## Failures", "", *_table(failed(cells)), ""]
    told = ", ".join(f"{name} {version}" for name, version in versions.items())
    lines += [
        "## The run",
        "",
        f"`python -m tests.matrix`: {verdict(cells, seconds)}.",
        "",
        f"{time.strftime('%Y-%m-%d')}, {platform.system()} {platform.machine()}: {told}. "
        "JAX had x64 on.",
    ]
    return "\n".join(lines) + "\n"


def _table(rows: Iterable[list[str]]) -> list[str]:
    header, *body = ([text.replace("|", "\\|") for text in row] for row in rows)
    lines = ["| " + " | ".join(row) + " |" for row in (header, *body)]
    return [lines[0], "|" + " --- |" * len(header), *lines[1:]]


def summary(live: list[Cell], libraries: list[str]) -> Rows:
    yield [*("to", "view", "copy", "transfer", "refused"),
           *("own correct", "needless error", "wrong or unsafe", "crash")]  # fmt: skip
    for target in libraries:
        cells = [cell for cell in live if cell.target == target]
        kinds = Counter(cell.verdict for cell in cells)
        own = Counter(own_outcome(cell) for cell in cells if cell.native)
        numbers = [*(kinds[kind] for kind in KINDS), *(own[outcome] for outcome in OUTCOMES)]
        yield [target, *(f"{number:,}" for number in numbers)]


def own_outcome(cell: Cell) -> str:
    """Return which of `OUTCOMES` the target's own conversion is."""
    native = cell.native
    if native.startswith(("taken", "view that")):  # an illegal request, or read-only made writable
        return "wrong"
    word = re.split(r"\W", native)[0]
    # An error is right if no result would be, or only a transfer without device=.
    if word in ("view", "copy", "right") or (
        word == "error" and cell.verdict in (REFUSED, TRANSFER)
    ):
        return "right"
    return {"error": "error", "crash": "crash", "hang": "crash"}.get(word, "wrong")


def pairs(live: list[Cell], libraries: list[str]) -> Rows:
    yield ["from \\ to", *libraries]
    for source in libraries:
        row = [source]
        for target in libraries:
            count = Counter(cell.verdict for cell in live if cell[:2] == (source, target))
            kinds = (*KINDS, *(count.keys() - KINDS.keys()))
            parts = [
                f"{count[kind]}\N{NO-BREAK SPACE}{KINDS.get(kind, kind)}"
                for kind in kinds
                if count[kind]
            ]
            row.append(" ".join(parts) or "-")
        yield row


def failed(cells: list[Cell]) -> Rows:
    yield ["from", "to", "verdict", "cells", "first", "why", "own conversion"]
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell in failures(cells):
        key = (cell.source, cell.target, cell.verdict, re.sub(r"\d+", "", cell.why))
        groups.setdefault(key, []).append(cell)
    for (source, target, kind, _), alike in groups.items():
        first = alike[0]
        yield [source, target, kind, str(len(alike)), first.case, first.why, first.native]


def verdict(cells: list[Cell], seconds: float) -> str:
    """Return the counts in one sentence."""
    counts = Counter(cell.verdict for cell in cells if cell.verdict != NA)
    kinds = ", ".join(f"{counts[kind]:,} {kind}" for kind in (*KINDS, WRONG, ERROR) if counts[kind])
    return (
        f"{sum(counts.values()):,} live cells of {len(cells):,} in {seconds:,.0f} s: {kinds}; "
        f"{len(lost_views(cells))} copied although the library itself gives a view; "
        f"{len(failures(cells))} failures"
    )
