"""Read and write RESULTS.md: its sections, and the tables in them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from datetime import date
from pathlib import Path

from .timing import machine, versions

RESULTS = Path(__file__).with_name("RESULTS.md")
INTRODUCTION = """# Results

One section per benchmark: its goal, what it measured, and the machine. `make bench` writes this file.

A *ratio* divides our time by that of the call it is compared with, in the same run: below 1, arraybridge is faster. *Times* compares
speeds: above 1, arraybridge is faster. **Bold** marks a missed goal, or a case in which another library is faster.
"""


def head(distributions: str, *more: str) -> str:
    """Return the line of a section that names the machine, the versions, the date and the load."""
    load = f"load average {os.getloadavg()[0]:.1f}"
    parts = machine(), versions(*distributions.split()), *more, f"{date.today()}", load
    return f"Machine: {'; '.join(parts)}."


def heading(module: str) -> str:
    return f"{module}: `python -m benchmarks.{module}`"


def sections(text: str) -> dict[str, str]:
    """Heading -> text of every section."""
    _, *parts = f"\n{text}".split("\n## ")
    split = (part.partition("\n") for part in parts)
    return {name: body.strip("\n") for name, _, body in split}


def write(text: str, name: str, path: Path = RESULTS, order: tuple[str, ...] = ()) -> None:
    """Replace the section ``name`` in RESULTS.md, or add it; with `order`, drop sections that it lacks."""
    found = sections(path.read_text() if path.exists() else "") | {name: text.strip("\n")}
    names = [each for each in order if each in found] or list(found)
    parts = [INTRODUCTION, *(f"## {each}\n\n{found[each]}\n" for each in names)]
    path.write_text("\n".join(parts))


def tables(section: str) -> dict[str, list[dict[str, str]]]:
    """Sub-heading ("" for what comes before the first) -> the rows of the first table under it."""
    found: dict[str, list[dict[str, str]]] = {}
    for part in f"\n{section}".split("\n### "):
        title, _, body = part.partition("\n")
        lines = body.splitlines()
        at = next((at for at, line in enumerate(lines) if line.startswith("| ---")), None)
        if at is None:
            continue
        names, rows = cells(lines[at - 1]), []
        for line in lines[at + 1 :]:
            if not line.startswith("|"):
                break
            rows.append(dict(zip(names, cells(line), strict=True)))
        found[title] = rows
    return found


def cells(line: str) -> list[str]:
    """The cells of one line of a table."""
    return [cell.strip() for cell in line.strip().strip("|").split(" |")]


def command(module: str, doc: str, report: Callable[..., str]) -> None:
    """Run a module that makes one report."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="keep the result in RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and cases, to try it")
    arguments = parser.parse_args()
    text = report(quick=arguments.quick)
    print(text)
    if arguments.write:
        write(text, heading(module))
