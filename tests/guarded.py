"""Copies of drawn layouts between pages that fault, against NumPy; a command, and a test's engine.

    python -m tests.guarded --minutes 60 --seed 7     copies for an hour
    python -m tests.guarded --seed 7 --case 1234      one case again

The number of each case is printed before it runs: an access out of bounds ends the process.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from itertools import count

from tests.support import guarded

__all__ = ["fuzz"]


def fuzz(seed: object, cases: int = 0, minutes: float = 0.0, first: int = 0) -> Counter[str]:
    """Run cases from `first` on, so many or for so long; return how many each kernel copied.

    AssertionError if a byte is wrong.
    """
    until = time.monotonic() + 60 * minutes
    kinds: Counter[str] = Counter()
    for number in count(first):
        if number == first + cases if cases else time.monotonic() > until:
            return kinds
        case = guarded.draw(seed, number)
        made = guarded.planned(case)
        if made is not None:
            print(f"\rseed {seed}, case {number}", end="", file=sys.stderr, flush=True)
            guarded.run(case)
            kinds[made[0].kernel.kind] += 1
    raise AssertionError


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.guarded", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", default=str(int(time.time())))
    parser.add_argument("--case", type=int, help="one case of the seed again")
    args = parser.parse_args()
    if args.case is not None:
        kinds = fuzz(args.seed, cases=1, first=args.case)
    else:
        kinds = fuzz(args.seed, minutes=args.minutes)
    print(f"\nno finding: seed {args.seed}, {dict(kinds)}")


if __name__ == "__main__":
    main()
