"""Cast float64 data while converting it: on request, checked, in one pass.

    python examples/casts_on_request.py

Needs torch and jax.
"""

from __future__ import annotations

import jax
import numpy as np
import torch

import arraybridge as ab

jax.config.update("jax_enable_x64", False)  # JAX's default: it has no float64


@ab.adapt("jax", dtype={"float64": "float32", "int64": "int32"})
def loudness(signal: jax.Array, window: jax.Array) -> jax.Array:
    """Root mean square in windows, by JAX."""
    power = jax.numpy.convolve(signal**2, window / window.sum(), mode="valid")
    return jax.numpy.sqrt(power)


def main() -> None:
    """Request narrower types, and see what is refused, cast and checked."""
    time = np.linspace(0, 1, 8000)
    signal = np.sin(2 * np.pi * 440 * time) * np.exp(-3 * time)

    try:
        ab.convert(signal, "jax")
    except ab.ConversionError as error:
        print("refused:   ", error)
    print("requested: ", ab.explain(signal, "jax", dtype="float32"))

    loud = loudness(signal, np.ones(400, dtype=np.int64))
    print(f"loudness:   {loud[0]:.3f} at the start, {loud[-1]:.3f} at the end, {loud.dtype}")

    labels = np.array([0.0, 3.0, 7.0])  # as a data frame stores them
    print("labels:    ", ab.convert(labels, "torch", dtype=torch.int64, casting="same_value"))
    try:
        ab.convert(labels + 0.5, "torch", dtype=torch.int64, casting="same_value")
    except ab.ConversionError as error:
        print("checked:   ", error)

    images = np.random.default_rng(0).random((8, 3, 32, 32))
    batch = ab.convert(images, "torch", dtype=torch.float16, order=torch.channels_last)
    print("batch:     ", batch.dtype, "strides", batch.stride())


if __name__ == "__main__":
    main()
