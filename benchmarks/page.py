"""The figures in docs/, taken from RESULTS.md: between a comment that names them and `<!-- end -->`.

python -m benchmarks.page
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from .results import RESULTS, heading, sections, tables

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = ("performance.md", "start/coming_from.md")
PLACE = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

#: What docs/performance.md shows of `benchmarks.calls`.
CALLS = (
    "torch to NumPy",
    "NumPy to torch",
    "JAX to NumPy",
    "torch to JAX (copied: writable)",
    "torch to NumPy, device='cpu'",
    "NumPy to torch, copy=True",
    "NumPy to torch, negative strides",
    "torch to torch, copy=True",
    "np.asarray(Array over torch)",
    "np.from_dlpack(Array over torch)",
    "torch.from_dlpack(Array over NumPy)",
    "compiled function by TVM-FFI, Array over NumPy",
    "of two of torch's",
    "adapt('numpy') of a function of one tensor",
    "unify(tensor, array)",
)
NAMED = {"of two of torch's": "namespace of two tensors"}


def calls(found: dict[str, str]) -> str:
    rows = [row for table in tables(found[heading("calls")]).values() for row in table]
    by_name = {row["call"]: row for row in rows}
    lines = ["| call | ns | beside | its ns | ratio |", "| --- | ---: | --- | ---: | ---: |"]
    for name in CALLS:
        row = by_name[name]
        cells = (row[column] for column in ("ours, ns", "beside", "its ns", "ratio"))
        lines.append(f"| {NAMED.get(name, name)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def losses(found: dict[str, str]) -> str:
    """What takes longer than its peer, worst first."""
    rows = [row for table in tables(found[heading("calls")]).values() for row in table]
    slower = [row for row in rows if row["ratio"] and float(row["ratio"]) > 1.2]
    slower.sort(key=lambda row: -float(row["ratio"]))
    lines = ["| ratio | call | beside |", "| ---: | --- | --- |"]
    lines += [f"| {row['ratio']} | {row['call']} | {row['beside']} |" for row in slower]
    return "\n".join(lines)


#: What docs/start/coming_from.md shows of it.
OWN = (
    "JAX to NumPy",
    "NumPy to torch, copy=True",
    "NumPy to torch, negative strides",
    "torch to torch, copy=True",
    "torch to NumPy, copy=True",
    "JAX to torch",
)


def own(found: dict[str, str]) -> str:
    """The conversions beside the calls that they are made of or that they replace."""
    lines = ["| conversion | ns | by the library | its ns |", "| --- | ---: | --- | ---: |"]
    rows = [row for row in found[heading("breakdown")].splitlines() if row.startswith("| `convert")]
    for row in rows:
        _, call, ns, door, its, _ = (cell.strip() for cell in row.split("|"))
        if "copy=" not in call:
            lines.append(f"| {call} | {ns} | {door.partition(': ')[2]} | {its} |")
    found_rows = [row for table in tables(found[heading("calls")]).values() for row in table]
    by_name = {row["call"]: row for row in found_rows}
    for name in OWN:
        row = by_name[name]
        lines.append(f"| {name} | {row['ours, ns']} | `{row['beside']}` | {row['its ns']} |")
    return "\n".join(lines)


def steps(found: dict[str, str]) -> str:
    return "\n".join(
        line for line in found[heading("breakdown")].splitlines() if line.startswith("|")
    )


def where(found: dict[str, str]) -> str:
    machine, _, rest = found[heading("calls")].partition("; ")
    return f"Measured on: {machine} ({rest.splitlines()[0].rstrip('.')})."


def means(text: str) -> tuple[str, str]:
    """(share of the limit, times NumPy) of a table's geometric means."""
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
        "| geometric means of 26 layouts | of a contiguous copy's speed | times NumPy's speed |\n"
        "| --- | ---: | ---: |\n"
        f"| into a given buffer | {given} | {times} |\n"
        f"| into a new result, in a loop that drops its results | {dropped} | {often} |\n"
        f"| into a single new result, for which the system has to clear pages | {fresh} | {seldom} |"
    )


FIGURES: dict[str, Callable[[dict[str, str]], str]] = {
    "calls": calls,
    "own": own,
    "steps": steps,
    "losses": losses,
    "where": where,
    "copies": copies,
}


def filled(text: str, results: str) -> str:
    """A page with the figures of the results."""
    found = sections(results)
    return PLACE.sub(lambda match: f"{match[1]}{FIGURES[match[2]](found)}\n{match[3]}", text)


def fill_all(folder: Path = DOCS, results: Path = RESULTS) -> None:
    for name in PAGES:
        page = folder / name
        page.write_text(filled(page.read_text(), results.read_text()))


if __name__ == "__main__":
    fill_all()
