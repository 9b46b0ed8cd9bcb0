"""A query's result to PyTorch, and a tensor into a query."""

from __future__ import annotations

import duckdb
import polars as pl
import torch

import arraybridge as ab


def main() -> None:
    """Run a query, turn its points, and query them."""
    query = duckdb.sql("select i::FLOAT as x, sqrt(i)::FLOAT as y from range(5) as numbers(i)")
    points = ab.convert(query, "torch")  # runs it
    print(points)

    turned = points @ torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
    columns = {name: ab.from_dlpack(turned[:, i].contiguous()) for i, name in enumerate("xy")}
    frame = pl.DataFrame(columns)  # on the memory of the tensors; DuckDB finds it by its name
    print(duckdb.sql("select count(*) as points, min(x), max(y) from frame"))
    del frame


if __name__ == "__main__":
    main()
