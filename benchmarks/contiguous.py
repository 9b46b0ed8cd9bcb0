"""Compare copies of strided layouts into a buffer with the speed of memory and with other libraries.

python -m benchmarks.contiguous                     prints the table
python -m benchmarks.contiguous --write             and keeps it in benchmarks/RESULTS.md
python -m benchmarks.contiguous --only transpose    only layouts with that word in the name
"""

from __future__ import annotations

import argparse

from .contest import THREADS, measure, summary, table
from .layouts import LAYOUTS
from .results import head, write

LIBRARIES = "numpy torch tensorflow-cpu tensorflow numba llvmlite"


def report(*, only: str = "", rounds: int = 15, offset: int = 0) -> str:
    layouts = [layout for layout in LAYOUTS if only in layout.name]
    rows = measure(layouts, rounds, offset=offset)
    return "\n".join(
        [
            "Goal: no layout is slower than with NumPy, PyTorch or TensorFlow.",
            "",
            "Measured: copies of 64 MB into a given buffer, in GB/s; each byte of the result counts once as read and once as written. The limit is a contiguous",
            f"copy by {THREADS} threads, in turn with ours. Medians of {rounds} turns. TensorFlow allocates its result, and so does PyTorch's `flip`, because PyTorch",
            "has no flipped views.",
            "",
            head(LIBRARIES, f"{THREADS} threads"),
            "",
            *table(rows),
            *summary(rows),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="keep the result in RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="three layouts, to try it")
    parser.add_argument("--only", default="", metavar="WORD", help="layouts with WORD in the name")
    parser.add_argument("--rounds", type=int, default=15, help="turns of ours and the limit")
    parser.add_argument("--offset", type=int, default=0, help="bytes from 64-byte alignment")
    arguments = parser.parse_args()
    only = arguments.only or ("flipped" if arguments.quick else "")
    text = report(only=only, rounds=arguments.rounds, offset=arguments.offset)
    print(text)
    if arguments.write:
        write(text, "contiguous: `python -m benchmarks.contiguous`")


if __name__ == "__main__":
    main()
