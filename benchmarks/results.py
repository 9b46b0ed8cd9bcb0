"""Where results are kept: the sections of RESULTS.md."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from datetime import date
from pathlib import Path

from .timing import machine, versions

RESULTS = Path(__file__).with_name("RESULTS.md")


def head(distributions: str, *more: str) -> str:
    """The first line of a section: the machine, its load, the versions, the date."""
    load = f"load average {os.getloadavg()[0]:.1f} (other work on the machine)"
    return (
        "; ".join((machine(), versions(*distributions.split()), *more, f"{date.today()}", load))
        + "."
    )


def write(text: str, heading: str, path: Path = RESULTS) -> None:
    """Replace the section under ``heading`` in RESULTS.md, or add it."""
    old = path.read_text() if path.exists() else "# Results\n"
    before, _, rest = old.partition(f"\n## {heading}\n")
    _, mark, later = rest.partition("\n## ")
    path.write_text(f"{before.rstrip()}\n\n## {heading}\n\n{text}\n{mark}{later}")


def command(module: str, doc: str, report: Callable[..., str]) -> None:
    """What ``python -m`` does with a module of one report."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="keep the result in RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and cases, to try it")
    arguments = parser.parse_args()
    text = report(quick=arguments.quick)
    print(text)
    if arguments.write:
        write(text, f"{module}: `python -m benchmarks.{module}`")
