"""A loop compiled by Numba, for the arrays of every library: dithering, which cannot be vectorized.

    python examples/numba_kernel.py

Needs torch, jax and pyarrow.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numba
import numpy as np
import pyarrow as pa
import torch

import arraybridge as ab


@ab.adapt("numpy")
@numba.njit  # type: ignore[untyped-decorator]
def dithered(image: Any) -> Any:
    """Black and white by Floyd and Steinberg: each pixel passes its error on to the next ones."""
    height, width = image.shape
    error = np.zeros((height + 1, width + 2), np.float32)
    result = np.empty((height, width), np.uint8)
    for i in range(height):
        for j in range(width):
            wanted = image[i, j] + error[i, j + 1]
            result[i, j] = 255 if wanted > 0.5 else 0
            left = wanted - (wanted > 0.5)
            error[i, j + 2] += left * 7 / 16
            error[i + 1, j] += left * 3 / 16
            error[i + 1, j + 1] += left * 5 / 16
            error[i + 1, j + 2] += left * 1 / 16
    return result


@ab.adapt("numpy")
@numba.njit  # type: ignore[untyped-decorator]
def smooth(x: Any) -> None:
    """Write a running mean over a signal, in place."""
    for i in range(1, x.size):
        x[i] = 0.9 * x[i - 1] + 0.1 * x[i]


def milliseconds(call: Callable[[], object]) -> float:
    """Time the quickest of thirty calls."""
    return 1e3 * min(timeit.repeat(call, number=1, repeat=30))


def main() -> None:
    """Call both on arrays of several libraries."""
    ramp = torch.linspace(0, 1, 512).repeat(512, 1)
    images = {
        "a tensor": ramp,
        "the same, transposed": ramp.T,
        "a JAX array": jnp.asarray(ramp.numpy()),
    }
    for name, image in images.items():
        result = dithered(image)
        mean = float(ab.convert(result, "numpy").mean()) / 255
        print(f"{name:21} -> {type(result).__name__:10} {mean:.3f} of it white")

    direct = dithered.__wrapped__  # what Numba compiled
    alone = milliseconds(lambda: direct(ramp.numpy()))
    adapted = milliseconds(lambda: dithered(ramp))
    print(f"an ndarray, Numba only: {alone:.2f} ms; a tensor, adapted: {adapted:.2f} ms")

    signal = torch.tensor([1.0, 0.0, 0.0, 1.0])
    smooth(signal)
    print(f"written in place: {signal}")
    try:
        smooth(pa.array([1.0, 0.0]))
    except numba.TypingError as error:
        reason = next(line for line in str(error).splitlines() if "Cannot modify" in line)
        print(f"refused by Numba: {reason.strip()}")


if __name__ == "__main__":
    main()
