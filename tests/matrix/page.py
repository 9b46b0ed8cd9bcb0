"""docs/matrix.md, its data and its charts: all by the same run, so that they agree."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .charts import draw
from .data import Run, encoded
from .report import TABLES, failures_table, theirs, verdict
from .run import failures

TOP = """\
# Conversion matrix

What happens to an array of one library on its way to another: a view, a copy, a transfer between
devices or a refusal, why, how many bytes are moved, and the line of code to write. On the site,
choose a cell and narrow it down by data type and layout; the tables below count the same cases.

<link rel="stylesheet" href="_static/matrix.css">
<div id="matrix" class="mx">
<noscript>The interactive matrix needs JavaScript. The tables below do not.</noscript>
</div>
<script src="_static/matrix_data.js"></script>
<script src="_static/matrix.js"></script>
"""

CHARTS = """\
## The libraries' own functions and arraybridge

<div class="mx-bars">

![Right results, needless errors, wrong or unsafe results, crashes](pictures/own_doors.svg)

</div>

## Latency by pair

Of a small array, where the fixed cost of a call is all there is. Measured while other pairs ran;
[Performance](performance.md) has more careful measurements.

<div class="mx-wide" tabindex="0" role="region" aria-label="Latency by pair of libraries">

![Microseconds a conversion, beside the target's own function](pictures/latency_by_pair.svg)

</div>
"""

MEASURED = """\
## How it was measured

Generated; do not edit. Each ordered pair of libraries ran in its own process. Each cell built an
array in the source library with that library's own functions, and called `explain` and `convert`.
It checked the values (bit for bit against NumPy), the data type, the shape, whether memory is
shared (by pointer and by writing through the view), the lifetime of either side without the other,
the read-only flag, `copy=True` and `copy=False`. Cases that the source cannot express are
not counted. Every line of code that the site shows was run.
"""


def markdown(run: Run) -> str:
    """Return the text of docs/matrix.md."""

    lines = [
        TOP,
        CHARTS,
        MEASURED,
        f"    {run.command}",
        "",
        f"{verdict(run.cells, run.seconds)}.",
        "",
        f"{run.when}, {run.platform}: "
        + ", ".join(f"{name} {v}" for name, v in run.versions.items())
        + ". JAX with x64 on, except in the case `x64 off`.",
    ]
    tables = [*TABLES]
    if failures(run.cells):
        tables.insert(0, ("Failures", failures_table, ""))
    for title, rows, note in tables:
        header, *body = rows(run.cells, run.libraries)
        lines += ["", f"## {title}", ""]
        if note:
            lines += [note, ""]
        lines.append("| " + " | ".join(_escaped(header)) + " |")
        lines.append("|" + " --- |" * len(header))
        lines += ["| " + " | ".join(_escaped(row)) + " |" for row in body]
    return "\n".join(lines) + "\n"


def _escaped(row: Iterable[str]) -> list[str]:
    return [text.replace("|", "\\|").replace("\n", " ") for text in row]


def write(run: Run, docs: Path) -> None:
    """Write the page, its data and its charts."""
    for folder in ("_static", "pictures"):
        (docs / folder).mkdir(parents=True, exist_ok=True)
    (docs / "_static" / "matrix_data.js").write_text(encoded(run, theirs))
    (docs / "matrix.md").write_text(markdown(run))
    draw(run, docs / "pictures")
