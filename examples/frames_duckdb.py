"""Convert a query's result to PyTorch, and query tensors."""

from __future__ import annotations

import duckdb
import polars as pl
import torch

import arraybridge as ab


def main() -> None:
    """Run a query, rotate its points, and query them together with a frame."""
    query = duckdb.sql("select i::FLOAT as x, sqrt(i)::FLOAT as y from range(5) as numbers(i)")
    points = ab.convert(query, "torch")  # runs it
    print(points)

    x, y = torch.tensor([[0.0, -1.0], [1.0, 0.0]]) @ points.T
    rotated = ab.tree.columns({"number": torch.arange(5), "x": x, "y": y})  # nothing is copied
    names = pl.DataFrame({"number": [1, 4], "name": ["first", "last"]})
    print(duckdb.sql("select name, x, y from rotated join names using (number) order by number"))
    print(pl.DataFrame(rotated).filter(pl.col("y") > 2))
    del names


if __name__ == "__main__":
    main()
