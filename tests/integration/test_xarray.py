"""xarray over Arrays: what it computes stays in the library, or raises."""

from __future__ import annotations

import importlib.util
import pickle
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import arraybridge as ab
from tests.support.optional import needs

xr = pytest.importorskip("xarray")
pytestmark = [
    pytest.mark.heavy,
    pytest.mark.usefixtures("x64"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # of NumPy, for slices without a number
]
LIBRARIES = [pytest.param(name, marks=needs(name)) for name in ("numpy", "torch")]


@pytest.mark.parametrize(("library", "least"), [("torch", 37)])
def test_xarrays_own_duck_array_tests(library, least):
    """Of 98, 37 on PyTorch; 88 when the namespace had NumPy's extras, dtypes that NumPy reads."""
    pytest.importorskip(library)
    from tests.downstream.__main__ import run

    found = run("xarray", f"arraybridge.xp.{library}", ["-k", "test_duck_array_wrapping"])
    passed = [test for test, (outcome, _) in found.items() if outcome == "passed"]
    assert len(found) >= 98
    assert len(passed) >= least, {k: v for k, v in found.items() if v[0] == "failed"}


def data(dtype: str = "float64") -> np.ndarray:
    x = np.random.default_rng(0).normal(size=(4, 6)) * 9
    if dtype == "float64":
        x[1, 2] = np.nan
    return x.astype(dtype)


def labelled(x: Any) -> Any:
    return xr.DataArray(
        x,
        dims=("y", "x"),
        coords={"y": [10, 20, 30, 40], "x": np.arange(6.0), "g": ("y", ["a", "b", "a", "b"])},
        name="v",
    )


STAYS: dict[str, Callable[[Any], Any]] = {
    "arithmetic": lambda d: 2 * d - d / 3 + d**2,
    "comparison": lambda d: (d > 0) | ~(d < -1),
    "broadcasting": lambda d: d - d.mean("y", skipna=False),
    "in place": lambda d: d.__iadd__(1),
    "isel": lambda d: d.isel(x=slice(None, None, -2)),
    "isel with a list": lambda d: d.isel(x=[3, 0]),
    "sel": lambda d: d.sel(x=[1.0, 2.0], y=20),
    "clip": lambda d: d.clip(-1, 1),
    "concat": lambda d: xr.concat([d, d], "y"),
    "stack": lambda d: d.stack(z=("x", "y")).unstack("z"),
    "transpose": lambda d: d.transpose("x", "y"),
    **{
        name: lambda d, name=name: getattr(d, name)("x", skipna=False)
        for name in "mean sum prod min max".split()
    },
    "sum without NaN": lambda d: d.sum("x"),
    "count": lambda d: d.count("x"),
    "roll": lambda d: d.roll(x=1),
    "groupby anomaly": lambda d: d.groupby("g") - d.groupby("g").mean(skipna=False),
    "diff": lambda d: d.diff("x"),
    "apply_ufunc": lambda d: xr.apply_ufunc(lambda x: x * 2, d),
    "pickle": lambda d: pickle.loads(pickle.dumps(d)),
}


@pytest.mark.parametrize("what", STAYS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_what_stays_in_the_library(library, what):
    """Of 84 operations before NumPy's extras left, 39 did; see docs/array.md."""
    xp = import_module(f"arraybridge.xp.{library}")
    wanted = STAYS[what](labelled(data()))
    found = STAYS[what](labelled(xp.asarray(data())))
    assert type(found.data) is type(xp.asarray(0.0))
    assert found.dims == wanted.dims
    assert list(found.coords) == list(wanted.coords)
    np.testing.assert_allclose(np.asarray(found.data), wanted.values, rtol=1e-6)


def test_coordinates_are_not_lost_unasked():
    """What holds an array with names is refused with what gives the array."""
    torch = pytest.importorskip("torch")
    values = np.arange(6.0).reshape(2, 3)
    named = xr.DataArray(values, coords={"x": [1, 2]}, dims=("x", "y"))
    tensor = xr.DataArray(ab.from_dlpack(torch.tensor(values)), dims=("x", "y"))
    rows = [(x, "x.data") for x in (named, tensor, named.variable, tensor.variable, named[0, 0])]
    rows += [(x.to_dataset(name="v"), "x.to_dataarray().data") for x in (named, tensor)]
    if importlib.util.find_spec("dask"):
        rows += [(named.chunk(), "x.data"), (named.chunk().variable, "x.data")]
        rows += [(named.chunk().to_dataset(name="v"), "x.to_dataarray().data")]
    for x, code in rows:
        for way in (ab.convert, ab.explain, ab.from_dlpack):
            with pytest.raises(TypeError, match="is not an array in memory: pass ") as caught:
                way(x) if way is ab.from_dlpack else way(x, "torch")
            assert str(caught.value).endswith(code)
        found = ab.convert(eval(code, {"x": x}), "torch")
        found = found.compute() if hasattr(found, "compute") else found
        found = getattr(found, "native", found)
        assert type(found) is torch.Tensor
        assert found.reshape(-1).tolist() == values.reshape(-1)[: found.numel()].tolist()
