"""PyTorch on arrays larger than memory: Dask splits them into blocks, PyTorch computes on them.

Needs PyTorch and Dask. Nothing is computed before ``compute()``.
"""

import dask.array as da
import numpy as np
import torch

import arraybridge as ab

x = da.random.default_rng(7).normal(size=(8_000, 500), chunks=(1_000, 500)).astype("float32")
print(f"Rows of measurements, in {x.npartitions} NumPy blocks:\n    {x}")

# The blocks become tensors when they are computed: on the host, without a copy.
t = ab.convert(x, "torch")
print(f"\nAs PyTorch blocks:\n    {t}")

# Dask's own functions compute with them, and return a tensor.
scaled = (t - t.mean(axis=0)) / t.std(axis=0)
covariance = scaled.T @ scaled / len(x)
result = covariance.compute()
print(f"\nThe covariance of the columns: a {type(result).__name__}, {result.dtype}")
print(f"    {tuple(result.shape)}, diagonal of {result.diagonal().mean():.4f} on average")

# PyTorch functions get tensors.
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(500, 16), torch.nn.GELU(), torch.nn.Linear(16, 1))
with torch.inference_mode():
    scores = t.map_blocks(lambda block: model(block).detach(), chunks=(1_000, 1), dtype="float32")
    best = scores.compute().argmax()
print(f"\nA network over the blocks; the highest score is in row {int(best)}")


# Any PyTorch function, on a Dask array of NumPy blocks or on an ndarray.
@ab.adapt("torch", signature="(i)->(i)")
def smoothed(rows: torch.Tensor) -> torch.Tensor:
    """Average each row over five columns."""
    kernel = torch.full((1, 1, 5), 0.2)
    return torch.nn.functional.conv1d(rows[..., None, :], kernel, padding=2)[..., 0, :]


lazy = smoothed(x)
print(f"\nSmoothed by a PyTorch convolution, lazily:\n    {lazy}")
now = smoothed(np.asarray(x[:3]))
print(f"    equal to the eager result: {np.allclose(lazy[:3].compute(), now, atol=1e-6)}")

# Nothing is computed implicitly.
try:
    ab.adapt("torch")(torch.linalg.norm)(x)
except TypeError as error:
    print(f"\nWithout blockwise=, signature= or depth=:\n    {error}")
