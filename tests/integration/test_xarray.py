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
LIBRARIES = [pytest.param(name, marks=needs(name)) for name in ("numpy", "torch", "jax")]
each_library = pytest.mark.parametrize("library", LIBRARIES)


@pytest.mark.parametrize(("library", "least"), [("numpy", 83), ("torch", 83)])
def test_xarrays_own_duck_array_tests(library, least):
    """Of 98, as many as `jax.numpy` itself passes, or more: 89 on NumPy, 88 on PyTorch."""
    pytest.importorskip(library)
    from tests.downstream.__main__ import run
    from tests.downstream.suites import SUITES

    suite = SUITES["xarray"]._replace(mentions="NAMESPACE_ARRAYS")
    found = run(suite, f"arraybridge.xp.{library}", [])
    counts = found.counts()
    assert sum(counts.values()) >= 98
    assert counts["passed"] >= least, {k: v for k, v in found.tests.items() if v[0] == "failed"}


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
    "broadcasting": lambda d: d - d.mean("y"),
    "in place": lambda d: d.__iadd__(1),
    "of datasets": lambda d: (d.to_dataset() * 2 + 1).v,
    "isel": lambda d: d.isel(x=slice(None, None, -2)),
    "isel with a list": lambda d: d.isel(x=[3, 0]),
    "sel": lambda d: d.sel(x=[1.0, 2.0], y=20),
    "nearest": lambda d: d.sel(x=1.2, method="nearest"),
    "assignment": lambda d: (d.__setitem__({"x": 0}, 5), d)[1],
    "where": lambda d: d.where(d > 0),
    "where with another": lambda d: xr.where(d > 0, d, -d),
    "fillna": lambda d: d.fillna(0),
    "clip": lambda d: d.clip(-1, 1),
    "concat": lambda d: xr.concat([d, d], "y"),
    "stack": lambda d: d.stack(z=("x", "y")).unstack("z"),
    "transpose": lambda d: d.transpose("x", "y"),
    "reindex": lambda d: d.reindex(x=[0.0, 9.0]),
    "align": lambda d: xr.align(d, d.isel(x=slice(2)), join="outer")[1],
    **{
        f"{name}, {how}": lambda d, name=name, options=options: getattr(d, name)(**options)
        for name in "mean std var median sum prod min max cumsum cumprod".split()
        for how, options in {
            "along x": {"dim": "x"},
            "of all": {},
            "with NaN": {"dim": "x", "skipna": False},
        }.items()
    },
    "ddof": lambda d: d.std("x", ddof=1) + d.std("x", ddof=1, skipna=False),
    "argmax": lambda d: d.fillna(0).argmax("x"),
    "idxmax": lambda d: d.idxmax("x"),
    "count": lambda d: d.count("x"),
    "quantile": lambda d: d.quantile([0.1, 0.5], "x"),
    "dot": lambda d: d.fillna(0).dot(d.fillna(0), dim="x"),
    "matmul": lambda d: d @ d.T,
    "weighted": lambda d: d.weighted(abs(d).fillna(1)).mean("x"),
    # PyTorch divides integers, the counts, in its default data type: float32.
    "cov": lambda d: xr.cov(d, d, "x"),
    "corr": lambda d: xr.corr(d, d + 1, "x"),
    "pad": lambda d: d.pad(x=(1, 2)),
    "pad with edges": lambda d: d.pad(x=1, mode="edge"),
    "shift": lambda d: d.shift(x=1),
    "roll": lambda d: d.roll(x=1),
    "rolling mean": lambda d: d.rolling(x=3).mean(),
    "rolling sum": lambda d: d.rolling(x=3, center=True, min_periods=1).sum(),
    "rolling median": lambda d: d.rolling(x=3).median(),
    "rolling windows": lambda d: d.rolling(x=3).construct("w"),
    "coarsen": lambda d: d.coarsen(x=2).mean(),
    "groupby": lambda d: d.groupby("g").mean(),
    "groupby median": lambda d: d.groupby("g").median(),
    "groupby std": lambda d: d.groupby("g").std(),
    "groupby anomaly": lambda d: d.groupby("g") - d.groupby("g").mean(),
    "groupby_bins": lambda d: d.groupby_bins("x", [0, 2, 6]).mean(),
    "diff": lambda d: d.diff("x"),
    "differentiate": lambda d: d.fillna(0).differentiate("x"),
    "integrate": lambda d: d.integrate("x"),
    "astype": lambda d: d.astype(np.float32),
    "astype of a Python type": lambda d: d.fillna(0).astype(int),
    "sortby": lambda d: d.sortby("x", ascending=False),
    "map_blocks": lambda d: d.map_blocks(lambda x: x + 1),
    "ufuncs of xarray": lambda d: xr.ufuncs.sqrt(abs(d)),
    "apply_ufunc": lambda d: xr.apply_ufunc(lambda x: x * 2, d),
    "real and conj": lambda d: d.real + d.conj(),
    "pickle": lambda d: pickle.loads(pickle.dumps(d)),
}


#: On JAX, which compiles for each.
FEW = (
    *("arithmetic", "isel", "where", "concat", "mean, along x", "std, along x", "dot", "pad"),
    *("median, along x", "cumsum, along x", "rolling mean", "groupby", "pickle"),
)


