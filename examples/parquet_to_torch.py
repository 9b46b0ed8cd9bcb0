"""Columns of a Parquet file to PyTorch: vectors, missing labels, and which columns are copied.

    python examples/parquet_to_torch.py

Needs pyarrow and torch.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

import arraybridge as ab
from arraybridge.typing import LibraryName

ROWS, WIDTH = 10_000, 64


def file() -> io.BytesIO:
    """Write a Parquet file of embeddings, prices, and labels that are partly missing."""
    rng = np.random.default_rng(0)
    vectors = pa.array(rng.random(ROWS * WIDTH, dtype="f4"))
    labels = pa.array(rng.integers(0, 10, ROWS), mask=rng.random(ROWS) < 0.01)
    table = pa.table(
        {
            "embedding": pa.FixedSizeListArray.from_arrays(vectors, WIDTH),
            "price": rng.random(ROWS),
            "label": labels,
        }
    )
    stream = io.BytesIO()
    pq.write_table(table, stream)
    stream.seek(0)
    return stream


def show_route(what: str, column: Any, to: LibraryName, **how: Any) -> None:
    """Print the route of a column."""
    print(f"{what + ':':28} {ab.explain(column, to, **how)}")


def main() -> None:
    """Read the file, and take its columns to NumPy and PyTorch."""
    table = pq.read_table(file())
    print(f"{table.num_rows:,} rows, embedding: {table.schema.field('embedding').type}\n")

    embedding = table["embedding"]
    show_route("embedding to NumPy", embedding, "numpy")
    show_route("embedding to PyTorch", embedding, "torch")
    show_route("    if nobody writes to it", embedding, "torch", alias_readonly=True)
    show_route("price as float32", table["price"], "torch", dtype="float32")
    show_route("label, some missing", table["label"], "torch")

    x = ab.convert(embedding, "torch", alias_readonly=True)
    memory = embedding.chunk(0).flatten().buffers()[1].address
    print(f"\nthe tensor is {tuple(x.shape)}, on Arrow's memory: {x.data_ptr() == memory}")
    y = ab.convert(table["label"].fill_null(-1), "torch")
    print(f"labels: {y.dtype}, {int((y < 0).sum())} of them missing")
    torch.manual_seed(0)
    known = x[y >= 0]  # a copy by PyTorch, which owns its memory
    loss = torch.nn.functional.cross_entropy(torch.nn.Linear(WIDTH, 10)(known), y[y >= 0])
    print(f"first loss of a linear layer: {loss:.1f}")

    scores = pa.table({"row": pa.array(ab.from_dlpack(torch.arange(3))), "score": [0.1, 0.2, 0.3]})
    print(f"and back, a tensor as a column: {scores['row'].type} {scores['row'].to_pylist()}")


if __name__ == "__main__":
    main()
