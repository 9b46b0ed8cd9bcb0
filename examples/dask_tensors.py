"""PyTorch on arrays larger than memory: Dask splits them into blocks, PyTorch computes on each.

Needs PyTorch and Dask. Nothing is computed before ``compute()``.
"""

import dask.array as da
import torch

import arraybridge as ab

x = da.random.default_rng(7).normal(size=(8_000, 500), chunks=(1_000, 500)).astype("float32")
print(f"Rows of measurements, in {x.npartitions} NumPy blocks:\n    {x}")

# A PyTorch function by blocks: NumPy in, NumPy out, so that Dask's own functions go on.
softmax = ab.adapt("torch")(lambda block: torch.softmax(block, 1))
sums = x.map_blocks(softmax).sum(axis=1)
print(f"\nThe largest sum of a softmax: {sums.max().compute():.3f}")

# Or the blocks become tensors when they are computed: on the host, without a copy.
t = ab.convert(x, "torch")
print(f"\nAs PyTorch blocks:\n    {t}")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(500, 16), torch.nn.GELU(), torch.nn.Linear(16, 1))
with torch.inference_mode():
    best = max(float(model(block.compute()).max()) for block in t.blocks)
print(f"\nThe highest score of a network, block by block: {best:.3f}")
print(f"The first rows, joined: a {type(t[:1_500].compute()).__name__}")

# Nothing is computed implicitly.
try:
    ab.adapt("torch")(torch.linalg.norm)(x)
except TypeError as error:
    print(f"\nA function of the whole array:\n    {error}")
