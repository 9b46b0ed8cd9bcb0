"""The budget of lines, room by room: python -m tests.budget [--write]. `make lint` checks it.

A room that grows beyond its limit is an error: let another shrink, and change both numbers here.
``--write`` puts today's numbers into the table, for after a cut.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Whole parts of the repository; 28,000 is the aim for the package and for its tests.
TOTALS = {"package": 30_800, "tests": 33_300, "benchmarks": 4_800, "targets of make": 14}
#: Room -> lines of .py, .c and .h, blank ones and docstrings included.
ROOMS = {
    "arraybridge": 3_353,
    "arraybridge/adapting": 439,
    "arraybridge/array": 1_791,
    "arraybridge/cli": 274,
    "arraybridge/core": 3_947,
    "arraybridge/dlpack": 2_052,
    "arraybridge/libraries": 2_007,
    "arraybridge/libraries/array_api_strict": 352,
    "arraybridge/libraries/cupy": 267,
    "arraybridge/libraries/dask": 143,
    "arraybridge/libraries/dpnp": 285,
    "arraybridge/libraries/jax": 1_437,
    "arraybridge/libraries/numpy": 562,
    "arraybridge/libraries/torch": 2_119,
    "arraybridge/native": 1_637,
    "arraybridge/protocols": 762,
    "arraybridge/xp": 3_491,
    "benchmarks": 2_120,
    "benchmarks/gpu": 2_668,
    "kernels": 264,
    "kernels/cpu": 1_933,
    "kernels/cuda": 3_668,
    "tests": 609,
    "tests/docs": 1_095,
    "tests/downstream": 609,
    "tests/gpu": 910,
    "tests/integration": 3_264,
    "tests/matrix": 1_900,
    "tests/pictures": 460,
    "tests/processes": 1_578,
    "tests/properties": 478,
    "tests/release": 580,
    "tests/simt": 3_069,
    "tests/support": 4_437,
    "tests/typing": 165,
    "tests/unit": 2_040,
    "tests/unit/adapt": 985,
    "tests/unit/array": 1_021,
    "tests/unit/audit": 442,
    "tests/unit/cli": 258,
    "tests/unit/core": 3_076,
    "tests/unit/dlpack": 1_325,
    "tests/unit/kernels": 1_189,
    "tests/unit/native": 1_114,
    "tests/unit/protocols": 425,
    "tests/unit/xp": 2_138,
}  # fmt: skip


def room(path: str) -> str:
    """Return the room of a file: its folder, at most two levels below the part."""
    *folders, _ = path.split("/")
    deep = 3 if folders[:2] in (["arraybridge", "libraries"], ["tests", "unit"]) else 2
    return "/".join(folders[:deep])


def lines() -> dict[str, int]:
    """Return the lines of each room, of the files that git knows."""
    known = subprocess.run(
        ["git", "ls-files", "*.py", "*.c", "*.h"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    found: dict[str, int] = {}
    for path in known:
        if path.startswith(("arraybridge/", "kernels/", "tests/", "benchmarks/")):
            file = ROOT / path
            count = len(file.read_text().splitlines()) if file.exists() else 0
            found[room(path)] = found.get(room(path), 0) + count
    return {name: count for name, count in sorted(found.items()) if count}


def part(name: str) -> str:
    """Return the part of a room."""
    top = name.partition("/")[0]
    return top if top in TOTALS else "package"


def totals(found: dict[str, int]) -> dict[str, int]:
    """Return the sums, and the number of make's targets."""
    sums = {name: sum(n for of, n in found.items() if part(of) == name) for name in TOTALS}
    phony = re.findall(r"^\.PHONY:(.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return sums | {"targets of make": sum(len(line.split()) for line in phony)}


def problems(found: dict[str, int]) -> list[str]:
    """Return a line for each room or part that is over its limit."""
    limits, sums = ROOMS, totals(found)
    wrong = [
        f"{name} has {n:,}, and {TOTALS[name]:,} at most"
        for name, n in sums.items()
        if n > TOTALS[name]
    ]
    for name, count in found.items():
        if name not in limits:
            wrong.append(
                f"{name} has {count:,} lines and is not in the table of {Path(__file__).name}"
            )
        elif count > limits[name]:
            wrong.append(f"{name} has {count:,} lines, and {limits[name]:,} at most")
    return wrong


def main() -> int:
    """Check, or write the table."""
    found = lines()
    if "--write" in sys.argv:
        rows = "".join(f'    "{name}": {count:_},\n' for name, count in found.items())
        file = Path(__file__)
        file.write_text(
            re.sub(r"(?<=^ROOMS = \{\n).*?(?=^\})", rows, file.read_text(), flags=re.S | re.M)
        )
        return 0
    wrong = problems(found)
    sys.stdout.writelines(f"{line}\n" for line in wrong)
    sums = ", ".join(f"{name} {count:,}" for name, count in totals(found).items())
    sys.stdout.write(f"budget: {sums}\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
