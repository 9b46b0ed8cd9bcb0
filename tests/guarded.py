"""Copies of drawn layouts between pages that fault, against NumPy; a command, and a test's engine.

    python -m tests.guarded --minutes 60 --seed 7     copies for an hour
    python -m tests.guarded --seed 7 --case 1234      one case again

Cases are drawn and run in a process of their own, which notes each before it runs it: a fault is
reported with the case that caused it. Prints the cases by kernel, and ends with 1 after a finding.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

__all__ = ["Finding", "fuzz", "main"]

ROOT = Path(__file__).resolve().parents[1]


class Finding(AssertionError):
    """A case that went wrong."""


def fuzz(
    seed: object,
    *,
    cases: int = 0,
    minutes: float = 0.0,
    first: int = 0,
    env: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Run cases from `first` on in a child, so many or for so long (0: without an end).

    Return the child's summary: ``cases``, ``seconds``, ``kinds``. A case that went wrong is a
    `Finding`, which is raised.
    """
    with tempfile.NamedTemporaryFile("w+") as note:
        terms = [str(seed), str(cases), str(minutes), str(first), note.name]
        child = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-m", "tests.guarded", "--child", *terms],
            env={"PYTHONPATH": str(ROOT), **os.environ, **(env or {})},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if child.returncode == 0:
            summary: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
            return summary
        how = f"exit status {child.returncode}"
        if child.returncode < 0:
            how = signal.Signals(-child.returncode).name
        case = note.read().strip("\0\n") or "no case yet"
        raise Finding(f"{how} in seed {seed}, {case}\n{child.stderr[-3000:]}")


def _child(seed: str, cases: int, minutes: float, first: int, note: str) -> None:
    from tests.support import guarded

    noted = os.open(note, os.O_WRONLY)
    began = time.monotonic()
    until = began + 60 * minutes if minutes else float("inf")
    number = first
    compiled: set[Any] = set()
    kinds: Counter[str] = Counter()
    while (not cases or number < first + cases) and time.monotonic() < until:
        case = guarded.draw(seed, number, huge=minutes > 5)
        made = guarded.planned(case)
        number += 1
        if made is None:
            continue
        key = made[0].kernel
        compiled.add(key)
        os.pwrite(noted, f"case {number - 1}: {case}\n{made[0]}".encode().ljust(8192, b"\0"), 0)
        guarded.run(case)
        kinds[key.kind + (", streamed" if made[0].stream else "")] += 1
    seconds = time.monotonic() - began
    print(json.dumps({"cases": number - first, "seconds": seconds, "kinds": dict(kinds),
                      "kernels": len(compiled)}))  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    given = sys.argv[1:] if argv is None else argv
    if given[:1] == ["--child"]:
        seed, cases, minutes, first, note = given[1:]
        _child(seed, int(cases), float(minutes), int(first), note)
        return 0
    parser = argparse.ArgumentParser(prog="python -m tests.guarded", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", default=str(int(time.time())))
    parser.add_argument("--case", type=int, help="one case of the seed again")
    terms = parser.parse_args(given)
    try:
        if terms.case is not None:
            summary = fuzz(terms.seed, cases=1, first=terms.case)
        else:
            summary = fuzz(terms.seed, minutes=terms.minutes)
    except Finding as finding:
        print(finding)
        return 1
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(summary["kinds"].items()))
    print(
        f"no finding: seed {terms.seed}, {summary['cases']} cases in {summary['seconds']:.0f} s, "
        f"{summary['kernels']} kernels: {kinds}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
