"""Find the copies of a pipeline, cure them, and forbid them from then on.

    python examples/copy_audit.py

The same report for any program, without a change to it: python -m arraybridge audit program.py
Needs torch.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

import arraybridge as ab

WEIGHTS = torch.linspace(0, 1, 3 * 64 * 64).reshape(3, 64, 64)


def frames() -> Iterator[np.ndarray]:
    """Yield eight pictures as a camera gives them: rows from the bottom up, channels last."""
    generator = np.random.default_rng(0)
    for _ in range(8):
        yield generator.random((64, 64, 3), dtype="f4")[::-1]


def slow() -> float:
    """Score the pictures, with copies that nobody sees."""
    total = 0.0
    for picture in frames():
        tensor = torch.tensor(np.ascontiguousarray(picture))  # two copies
        scores = (tensor.permute(2, 0, 1).contiguous() * WEIGHTS).to(torch.float64)  # two more
        total += float(np.array(scores).mean())  # and one more
    return total


def cured() -> float:
    """Score them without a copy: views, flipped where that is free, and a wide accumulator."""
    total = 0.0
    weights = WEIGHTS.flip(1)  # once, instead of every picture
    for picture in frames():
        tensor = ab.convert(picture[::-1], "torch").permute(2, 0, 1)
        scores = ab.convert(tensor * weights, "numpy")
        total += float(scores.mean(dtype="f8"))
    return total


def main() -> None:
    """Audit both, compare, and forbid copies in the cured one."""
    with ab.audit(libraries=True) as log:
        before = slow()
    print(f"slow: {before:.6f}\n{log}\n")
    for place, sums in list(log.places().items())[:3]:
        line = place.rpartition(":")[2]
        print(f"    line {line}: {sums.copies} copies of {sums.nbytes:,} bytes")

    with ab.audit(libraries=True, copies="forbid") as log:  # an error, were there any
        after = cured()
    print(f"\ncured: {after:.6f}\n{log}")


if __name__ == "__main__":
    main()
