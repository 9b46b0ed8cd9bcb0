"""Columns of a polars frame through PyTorch and back, and which of them are copied."""

from __future__ import annotations

import numpy as np
import polars as pl
import torch

import arraybridge as ab
from arraybridge.typing import LibraryName


def show_route(what: str, frame: object, to: LibraryName = "torch") -> None:
    """Print the route of a column or a frame."""
    print(f"{what:<28}{ab.explain(frame, to)}")


def main() -> None:
    """Print the routes of a few columns, and add a computed one to the frame."""
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "width": rng.random(100_000, np.float32),
            "height": rng.random(100_000, np.float32),
            "valid": rng.random(100_000) < 0.9,
            "color": pl.Series(rng.random((100_000, 3), np.float32)),  # pl.Array(pl.Float32, 3)
        }
    )
    show_route("a column", frame["width"])
    show_route("the same, to NumPy", frame["width"], "numpy")
    show_route("booleans", frame["valid"])
    show_route("lists of three", frame["color"], "numpy")

    features = ab.convert(frame.select("width", "height"), "torch")
    weights = torch.tensor([0.7, 0.3])
    score = features @ weights
    frame = frame.with_columns(score=pl.Series(ab.from_dlpack(score)))
    column = ab.convert(frame["score"], "numpy")
    print(f"\nthe column is the tensor's memory: {column.ctypes.data == score.data_ptr()}")
    print(frame.head(3))

    holes = frame["width"].scatter([0], None)
    show_route("\na column with a null", holes)


if __name__ == "__main__":
    main()
