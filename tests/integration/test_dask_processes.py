"""Dask in fresh processes: its entry points; two workers are in test_distributed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import arraybridge as ab
from tests.support.installation import POINTS, distribution
from tests.support.processes import ROOT, run_python

da = pytest.importorskip("dask.array")
pytest.importorskip("torch")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the entry points of pyproject.toml, as an installation writes them."""
    return distribution(tmp_path_factory.mktemp("site"), "arraybridge-dlpack", POINTS)


def run(program: str, installed: Path) -> str:
    done = run_python("-c", program, env={"PYTHONPATH": f"{installed}{os.pathsep}{ROOT}"})
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_to_backend_is_dasks_own_door(installed):
    run(
        """
import dask, dask.array as da, numpy as np, sys
assert "torch" not in sys.modules
x = da.ones((4, 4), chunks=2, dtype="float32").to_backend("torch")
import torch, arraybridge as ab
assert type(x.sum(axis=0).compute()) is torch.Tensor
assert x.to_backend("torch") is x
assert isinstance(x.to_backend("arraybridge").compute(), ab.Array)
assert x.to_backend("arraybridge.torch").compute().library == "torch"
assert x.to_backend("arraybridge.numpy").compute().library == "numpy"
assert type(x.to_backend("numpy").compute()) is np.ndarray
with dask.config.set({"array.backend": "torch"}):
    made = [da.ones((3, 2)), da.zeros(3, chunks=2), da.full(2, 7.0), da.arange(6, chunks=2)]
for each in made:
    assert type(each.compute()) is torch.Tensor, each
    assert type((each + 1).sum().compute()) is torch.Tensor
assert made[3].compute().tolist() == list(range(6))
""",
        installed,
    )


ORDERS = {
    "dask first": "import dask.array as da\nimport arraybridge as ab",
    "dask's core first": "import dask\nimport arraybridge as ab\nimport dask.array as da",
    "arraybridge first": "import arraybridge as ab\nimport dask.array as da",
}


@pytest.mark.parametrize("order", ORDERS)
def test_dask_knows_arrays_whatever_was_imported_first(order, installed):
    run(
        f"""
{ORDERS[order]}
import sys
assert "arraybridge.array" not in sys.modules  # it was not loaded for that
import numpy as np
from dask.sizeof import sizeof
from dask.base import tokenize
x = ab.from_dlpack(np.ones(1_000_000))
assert 8_000_000 < sizeof(x) < 8_001_000
same = ab.from_dlpack(np.ones(1_000_000))
assert tokenize(x, ensure_deterministic=True) == tokenize(same)
assert tokenize(x) != tokenize(ab.from_dlpack(np.zeros(1_000_000)))
assert tokenize(x) != tokenize(same.native)
y = da.from_array(x, chunks=500_000)
assert isinstance(y.sum().compute(), ab.Array)
assert isinstance(da.concatenate([y, y])[::2].compute(), ab.Array)
""",
        installed,
    )


def test_importing_arraybridge_imports_no_dask():
    run("import arraybridge, sys; assert 'dask' not in sys.modules", ROOT)


def test_tokens_of_bfloat16_and_strided_arrays():
    import torch
    from dask.base import tokenize

    a = torch.arange(12.0).reshape(3, 4).to(torch.bfloat16)
    tokens = [tokenize(ab.from_dlpack(x)) for x in (a, a.T, a.clone(), a.view(torch.int16))]
    assert tokens[0] == tokens[2]
    assert len(set(tokens)) == 3
    tracked = ab.from_dlpack(torch.ones(3, requires_grad=True))
    assert tokenize(tracked) != tokenize(tracked)  # its elements are not read
