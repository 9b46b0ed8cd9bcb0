"""Run the matrix: python -m tests.matrix. The exit status is 1 if a cell is a failure."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from . import report
from .cases import all_cases
from .libraries import NATIVES, installed
from .run import failures, run, versions


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    parser.add_argument("--libraries", metavar="A,B", help="default: all that are installed")
    parser.add_argument("--jobs", type=int, default=2, help="pairs at a time (default: 2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every cell")
    parser.add_argument("--write", action="store_true", help="write docs/matrix.md")
    args = parser.parse_args(argv)
    names = args.libraries.split(",") if args.libraries else installed(NATIVES)
    start = time.monotonic()
    cells = run(names, all_cases(), jobs=args.jobs)
    text = report.markdown(cells, names, versions(names), time.monotonic() - start)
    if args.json:
        args.json.write_text(json.dumps([cell._asdict() for cell in cells], indent=1))
    if args.write:
        report.PAGE.write_text(text)
    sys.stdout.write(text)
    return 1 if failures(cells) else 0


if __name__ == "__main__":
    sys.exit(main())
