"""Where results are kept: the sections of RESULTS.md, and the tables in them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from datetime import date
from pathlib import Path

from .timing import machine, versions

RESULTS = Path(__file__).with_name("RESULTS.md")
INTRODUCTION = """# Results

Written by `make bench`: one section for each command, which names the machine, its versions and its load. Ratios are relative to a peer in
the same run. **Bold**: slower than the library named, or a goal that was **missed**.
"""


def head(distributions: str, *more: str) -> str:
    """The first line of a section: the machine, its load, the versions, the date."""
    load = f"load average {os.getloadavg()[0]:.1f}"
    return (
        "; ".join((machine(), versions(*distributions.split()), *more, f"{date.today()}", load))
        + "."
    )


def heading(module: str) -> str:
    return f"{module}: `python -m benchmarks.{module}`"


def sections(text: str) -> dict[str, str]:
    """Heading -> text of every section."""
    _, *parts = f"\n{text}".split("\n## ")
    split = (part.partition("\n") for part in parts)
    return {name: body.strip("\n") for name, _, body in split}


def write(text: str, name: str, path: Path = RESULTS, order: tuple[str, ...] = ()) -> None:
    """Replace the section ``name`` in RESULTS.md, or add it; with `order`, drop what it lacks."""
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
    """Of one line of a table."""
    return [cell.strip() for cell in line.strip().strip("|").split(" |")]


def command(module: str, doc: str, report: Callable[..., str]) -> None:
    """What ``python -m`` does with a module of one report."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="keep the result in RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and cases, to try it")
    arguments = parser.parse_args()
    text = report(quick=arguments.quick)
    print(text)
    if arguments.write:
        write(text, heading(module))
