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
#: Whole parts of the repository: half of what they were.
TOTALS = {"package": 28_000, "tests": 28_000, "benchmarks": 4_600, "targets of make": 14}
#: Room -> lines of .py, .c and .h, blank ones and docstrings included.
ROOMS = {
    "arraybridge": 3_210,
    "arraybridge/adapting": 453,
    "arraybridge/array": 1_770,
    "arraybridge/cli": 314,
    "arraybridge/core": 3_677,
    "arraybridge/dlpack": 1_949,
    "arraybridge/libraries": 1_823,
    "arraybridge/libraries/array_api_strict": 175,
    "arraybridge/libraries/cupy": 216,
    "arraybridge/libraries/dask": 82,
    "arraybridge/libraries/dpnp": 171,
    "arraybridge/libraries/jax": 1_273,
    "arraybridge/libraries/numpy": 457,
    "arraybridge/libraries/torch": 1_897,
    "arraybridge/native": 1_438,
    "arraybridge/protocols": 729,
    "arraybridge/xp": 2_820,
    "benchmarks": 1_902,
    "benchmarks/gpu": 2_577,
    "kernels": 158,
    "kernels/cpu": 1_871,
    "kernels/cuda": 3_380,
    "tests": 505,
    "tests/docs": 472,
    "tests/downstream": 300,
    "tests/gpu": 910,
    "tests/integration": 2_551,
    "tests/matrix": 1_711,
    "tests/processes": 1_504,
    "tests/properties": 478,
    "tests/release": 286,
    "tests/simt": 2_424,
    "tests/support": 4_030,
    "tests/typing": 165,
    "tests/unit": 1_713,
    "tests/unit/adapt": 797,
    "tests/unit/array": 866,
    "tests/unit/audit": 327,
    "tests/unit/cli": 206,
    "tests/unit/core": 2_926,
    "tests/unit/dlpack": 1_250,
    "tests/unit/kernels": 1_001,
    "tests/unit/native": 1_079,
    "tests/unit/protocols": 379,
    "tests/unit/xp": 1_928,
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
