"""xarray over Arrays: what it computes stays in the library, or raises."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import arraybridge as ab

xr = pytest.importorskip("xarray")
pytestmark = [
    pytest.mark.heavy,
    pytest.mark.usefixtures("x64"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # of NumPy, for slices without a number
]


@pytest.mark.parametrize(("library", "least"), [("torch", 37)])
def test_xarrays_own_duck_array_tests(library, least):
    """Of 98, 37 on PyTorch; 88 when the namespace had NumPy's extras, dtypes that NumPy reads."""
    pytest.importorskip(library)
    from tests.downstream.__main__ import run

    found = run("xarray", f"arraybridge.xp.{library}", ["-k", "test_duck_array_wrapping"])
    passed = [test for test, (outcome, _) in found.items() if outcome == "passed"]
    assert len(found) >= 98
    assert len(passed) >= least, {k: v for k, v in found.items() if v[0] == "failed"}


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
