"""Read and write RESULTS.md: its sections, and the tables in them."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
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


def heading(module: str, more: str = "") -> str:
    return f"{module}: `python -m benchmarks.{module}{more}`"


#: The most that a row may take, in times what it took in the other tree.
MOST = 1.3


def against(
    tree: str, module: str, times: dict[str, Callable[[dict[str, str]], float]], *arguments: str
) -> str:
    """Run a module here and in another tree, in turn and three times each: a table of the least times.

    `times` has functions of a row of the module's tables. The extension must be built in both trees.
    """
    least: tuple[dict[str, float], dict[str, float]] = {}, {}
    command = [sys.executable, "-W", "ignore", "-m", f"benchmarks.{module}", *arguments]
    for turn in range(6):
        root, found = (RESULTS.parents[1], tree)[turn % 2], least[turn % 2]
        there = {"cwd": root, "env": os.environ | {"PYTHONPATH": str(root)}}
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, **there)
        for row in [row for rows in tables(done.stdout).values() for row in rows]:
            for what, time_of in times.items():
                name, took = f"{next(iter(row.values()))}{what}", time_of(row)
                found[name] = min(took, found.get(name, took))
    names = [name for name in least[0] if name in least[1]]
    lines, kept = ["| call | now | before | now / before |", "| --- | ---: | ---: | ---: |"], 0
    for name in names:
        now, before = (found[name] for found in least)
        ratio, kept = f"{now / before:.2f}", kept + (now <= MOST * before)
        ratio = ratio if now <= MOST * before else f"**{ratio}**"
        lines.append(f"| {name} | {now:,.0f} | {before:,.0f} | {ratio} |")
    title = f"{kept} of {len(names)} rows take at most {MOST} times what they took in `{Path(tree).name}`."
    measured = "Measured: the least of three runs in each tree, in turn; ns unless it says µs."
    return "\n\n".join([title, measured, head("numpy torch jax"), "\n".join(lines)])


def number(cell: str) -> float:
    return float(cell.replace(",", ""))


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
        at = next((at for at, line in enumerate(lines) if line.startswith(("| ---", "|---"))), None)
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
