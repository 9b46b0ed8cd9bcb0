"""Compare copies whose result is allocated in the call with the limit and with other libraries.

python -m benchmarks.allocated                     prints the tables
python -m benchmarks.allocated --write             and keeps them in benchmarks/RESULTS.md
python -m benchmarks.allocated --only transpose    only layouts with that word in the name
"""

from __future__ import annotations

import argparse
import os

# Else PyTorch's second thread spins on its core for 0.2 s after each of its copies, while we copy.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import arraybridge as ab

from .contest import THREADS, Row, behind, mean, measure, summary, table
from .layouts import LAYOUTS
from .results import head, write

LIBRARIES = "numpy torch tensorflow-cpu tensorflow numba llvmlite"
LOOP_GOAL = 0.85  # of the limit


def loop_verdict(rows: list[Row]) -> str:
    share, lost = mean(row.fraction() for row in rows), behind(rows)
    kept = "kept" if share >= LOOP_GOAL and not lost else "**missed**"
    return f"Goal: {LOOP_GOAL} of the limit, and no layout slower than another library: {kept}."


def report(*, only: str = "", rounds: int = 7) -> str:
    layouts = [layout for layout in LAYOUTS if only in layout.name]
    dropped = measure(layouts, rounds, allocate=True)
    ab.empty_block_cache()
    kept = measure(layouts, rounds, allocate=True, after=ab.empty_block_cache)
    lines = [
        f"Goal: {LOOP_GOAL} of the limit if results are dropped.",
        "",
        "Measured: the same copies with a result allocated in the call. The limit is still the copy into a given buffer. The other libraries get fresh memory",
        f"from the operating system for every result, and return it. Medians of {rounds} turns, with ``OMP_WAIT_POLICY=passive``.",
        "",
        head(LIBRARIES, f"{THREADS} threads"),
        "",
        "### Dropped in a loop",
        "",
        f"Each result is dropped before the next is made. {loop_verdict(dropped)}",
        "",
        *table(dropped),
        *summary(dropped),
        "",
        "### A single fresh result",
        "",
        "All results of a turn are kept, and no block is used again.",
        "",
        *table(kept),
        *summary(kept),
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="keep the result in RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="three layouts, to try it")
    parser.add_argument("--only", default="", metavar="WORD", help="layouts with WORD in the name")
    parser.add_argument("--rounds", type=int, default=7, help="turns of ours and the limit")
    arguments = parser.parse_args()
    only = arguments.only or ("flipped" if arguments.quick else "")
    text = report(only=only, rounds=arguments.rounds)
    print(text)
    if arguments.write:
        write(text, "allocated: `python -m benchmarks.allocated`")


if __name__ == "__main__":
    main()
