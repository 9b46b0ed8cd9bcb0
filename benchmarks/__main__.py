"""Run all CPU benchmarks and write benchmarks/RESULTS.md, the charts and the figures in docs/.

python -m benchmarks                          12 minutes on two cores
python -m benchmarks --only calls threads     only these sections
python -m benchmarks --quick                  prints everything in two minutes, writes nothing
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from . import chart, page
from .results import heading, write

#: In the order of RESULTS.md.
SECTIONS = ("core", "calls", "wrapper", "sweep", "contiguous", "allocated", "threads", "startup")


def run(module: str, *, quick: bool) -> str | None:
    """Return what a benchmark prints in its own process; None if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", *["--quick"] * quick],
        stdout=subprocess.PIPE,
        text=True,
    )
    return None if done.returncode else done.stdout.strip("\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds; writes nothing")
    parser.add_argument("--only", nargs="+", default=list(SECTIONS), choices=SECTIONS)
    arguments = parser.parse_args()
    failed = []
    order = *(heading(each, " --against TREE") for each in SECTIONS), *map(heading, SECTIONS)
    for module in arguments.only:
        start = time.perf_counter()
        text = run(module, quick=arguments.quick)
        if text is None:
            failed.append(module)
            continue
        print(f"## {heading(module)}\n\n{text}\n", flush=True)
        if not arguments.quick:
            write(text, heading(module), order=order)
        print(f"{module}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    if not arguments.quick:
        chart.draw_all()
        page.fill_all()
    if failed:
        print(f"failed, and left as they were: {', '.join(failed)}", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
