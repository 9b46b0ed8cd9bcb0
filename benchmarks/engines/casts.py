"""Casts on request: convert with a dtype, compared with the library's own cast."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

import arraybridge as ab

from ..goals import Case

SIZES = {"12 elements": (3, 4), "4 million": (2000, 2000)}


def cases() -> Iterator[Case]:
    """Cast NumPy float64 to float32, and PyTorch tensors, with all threads, to half precision."""
    for size, shape in SIZES.items():
        x = np.random.default_rng(0).random(shape)
        t, j = torch.from_numpy(x).float(), jnp.asarray(x, dtype=jnp.float32)
        rows: list[tuple[str, Callable[[], Any], str, Callable[[], Any], float | None]] = [
            (
                "NumPy float64 to PyTorch float32",
                lambda x=x: ab.convert(x, "torch", dtype="float32"),
                "torch.from_numpy(x).to(dtype)",
                lambda x=x: torch.from_numpy(x).to(torch.float32),
                1.4,
            ),
            (
                "NumPy float64 to PyTorch float32",
                lambda x=x: ab.convert(x, "torch", dtype="float32"),
                "torch.from_numpy(x.astype(dtype))",
                lambda x=x: torch.from_numpy(x.astype(np.float32)),
                None,
            ),
            (
                "NumPy float64 to JAX float32",
                lambda x=x: jax.block_until_ready(ab.convert(x, "jax", dtype="float32")),
                "jnp.asarray(x, dtype)",
                lambda x=x: jax.block_until_ready(jnp.asarray(x, dtype=jnp.float32)),
                1.4,
            ),
            (
                "PyTorch float32 to NumPy bfloat16",
                lambda t=t: ab.convert(t, "numpy", dtype="bfloat16"),
                "t.numpy().astype(dtype)",
                lambda t=t: t.numpy().astype(jnp.bfloat16),
                None,
            ),
            (
                "PyTorch float32 to float64",
                lambda t=t: ab.convert(t, "torch", dtype=torch.float64),
                "t.to(dtype)",
                lambda t=t: t.to(torch.float64),
                None,
            ),
            (
                "JAX float32 to PyTorch float64",
                lambda j=j: ab.convert(j, "torch", dtype=torch.float64),
                "torch.from_dlpack(j).to(dtype)",
                lambda j=j: torch.from_dlpack(j).to(torch.float64),
                1.4,
            ),
            (
                "NumPy float64, values checked",
                lambda x=x: ab.convert(x.round(), "numpy", dtype="int8", casting="same_value"),
                "NumPy's own same_value",
                lambda x=x: x.round().astype("int8", casting="same_value"),
                None,
            ),
        ]
        if np.lib.NumpyVersion(np.__version__) < "2.4.0":
            rows.pop()  # NumPy has it from 2.4 on
        for what, ours, name, peer, goal in rows:
            yield Case(f"{what}, {size}", ours, name, peer, goal)
