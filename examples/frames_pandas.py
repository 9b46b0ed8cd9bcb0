"""Columns of a pandas frame through JAX and back, and a column with missing values."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pandas as pd

import arraybridge as ab


def main() -> None:
    """Print the routes of a frame, a column, and a column with NA."""
    frame = pd.DataFrame(np.arange(12, dtype="float32").reshape(4, 3), columns=list("abc"))
    print(ab.explain(frame, "numpy"))
    print(ab.explain(frame["a"], "numpy"))
    matrix = ab.convert(frame, "jax")
    norms = jnp.linalg.norm(matrix, axis=1)

    frame["norm"] = ab.convert(norms, "numpy")
    print(frame)

    counts = pd.Series([1, 2, None], dtype="Int64")
    print(ab.explain(counts, "jax"))
    print(ab.convert(counts.fillna(0), "numpy"))


if __name__ == "__main__":
    main()
