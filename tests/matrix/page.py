"""Write docs/matrix.md, its data and charts, and results.md, from one run: so they agree."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from .charts import draw
from .data import Run, encoded
from .report import TABLES, failures_table, summary_table, theirs, verdict
from .run import failures

TableOf = Callable[..., Iterable[list[str]]]
RESULTS = Path(__file__).with_name("results.md")
DOCS = RESULTS.parents[2] / "docs"

TOP = """\
# Conversion matrix

`ab.convert` returns a view, copies, transfers between devices, or refuses. Choose two libraries, a
data type and a layout to see the result, the reason, the bytes moved and the line to write.

<link rel="stylesheet" href="_static/matrix.css">
<div id="matrix" class="mx">
<noscript>The interactive matrix needs JavaScript. The table below does not.</noscript>
</div>
<script src="_static/matrix_data.js"></script>
<script src="_static/matrix.js"></script>
"""

SUMMARY = """\
## Each library as the target

The first four numbers count what arraybridge does with the cases of all other libraries. The others
count the results of the target's own function (`from_dlpack` or its equivalent) for the same cases.
An error is *needless* if a correct result exists. A result is *unsafe* if read-only memory became
writable, or if gradients or masks were dropped silently.
"""

CHARTS = """\
<div class="mx-bars">

![Correct results, needless errors, wrong results, crashes, by library](pictures/own_functions.svg)

</div>

## Latency by pair

Microseconds per conversion of a small array, while other pairs ran at the same time.
[Performance](performance.md) has more careful measurements.

<div class="mx-wide" tabindex="0" role="region" aria-label="Latency by pair of libraries">

![Microseconds: arraybridge and the target's own function](pictures/latency_by_pair.svg)

</div>
"""

MEASURED = """\
## How it was measured

Each pair of libraries ran in its own process. Each case built an array with the source library's
own functions and called `explain` and `convert`. The run checked:

- the values, bit for bit against NumPy; the data type and the shape;
- sharing, by address and by writing through the view; the read-only flag;
- the lifetime of either array without the other;
- `copy=True` and `copy=False`.

Cases that the source cannot express are not counted. All code that the matrix shows was
run. All tables, by pair, case and reason, are in `tests/matrix/results.md` of the repository.
"""


def markdown(run: Run) -> str:
    """Return the text of docs/matrix.md."""
    return "\n".join([TOP, SUMMARY, *_table(summary_table, run), "", CHARTS, MEASURED, *_run(run)])


def tables(run: Run) -> str:
    """Return the text of results.md."""
    lines = ["# Results of the conversion matrix", "", "Generated; do not edit.", "", *_run(run)]
    chosen = [*TABLES]
    if failures(run.cells):
        chosen.insert(0, ("Failures", failures_table, ""))
    for title, rows, note in chosen:
        lines += ["", f"## {title}", ""]
        if note:
            lines += [note, ""]
        lines += _table(rows, run)
    return "\n".join(lines) + "\n"


def _run(run: Run) -> list[str]:
    """The command, the counts and the versions."""
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    return [
        f"    {run.command}",
        "",
        f"{verdict(run.cells, run.seconds)}.",
        "",
        f"{run.when}, {run.platform}: {versions}. JAX had x64 on, except in the case `x64 off`.",
        "",
    ]


def _table(rows: TableOf, run: Run) -> list[str]:
    header, *body = rows(run.cells, run.libraries)
    return [
        "| " + " | ".join(_escaped(header)) + " |",
        "|" + " --- |" * len(header),
        *("| " + " | ".join(_escaped(row)) + " |" for row in body),
    ]


def _escaped(row: Iterable[str]) -> list[str]:
    return [text.replace("|", "\\|").replace("\n", " ") for text in row]


def write(run: Run, docs: Path) -> None:
    """Write the page, its data and its charts; results.md only with the docs of this repository."""
    for folder in ("_static", "pictures"):
        (docs / folder).mkdir(parents=True, exist_ok=True)
    (docs / "_static" / "matrix_data.js").write_text(encoded(run, theirs))
    (docs / "matrix.md").write_text(markdown(run))
    draw(run, docs / "pictures")
    if docs.resolve() == DOCS:
        RESULTS.write_text(tables(run))
