"""Dask in other processes: its entry points in a fresh one, and two workers of ``distributed``."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import numpy as np
import pytest

import arraybridge as ab
from tests.support.processes import ROOT, run_python

da = pytest.importorskip("dask.array")
pytest.importorskip("torch")

NUMBERS = np.random.default_rng(7).random((60, 80)).astype("float32")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the entry points of pyproject.toml, as an installation writes them."""
    folder = tmp_path_factory.mktemp("site")
    info = folder / "arraybridge_dlpack-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: arraybridge-dlpack\nVersion: 0.1.0\n"
    )
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = []
    for group, points in groups.items():
        lines += [f"[{group}]", *(f"{name} = {place}" for name, place in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return folder


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
assert "arraybridge.array" not in sys.modules  # nothing of it was loaded for that
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


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    import dask

    options = {
        "distributed.comm.timeouts.connect": "30s",
        "distributed.worker.profile.enabled": False,
    }
    with (
        dask.config.set(options),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
            memory_limit=None,
        ) as cluster,
        distributed.Client(cluster, timeout=30) as client,
    ):
        yield client
    # `with` ends the workers, whatever happened


@pytest.mark.heavy
@pytest.mark.parametrize("library", ["torch", "jax"])
def test_two_workers(client, library):
    pytest.importorskip(library)
    x = ab.convert(da.from_array(NUMBERS, chunks=(20, 40)), library)
    results = {
        "itself": (x, NUMBERS),
        "sum": (x.sum(axis=0), NUMBERS.sum(axis=0)),
        "std": (x.std(), NUMBERS.std()),
        "matmul": (x @ x.T, NUMBERS @ NUMBERS.T),
        "concatenate": (
            da.concatenate([x, da.sqrt(x)]),
            np.concatenate([NUMBERS, np.sqrt(NUMBERS)]),
        ),
        "mask": (x[x > 0.5], None),
    }
    for found, expected in results.values():
        computed = found.compute()
        assert ab.convert(computed, library) is computed
        if expected is not None:
            np.testing.assert_allclose(np.asarray(computed), expected, rtol=1e-4)
    where = client.run(lambda dask_worker: list(dask_worker.data))
    assert len(where) == 2


@pytest.mark.heavy
def test_adapted_functions_and_arrays_on_two_workers(client):
    import torch
    from distributed import wait

    x = da.from_array(NUMBERS, chunks=(20, 40))
    softmax = ab.adapt("torch", signature="(i)->(i)")(lambda t: torch.softmax(t, -1))
    found = softmax(x.rechunk((20, 80))).compute()
    assert type(found) is np.ndarray
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-5)
    y = da.from_array(ab.from_dlpack(torch.from_numpy(NUMBERS)), chunks=(20, 40))
    mean = y.mean(axis=0).compute()
    assert isinstance(mean, ab.Array)
    assert mean.library == "torch"
    np.testing.assert_allclose(np.asarray(mean), NUMBERS.mean(0), rtol=1e-5)
    kept = client.persist(ab.convert(x, "torch"))
    wait(kept)
    sizes = client.run(
        lambda dask_worker: sum(task.nbytes or 0 for task in dask_worker.state.tasks.values())
    )
    assert NUMBERS.nbytes <= sum(sizes.values()) < 2 * NUMBERS.nbytes
    assert type(kept.compute()) is torch.Tensor
