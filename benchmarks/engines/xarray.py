"""xarray: labeled arrays over Arrays, compared with `jax.numpy` and NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

import arraybridge as ab
import arraybridge.xp.jax as xj

from ..goals import Case

#: Name -> the operation on a DataArray.
WORK: dict[str, Callable[[Any], Any]] = {
    "mean along an axis": lambda d: d.mean("x"),
    "anomaly": lambda d: d - d.mean("x"),
    "where": lambda d: d.where(d > 0),
    "isel": lambda d: d.isel(x=slice(1, None, 2)),
    "median along an axis": lambda d: d.median("x"),
    "rolling mean": lambda d: d.rolling(x=5).mean(),
}
SHAPE = 80, 200


def cases() -> Iterator[Case]:
    """The same work on the same values: `jax.numpy` is the only other library that xarray keeps."""
    import xarray as xr

    torch.set_num_threads(1)
    values = np.random.default_rng(0).normal(size=SHAPE).astype("float32")
    values[::7, 3] = np.nan

    def labelled(x: Any) -> Any:
        return xr.DataArray(x, dims=("y", "x"), coords={"x": np.arange(SHAPE[1])})

    def computed(work: Callable[[Any], Any], d: Any) -> Callable[[], object]:
        return lambda: jax.block_until_ready(getattr(work(d).data, "native", None))

    def of_jax(work: Callable[[Any], Any], d: Any) -> Callable[[], object]:
        return lambda: jax.block_until_ready(work(d).data)

    arrays = {
        "NumPy": labelled(ab.from_dlpack(values)),
        "PyTorch": labelled(ab.from_dlpack(torch.from_numpy(values))),
        "JAX": labelled(xj.asarray(values)),
    }
    own, native = labelled(values), labelled(jnp.asarray(values))
    for what, work in WORK.items():
        if what != "rolling mean":  # jax.numpy has no windows
            ours, peer = computed(work, arrays["JAX"]), of_jax(work, native)
            yield Case(f"{what}, Array over JAX", ours, "jax.numpy", peer, 2)
            ours = computed(work, arrays["PyTorch"])
            yield Case(f"{what}, Array over PyTorch", ours, "jax.numpy", peer, None)
        ours = computed(work, arrays["NumPy"])
        yield Case(f"{what}, Array over NumPy", ours, "ndarray", lambda f=work: f(own), 1.4)
        if what == "rolling mean":
            ours = computed(work, arrays["PyTorch"])
            yield Case(f"{what}, Array over PyTorch", ours, "ndarray", lambda f=work: f(own))
