"""``python -m examples.unsafe_conversions``."""

from __future__ import annotations

import argparse

from . import CASES, KINDS
from .page import TIMES, render, results, write
from .run import Runner, installed


def main() -> None:
    """Run the cases, and print or write their results."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.unsafe_conversions", description=__doc__
    )
    parser.add_argument("names", nargs="*", metavar="case", help=f"of {', '.join(CASES)}")
    parser.add_argument(
        "--write", action="store_true", help="renew docs/start/unsafe_conversions.md"
    )
    options = parser.parse_args()
    wanted = [CASES[name] for name in options.names] or list(CASES.values())
    missing = [case.name for case in wanted if not installed(case)]
    if missing:
        print(f"skipped, as their libraries are not installed: {', '.join(missing)}")
    found = {}
    for case in wanted:
        if case.name in missing:
            continue
        with Runner(case.needs if case.sometimes else ()) as runner:
            found[case.name] = results(case, runner, TIMES if options.write else 0)
        print(render(case, found[case.name]), flush=True)
        for way, (kind, _, seen) in found[case.name].items():
            print(f"    {case.name}: {way}: {KINDS.get(kind, kind)} {seen}")
    if options.write:
        write(found)


if __name__ == "__main__":
    main()
