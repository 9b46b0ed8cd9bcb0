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
TOTALS = {"package": 27_960, "tests": 28_960, "benchmarks": 4_800, "targets of make": 14}
#: Room -> lines of .py, .c and .h, blank ones and docstrings included.
ROOMS = {
    "arraybridge": 3_184,
    "arraybridge/adapting": 471,
    "arraybridge/array": 1_786,
    "arraybridge/cli": 287,
    "arraybridge/core": 3_665,
    "arraybridge/dlpack": 1_756,
    "arraybridge/libraries": 1_789,
    "arraybridge/libraries/array_api_strict": 164,
    "arraybridge/libraries/cupy": 204,
    "arraybridge/libraries/dask": 83,
    "arraybridge/libraries/dpnp": 158,
    "arraybridge/libraries/jax": 1_245,
    "arraybridge/libraries/numpy": 452,
    "arraybridge/libraries/torch": 1_922,
    "arraybridge/native": 2_099,
    "arraybridge/protocols": 901,
    "arraybridge/xp": 2_491,
    "benchmarks": 2_201,
    "benchmarks/gpu": 2_578,
    "kernels": 153,
    "kernels/cpu": 1_859,
    "kernels/cuda": 3_269,
    "tests": 505,
    "tests/docs": 718,
    "tests/downstream": 295,
    "tests/gpu": 735,
    "tests/integration": 2_593,
    "tests/matrix": 1_710,
    "tests/processes": 1_457,
    "tests/properties": 706,
    "tests/release": 369,
    "tests/simt": 2_467,
    "tests/support": 3_612,
    "tests/typing": 257,
    "tests/unit": 1_804,
    "tests/unit/adapt": 953,
    "tests/unit/array": 883,
    "tests/unit/audit": 319,
    "tests/unit/cli": 179,
    "tests/unit/core": 3_580,
    "tests/unit/dlpack": 1_269,
    "tests/unit/kernels": 1_068,
    "tests/unit/native": 1_085,
    "tests/unit/protocols": 384,
    "tests/unit/xp": 1_964,
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
