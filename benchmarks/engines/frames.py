"""Data frames: columns and matrices of pandas, polars and Arrow."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

import arraybridge as ab

from ..goals import Case

FEW, MANY = 1_000, 4_000_000


def cases() -> Iterator[Case]:
    """Compare with each library's own conversion to NumPy, PyTorch and JAX. Both sides copy, or neither."""
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    def column(size: int) -> np.ndarray:
        return np.random.default_rng(0).random(size, np.float32)

    few, many = column(FEW), column(MANY)
    series, column_of = pd.Series(few), pl.Series(few)
    large = pl.Series(many)
    bits, arrow_bits = pl.Series(many > 0.5), pa.array(many > 0.5)
    parts = pl.concat([pl.Series(part) for part in np.split(many, 4)], rechunk=False)
    table = pl.DataFrame({f"{i}": column(MANY // 8) for i in range(8)})
    frame = pd.DataFrame(np.asarray(many.reshape(8, -1).T))
    tensor = torch.from_numpy(many.copy())

    def numpy(x: object, **how: object) -> object:
        return lambda: ab.convert(x, "numpy", **how)

    def to_torch(x: object, **how: object) -> object:
        return lambda: ab.convert(x, "torch", **how)

    yield Case(
        "pandas column to NumPy, 1,000, a view",
        numpy(series), "series.to_numpy()", series.to_numpy,
    )  # fmt: skip
    yield Case(
        "polars column to NumPy, 1,000, a view",
        numpy(column_of), "series.to_numpy()", column_of.to_numpy,
    )  # fmt: skip
    yield Case(
        "pandas column to torch, 1,000, a copy",
        to_torch(series), "torch.from_numpy(series.to_numpy(copy=True))",
        lambda: torch.from_numpy(series.to_numpy(copy=True)),
    )  # fmt: skip
    yield Case(
        "polars column to torch, 1,000, a copy",
        to_torch(column_of), "series.to_torch()", column_of.to_torch,
    )  # fmt: skip
    yield Case(
        "polars column to torch, 16 MB, a copy",
        to_torch(large), "series.to_torch()", large.to_torch, 1.2,
    )  # fmt: skip
    yield Case(
        "polars column to torch, 16 MB, a view on request",
        to_torch(large, alias_readonly=True), "series.to_torch()", large.to_torch, 0.2,
    )  # fmt: skip
    yield Case(
        "polars column to JAX, 16 MB", lambda: ab.convert(large, "jax"),
        "series.to_jax()", large.to_jax, 1.2,
    )  # fmt: skip
    yield Case(
        "polars booleans to NumPy, 4 million",
        numpy(bits), "series.to_numpy()", bits.to_numpy, 0.5,
    )  # fmt: skip
    yield Case(
        "Arrow booleans to NumPy, 4 million",
        numpy(arrow_bits), "array.to_numpy(zero_copy_only=False)",
        lambda: arrow_bits.to_numpy(zero_copy_only=False), 0.5,
    )  # fmt: skip
    yield Case(
        "polars, 4 chunks to NumPy, 16 MB",
        numpy(parts), "series.to_numpy()", parts.to_numpy, 1.2,
    )  # fmt: skip
    yield Case(
        "polars frame of 8 columns to torch, 16 MB",
        to_torch(table), "frame.to_torch()", table.to_torch, 1.2,
    )  # fmt: skip
    yield Case(
        "the same in rows",
        to_torch(table, order="C"), "torch.from_numpy(frame.to_numpy(order='c'))",
        lambda: torch.from_numpy(table.to_numpy(order="c")), 1.2,
    )  # fmt: skip
    yield Case(
        "pandas frame of one block to NumPy, 16 MB, a view",
        numpy(frame), "frame.to_numpy()", frame.to_numpy,
    )  # fmt: skip
    yield Case(
        "tensor to polars, 16 MB",
        lambda: pl.Series(ab.from_dlpack(tensor)), "pl.Series(tensor.numpy())",
        lambda: pl.Series(tensor.numpy()),
    )  # fmt: skip
    yield Case(
        "tensor to Arrow, 16 MB",
        lambda: ab.convert(tensor, "pyarrow.Array"), "pyarrow.array(tensor.numpy())",
        lambda: pa.array(tensor.numpy()),
    )  # fmt: skip
