"""PyTorch tensors as a table in polars and DuckDB, compared with frames built on their memory.

python -m benchmarks.tables    10 million rows of two columns; needs DuckDB, polars and pandas
"""

from __future__ import annotations

import duckdb
import pandas as pd
import polars as pl
import torch

import arraybridge as ab

from .timing import machine, paired, versions

ROWS = 10_000_000
QUERY = "select key, sum(value) from given group by key order by key"


def scanned(given: object) -> list[tuple[float, ...]]:
    """Query a table, which DuckDB finds by its name here."""
    assert given is not None
    return duckdb.sql(QUERY).fetchall()


def main() -> None:
    tensors = {"key": torch.arange(ROWS) % 7, "value": torch.arange(ROWS, dtype=torch.float64)}
    arrays = {name: x.numpy() for name, x in tensors.items()}

    def queried() -> object:
        return scanned(ab.tree.columns(tensors))

    cases = {
        "a frame, `pl.DataFrame(arrays)`": (
            lambda: pl.DataFrame(ab.tree.columns(tensors)),
            lambda: pl.DataFrame(arrays),
        ),
        "a query, of `pl.DataFrame(arrays)`": (queried, lambda: scanned(pl.DataFrame(arrays))),
        "a query, of `pd.DataFrame(arrays)`": (queried, lambda: scanned(pd.DataFrame(arrays))),
    }
    print(machine(), versions("duckdb", "polars", "pandas", "torch"), sep="; ")
    print("\n| ms | `ab.tree.columns` | peer | ratio |\n| --- | ---: | ---: | ---: |")
    for name, (ours, peer) in cases.items():
        assert len(ours()) == len(peer())
        found = paired(ours, peer, rounds=9)
        print(f"| {name} | {found.ours / 1e6:.2f} | {found.peer / 1e6:.2f} | {found.ratio:.2f} |")


if __name__ == "__main__":
    main()
