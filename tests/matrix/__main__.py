"""Run the matrix; ``make matrix`` writes docs/matrix.md with it."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from arraybridge.cli.matrix import libraries_of

from . import report, run
from .cases import chosen


def main(argv: list[str] | None = None) -> int:
    """Run it; the exit status, 1 where a cell is a failure."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.matrix",
        description="Converts every case between every ordered pair of libraries, each pair in a "
        "process of its own, and checks values, dtype, sharing, lifetime and read-only state; asks "
        "the target's own importer the same. The exit status is 1 if a cell is WRONG, ERROR, CRASH "
        "or HANG, or copies where the library itself gives a view.",
    )
    parser.add_argument("--libraries", default="", metavar="A,B", help="default: all installed")
    parser.add_argument("--cases", metavar="A,B", help="names or groups of cases, * and ? allowed")
    parser.add_argument("--jobs", type=int, default=2, help="pairs at a time (default: 2)")
    parser.add_argument("--no-native", action="store_true", help="do not ask the libraries' doors")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every cell")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables")
    parser.add_argument("--list", action="store_true", help="list the cases and end")
    args = parser.parse_args(argv)
    try:
        cases = chosen(args.cases.split(",") if args.cases else None)
        libraries = libraries_of(filter(None, args.libraries.split(",")))
    except (ValueError, ImportError) as error:
        parser.error(str(error))
    if args.list:
        report.list_cases(cases)
        return 0
    begun = time.monotonic()
    with report.progress(len(libraries) * (len(libraries) - 1)) as advance:
        cells = run.run(
            libraries, cases, jobs=args.jobs, native=not args.no_native, progress=advance
        )
    seconds = time.monotonic() - begun
    if args.json:
        args.json.write_text(run.as_json(cells, libraries, seconds))
    if args.markdown:
        command = command_line(sys.argv[1:] if argv is None else argv)
        args.markdown.write_text(report.markdown(cells, libraries, seconds, command))
    report.print_tables(cells, libraries, seconds)
    return 1 if run.failures(cells) else 0


def command_line(words: list[str]) -> str:
    """What to type for the same tables."""
    return " ".join(["python -m tests.matrix", *(f"'{w}'" if "*" in w else w for w in words)])


if __name__ == "__main__":
    sys.exit(main())
