"""Labeled tensors: a year of weather in xarray, computed by PyTorch.

    python examples/xarray_tensors.py

It prints each result, and checks the gradient. Needs xarray and torch.
"""

from __future__ import annotations

import numpy as np
import torch
import xarray as xr

import arraybridge as ab
import arraybridge.xp.torch as xp


def show(what: str, x: xr.DataArray) -> None:
    """Print the type of a result, and its mean."""
    first = x.data.native.detach().nanmean()
    print(f"{what:24} {dict(x.sizes)!s:26} {type(x.data).__name__}, {x.dtype}, mean {first:.3f}")


# A tensor with a gap in the measurements, and labels for its axes.
torch.manual_seed(0)
days = torch.arange(365)
warmth = 10 - 12 * torch.cos(days / 58) + torch.randn(4, 365)
warmth[1, 100:110] = torch.nan
warmth.requires_grad_()
weather = xr.DataArray(
    ab.from_dlpack(warmth),
    dims=("station", "day"),
    coords={"station": list("ABCD"), "day": np.arange(365), "region": ("station", [0, 0, 1, 1])},
    name="warmth",
)

show("the tensor itself", weather)
show("sum of the year", weather.sum("day"))
filled = weather.fillna(10)
# xarray's own mean and median call NumPy's functions that skip NaN: pass skipna=False.
show("mean of the year", filled.mean("day", skipna=False))
show("anomaly", filled - filled.mean("day", skipna=False))
show("every second day", weather.isel(day=slice(None, None, 2)))
show("by region", filled.groupby("region").max(skipna=False))

# Nothing was copied on the way in, and gradients pass through: a tensor stays a tensor.
print("the same memory:", weather.data.native is warmth)
filled.mean(skipna=False).data.native.backward()
assert warmth.grad is not None
print("gradient:", warmth.grad.shape, "without a NaN:", not bool(warmth.grad[0].isnan().any()))

# Coordinates are NumPy arrays. An operation that mixes the two is refused: convert them first.
try:
    weather * weather.day
except TypeError as error:
    print("refused:", error)
day = xr.DataArray(xp.asarray(weather.day.values, dtype=xp.float32), dims="day")
show("weighted by the day", filled * day)
