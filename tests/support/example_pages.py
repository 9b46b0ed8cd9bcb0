"""The pages of docs/examples/, one for each program of examples/, and what the programs print.

``python -m tests.support.example_pages [name ...]`` runs programs and writes what they print into
their pages.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from .processes import ROOT, run_python

PROGRAMS = sorted((ROOT / "examples").glob("*.py"))
PAGES = ROOT / "docs" / "examples"
#: The pages of the folder that are of no one program.
OTHERS = {"index", "recipes"}

_PRINTED = re.compile(r"(?<=## What it prints\n)(.*?^```text\n)(.*?)(^```$)", re.M | re.S)
#: What differs from one machine, or one run, to the next, and what stands for it.
_FIGURES = (
    (re.compile(r"0x[0-9a-f]+"), "<address>"),
    (re.compile(r"\d[\d,.]* (ns|us|µs|ms|s|GB/s)\b"), r"<n> \1"),
    (re.compile(r"\d[\d.]* times"), "<n> times"),
    (re.compile(r"\d\.\de[-+]\d+"), "<rounding>"),
    (re.compile(r"[ \t]+"), " "),  # columns are as wide as their figures
)


def page_of(program: Path) -> Path:
    """The page of a program."""
    return PAGES / f"{program.stem}.md"


def shown(page: Path) -> str:
    """What a page says that its program prints."""
    found = _PRINTED.search(page.read_text())
    assert found, f"{page.name} has no block of text under 'What it prints'"
    return found[2]


def run(program: Path, folder: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder; UserWarnings are errors."""
    flags = ("-W", "error::UserWarning")
    return run_python(*flags, str(program), cwd=folder, env={"COLUMNS": "100"})


def printed(done: subprocess.CompletedProcess[str]) -> str:
    """What a program printed, with paths as they are from the top of the repository."""
    lines = done.stdout.replace(f"{ROOT}{os.sep}", "").splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines).strip("\n") + "\n"


def without_figures(text: str) -> str:
    """The text with names for times, addresses and errors of rounding."""
    for pattern, name in _FIGURES:
        text = pattern.sub(name, text)
    return text


def main(names: list[str]) -> None:
    """Write into the pages what their programs print."""
    for program in PROGRAMS:
        page = page_of(program)
        if (names and program.stem not in names) or not page.exists():
            continue
        with tempfile.TemporaryDirectory() as folder:
            done = run(program, folder)
        if done.returncode:
            sys.exit(f"{program.name}: {done.stderr}")
        text = page.read_text()
        start, end = _PRINTED.search(text).span(2)
        page.write_text(text[:start] + printed(done) + text[end:])


if __name__ == "__main__":
    main(sys.argv[1:])
