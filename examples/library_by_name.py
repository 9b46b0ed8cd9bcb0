"""Create arrays in the library that a setting names.

    python examples/library_by_name.py

Needs torch and jax.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import arraybridge as ab


class RunningMean:
    """The running mean of batches of vectors, in the arrays of one library."""

    def __init__(self, size: int, library: Any) -> None:
        self.xp = ab.namespace(library)
        self.library, self.count = library, 0
        self.mean = self.xp.zeros(size, dtype=self.xp.float32)

    def add(self, batch: Any) -> None:
        """Take a batch of any library, shape (n, size)."""
        batch = ab.convert(batch, self.library)
        self.count += batch.shape[0]
        self.mean = self.mean + self.xp.sum(batch - self.mean, axis=0) / self.count


def main() -> None:
    """Run it with each library on NumPy batches, then with names that do not work."""
    batches = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    for library in ("numpy", "torch", "jax"):
        running = RunningMean(2, library)
        for batch in batches:
            running.add(batch)
        print(f"{library:6} {type(running.mean).__name__:10} {running.mean.tolist()}")
    for library in ("pytorch", "pyarrow"):
        try:
            RunningMean(2, library)
        except (TypeError, ValueError) as error:
            print(f"{library}: {str(error).partition('?')[0]}")


if __name__ == "__main__":
    main()
