"""Fill in the figures of docs/ from RESULTS.md: each between a comment that names it and `<!-- end -->`.

python -m benchmarks.page
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from .results import RESULTS, heading, sections, tables

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = ("performance.md",)
PLACE = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

#: What docs/performance.md shows of `benchmarks.calls`, besides the losses.
CALLS = (
    "torch to NumPy",
    "NumPy to torch",
    "JAX to NumPy",
    "JAX to torch (copied: immutable)",
    "NumPy to JAX (copied: writable)",
    "torch to JAX (copied: writable)",
    "np.from_dlpack(Array over torch)",
    "torch.from_dlpack(Array over NumPy)",
    "namespace of two tensors",
)
LOSS, HEAVY = 1.2, 5.0  # times the peer: a loss, and one that gets a row


def calls(found: dict[str, str]) -> str:
    rows = [row for table in tables(found[heading("calls")]).values() for row in table]
    by_name = {row["call"]: row for row in rows}
    lines = [
        "| call | ns | the library's own call | ns | ratio |",
        "| --- | ---: | --- | ---: | ---: |",
    ]
    for name in CALLS:
        row = by_name[name]
        cells = (row[column] for column in ("ours, ns", "compared with", "its ns", "ratio"))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def losses(found: dict[str, str]) -> str:
    """Calls that take longer than their peer, worst first."""
    rows = [row for table in tables(found[heading("calls")]).values() for row in table]
    slower = [row for row in rows if row["ratio"] and float(row["ratio"]) > LOSS]
    slower.sort(key=lambda row: -float(row["ratio"]))
    lines = ["| ratio | call | compared with |", "| ---: | --- | --- |"]
    rest = []
    for row in slower:
        if float(row["ratio"]) > HEAVY:
            lines.append(f"| {row['ratio']} | {row['call']} | `{row['compared with']}` |")
        else:
            rest.append(f"{row['call']} ({row['ratio']})")
    lines += ["", f"Up to {HEAVY:g} times as long: {'; '.join(rest)}."]
    return "\n".join(lines)


def where(found: dict[str, str]) -> str:
    line = next(x for x in found[heading("calls")].splitlines() if x.startswith("Machine: "))
    machine, _, rest = line.removeprefix("Machine: ").partition("; ")
    return f"Measured on {machine} ({rest.rstrip('.')})."


def means(text: str) -> tuple[str, str]:
    """Return (share of the limit, times NumPy), the geometric means of a table."""
    line = next(line for line in text.splitlines() if line.startswith("Geometric means"))
    share, times = re.search(r"\*\*(\S+) of the limit", line), re.search(r"(\S+) times NumPy", line)
    assert share is not None
    assert times is not None
    return share[1], times[1]


def copies(found: dict[str, str]) -> str:
    _, loop, kept, *_ = found[heading("allocated")].split("\n### ")
    (given, times), (dropped, often) = means(found[heading("contiguous")]), means(loop)
    fresh, seldom = means(kept)
    return (
        "| result | share of the limit | times NumPy's speed |\n"
        "| --- | ---: | ---: |\n"
        f"| in your buffer (`out=`, `copyto`) | {given} | {times} |\n"
        f"| new, in a loop that drops each result | {dropped} | {often} |\n"
        f"| new and kept: the system clears its pages first | {fresh} | {seldom} |"
    )


FIGURES: dict[str, Callable[[dict[str, str]], str]] = {
    "calls": calls,
    "losses": losses,
    "where": where,
    "copies": copies,
}


def filled(text: str, results: str) -> str:
    """Return the text of a page with the figures of the results."""
    found = sections(results)
    return PLACE.sub(lambda match: f"{match[1]}{FIGURES[match[2]](found)}\n{match[3]}", text)


def fill_all(folder: Path = DOCS, results: Path = RESULTS) -> None:
    for name in PAGES:
        page = folder / name
        page.write_text(filled(page.read_text(), results.read_text()))


if __name__ == "__main__":
    fill_all()
