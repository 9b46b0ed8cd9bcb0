"""Find the copies of a pipeline, remove them, and forbid new ones.

    python examples/copy_audit.py

The same report for any program, without a change to it: python -m arraybridge audit program.py
Needs torch.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable

import numpy as np
import torch

import arraybridge as ab

SIZE = 512
WEIGHTS = torch.linspace(0, 1, 3 * SIZE * SIZE).reshape(3, SIZE, SIZE)
#: The weights in the memory order of the pictures: made once, instead of a copy of each picture.
AS_FRAMES = WEIGHTS.flip(1).permute(1, 2, 0).contiguous()
#: Pictures as a camera delivers them: rows from the bottom up, channels last.
FRAMES = [np.random.default_rng(i).random((SIZE, SIZE, 3), dtype="f4")[::-1] for i in range(8)]


def slow() -> float:
    """Score the pictures, with copies that are easy to miss."""
    total = 0.0
    for picture in FRAMES:
        tensor = torch.tensor(np.ascontiguousarray(picture))  # two copies
        scores = (tensor.permute(2, 0, 1).contiguous() * WEIGHTS).to(torch.float64)  # two more
        total += float(np.array(scores.numpy()).mean())  # and one more
    return total


def fixed() -> float:
    """Score them without a copy: views of the memory, and a float64 accumulator."""
    total = 0.0
    for picture in FRAMES:
        tensor = ab.convert(picture[::-1], "torch")
        scores = ab.convert(tensor * AS_FRAMES, "numpy")
        total += float(scores.mean(dtype="f8"))
    return total


def milliseconds(function: Callable[[], object]) -> float:
    """Time the quickest of five calls."""
    return 1e3 * min(timeit.repeat(function, number=1, repeat=5))


def main() -> None:
    """Audit both, compare, and forbid copies in the fixed one."""
    with ab.audit(libraries=True) as log:
        before = slow()
    print(f"slow: {before:.4f}\n{log}\n")
    print("The lines that copy most:")
    for place, sums in list(log.places().items())[:3]:
        line = place.rpartition(":")[2]
        print(f"    line {line}: {sums.copies} copies of {sums.nbytes:,} bytes")

    with ab.audit(libraries=True, copies="forbid") as log:  # raises at the first copy
        after = fixed()
    print(f"\nfixed: {after:.4f}\n{log}")

    long, short = milliseconds(slow), milliseconds(fixed)
    print(f"\nslow: {long:.0f} ms, fixed: {short:.0f} ms: {long / short:.1f} times as fast")


if __name__ == "__main__":
    main()