@pytest.mark.parametrize(
    ("library", "what"),
    [
        pytest.param(name, what, marks=needs(name))
        for name in ("numpy", "torch", "jax")
        for what in (FEW if name == "jax" else STAYS)
    ],
)
def test_what_stays_in_the_library(library, what):
    xp = import_module(f"arraybridge.xp.{library}")
    wanted = STAYS[what](labelled(data()))
    found = STAYS[what](labelled(xp.asarray(data())))
    assert type(found.data) is type(xp.asarray(0.0))
    assert found.dims == wanted.dims
    assert list(found.coords) == list(wanted.coords)
    np.testing.assert_allclose(np.asarray(found.data), wanted.values, rtol=1e-6)
    if np.dtype(found.dtype).itemsize == wanted.dtype.itemsize:
        assert np.dtype(found.dtype) == wanted.dtype


@pytest.mark.parametrize("library", LIBRARIES[:2])
@pytest.mark.parametrize("dtype", ["int64", "float32", "bool", "complex128"])
def test_other_data_types(library, dtype):
    """NaN makes floating-point numbers of integers, as on NumPy."""
    xp = import_module(f"arraybridge.xp.{library}")
    operations = ["isel", "concat", "shift", "sum, along x", "pad", "where"]
    for what in operations[: 3 if dtype in ("bool", "complex128") else None]:
        if what == "shift" and dtype == "bool":  # Python objects, on NumPy
            continue
        wanted, found = (STAYS[what](labelled(x)) for x in (data(dtype), xp.asarray(data(dtype))))
        assert isinstance(found.data, ab.Array)
        np.testing.assert_allclose(np.asarray(found.data), wanted.values, rtol=1e-5)


#: What xarray or NumPy would compute with NumPy's arrays, or what it asks of methods.
RAISES: dict[str, Callable[[Any], Any]] = {
    "a coordinate in arithmetic": lambda d: d * d.x,
    "a coordinate in a condition": lambda d: d.where(d.x > 2),
    "an array of NumPy's": lambda d: d + np.ones((4, 6)),
    "a ufunc of NumPy's": lambda d: np.sqrt(d),
    "a function of NumPy's": lambda d: d.reduce(np.nanmean, "x"),
    "polyfit": lambda d: d.polyfit("x", 1),
    "argsort": lambda d: d.argsort(),
    "item": lambda d: d.mean().item(),
}


@each_library
@pytest.mark.parametrize("what", RAISES)
def test_what_raises(library, what):
    xp = import_module(f"arraybridge.xp.{library}")
    message = r"does not take an arraybridge Array|wrap it|has no '(argsort|item)'"
    with pytest.raises((TypeError, AttributeError), match=message):
        RAISES[what](labelled(xp.asarray(data())))


@pytest.mark.filterwarnings("ignore:.*does not have a Zarr V3 specification")  # of labels
@each_library
def test_what_zarr_stores(library, tmp_path):
    """Zarr refuses PyTorch's data types by itself, before it sees an Array."""
    pytest.importorskip("zarr")
    d = labelled(import_module(f"arraybridge.xp.{library}").asarray(data())).to_dataset(name="v")
    with pytest.raises((TypeError, ValueError), match=r"x\.as_numpy\(\)|No Zarr data type"):
        d.to_zarr(tmp_path / "refused", consolidated=False)
    d.as_numpy().to_zarr(tmp_path / "stored", consolidated=False)
    np.testing.assert_array_equal(xr.open_zarr(tmp_path / "stored").v.values, data())


@pytest.mark.parametrize("library", [pytest.param("torch", marks=needs("torch"))])
def test_values_and_text(library):
    d = labelled(import_module(f"arraybridge.xp.{library}").asarray(data()))
    assert type(d.values) is np.ndarray
    np.testing.assert_array_equal(d.values, data())
    assert d.nbytes == data().nbytes
    assert "torch" in repr(d.data)
    assert repr(d)
    assert d._repr_html_()
    assert d.identical(d.copy())
    assert not d.equals(d + 1)


@pytest.mark.parametrize("library", [pytest.param("torch", marks=needs("torch"))])
def test_no_copy_and_gradients(library):
    import torch

    x = torch.ones(4, 6, requires_grad=True)
    d = labelled(ab.from_dlpack(x))
    assert d.data.native is x
    assert d.isel(y=slice(2)).data.native.data_ptr() == x.data_ptr()
    d.rolling(x=2).mean().std().data.native.backward()
    assert x.grad.shape == (4, 6)


CHUNKED = (
    *("arithmetic", "where", "isel", "concat", "map_blocks", "dot", "rolling mean"),
    *("mean, along x", "std, along x"),
)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("what", CHUNKED)
def test_chunks_of_dask_stay_in_the_library(library, what):
    pytest.importorskip("dask.array")
    xp = import_module(f"arraybridge.xp.{library}")
    wanted = STAYS[what](labelled(data()).chunk(x=3)).compute()
    lazy = STAYS[what](labelled(xp.asarray(data())).chunk(x=3))
    assert lazy.chunks
    found = lazy.compute(scheduler="sync")  # JAX's 64 bits are this thread's
    assert type(found.data) is type(xp.asarray(0.0))
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
            assert str(caught.value).endswith(f", {code}")
        found = ab.convert(eval(code, {"x": x}), "torch")
        found = found.compute() if hasattr(found, "compute") else found
        found = getattr(found, "native", found)
        assert type(found) is torch.Tensor
        assert found.reshape(-1).tolist() == values.reshape(-1)[: found.numel()].tolist()
