"""Run the matrix; ``make matrix`` writes the matrix's page of the docs with it."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from arraybridge.cli import screen
from arraybridge.cli.matrix import libraries_of

from . import data, page, report, run
from .cases import chosen
from .libraries import NATIVES


def main(argv: list[str] | None = None) -> int:
    """Run it; return the exit status, 1 if a cell is a failure."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.matrix",
        description="Converts every case between every two libraries, both ways and in a process "
        "of their own, and checks values, dtype, sharing, lifetime and read-only state; asks "
        "the target's own importer the same. The exit status is 1 if a cell is WRONG, ERROR, CRASH "
        "or HANG, or copies where the library itself gives a view.",
    )
    parser.add_argument("--libraries", default="", metavar="A,B", help="default: all installed")
    parser.add_argument("--cases", metavar="A,B", help="names or groups of cases, * and ? allowed")
    parser.add_argument("--jobs", type=int, default=2, help="pairs at a time (default: 2)")
    parser.add_argument("--no-native", action="store_true", help="skip the own functions")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every cell")
    parser.add_argument("--docs", type=Path, metavar="FOLDER", help="write page, data and charts")
    parser.add_argument("--again", action="store_true", help="run nothing, use the data of --docs")
    parser.add_argument("--list", action="store_true", help="list the cases and end")
    args = parser.parse_args(argv)
    try:
        cases = chosen(args.cases.split(",") if args.cases else None)
        libraries = libraries_of(filter(None, args.libraries.split(",")))
        libraries = [name for name in libraries if name in NATIVES]
    except (ValueError, ImportError) as error:
        parser.error(str(error))
    if args.again and not args.docs:
        parser.error("--again needs --docs FOLDER")
    if args.list:
        sys.stdout.writelines(f"{case.name}\n" for case in cases)
        return 0
    done = data.load(args.docs) if args.again else _ran(args, libraries, cases, argv)
    if args.json:
        args.json.write_text(data.as_json(done))
    if args.docs:
        page.write(done, args.docs)
    report.print_tables(done.cells, done.libraries, done.seconds)
    return 1 if run.failures(done.cells) else 0


def _ran(args, libraries, cases, argv) -> data.Run:
    begun = time.monotonic()
    pairs = len(libraries) * (len(libraries) - 1) // 2
    with screen.progress(pairs, "importing libraries") as advance:
        native = None if args.no_native else "native"
        cells = run.run(libraries, cases, jobs=args.jobs, native=native, progress=advance)
    command = command_line(sys.argv[1:] if argv is None else argv)
    return data.ran(cells, libraries, time.monotonic() - begun, command)


def command_line(words: list[str]) -> str:
    """What to type for the same tables."""
    return " ".join(["python -m tests.matrix", *(f"'{w}'" if "*" in w else w for w in words)])


if __name__ == "__main__":
    sys.exit(main())
