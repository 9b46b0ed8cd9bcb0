"""Dask: each block is converted when it is computed; also in other processes."""

from __future__ import annotations

import pickle
import re
from importlib import import_module

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.xp.standard import CHAPTERS, EXTENSIONS
from tests.support.optional import needs
from tests.support.processes import ROOT

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
LIBRARIES = [pytest.param(name, marks=needs(name)) for name in ("numpy", "torch", "jax")]
NUMBERS = np.random.default_rng(7).random((6, 8)).astype("float32")


@pytest.fixture(autouse=True)
def in_this_thread():
    """JAX's and PyTorch's threads are not to be mixed with Dask's in one test run."""
    with dask.config.set(scheduler="sync"):
        yield


def lazy():
    return da.from_array(NUMBERS, chunks=(3, 4))


def check(x, library, wanted):
    """Check that a Dask array has blocks and results of a library, before and after `compute`."""
    found = x.compute()
    for array in (x._meta, x.blocks[(0,) * x.ndim].compute(), found):
        assert ab.convert(array, library) is array
    assert x.dtype == x._meta.dtype == found.dtype
    assert x._meta.shape == (0,) * x.ndim
    np.testing.assert_array_equal(ab.convert(found, "numpy"), wanted)


@pytest.mark.parametrize("library", LIBRARIES)
def test_blocks(library):
    x = ab.convert(lazy(), library)
    check(x, library, NUMBERS)
    check(x[1:5, ::2], library, NUMBERS[1:5, ::2])
    check(ab.convert(x, "numpy"), "numpy", NUMBERS)
    check(ab.convert(x, library, dtype="float16"), library, NUMBERS.astype("float16"))
    check(pickle.loads(pickle.dumps(x)), library, NUMBERS)
    assert ab.convert(lazy(), library).name == x.name
    assert ab.convert(lazy(), library, copy=True).name != x.name


def test_contiguous():
    x = ab.contiguous(lazy().T)
    assert all(block.compute().flags.c_contiguous for block in x.blocks.ravel())
    check(x, "numpy", NUMBERS.T)


def test_refusals():
    x = lazy()
    for function in (
        ab.from_dlpack, ab.inspect, ab.unify, ab.adapt("numpy")(np.sum),
        lambda x: ab.unify(NUMBERS, x), lambda x: ab.copyto(NUMBERS, x),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=r"not an array in memory: pass x\.compute\(\)"):
            function(x)
    with pytest.raises(TypeError, match="when they are computed"):
        ab.explain(x, "numpy")
    for array in (NUMBERS, x):
        with pytest.raises(ab.ConversionError, match="from_array"):
            ab.convert(array, "dask")
    with pytest.raises(ab.ConversionError, match="copy=False"):
        ab.convert(x[::-1], "numpy", dtype="float64", copy=False).compute()


def test_its_namespace_lacks_what_the_docs_say():
    xp = ab.namespace(da.ones(3))
    lacking = [
        name
        for chapter in (*CHAPTERS, *EXTENSIONS)
        for name in import_module(f"arraybridge.xp.standard.{chapter}").__all__
        if not hasattr(getattr(xp, chapter, xp), name)
    ]
    text = (ROOT / "docs" / "engines.md").read_text()
    sentence = text[
        text.index("is array-api-compat's. It lacks") : text.index("NumPy computes these")
    ]
    assert sorted(lacking) == sorted({*re.findall(r"`(\w+)`", sentence)} - {"linalg"})


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")  # distributed's own, at a fork
@needs("torch", "distributed")
def test_worker_processes():
    """Blocks go from one worker to the other, and are joined here; Arrays are sent as memory."""
    import distributed
    import torch

    options = {"host": "127.0.0.1", "dashboard_address": None, "threads_per_worker": 1}
    with (
        distributed.LocalCluster(n_workers=2, processes=True, memory_limit=0, **options) as cluster,
        distributed.Client(cluster) as client,
        dask.config.set(scheduler="distributed"),
    ):
        check(ab.convert(lazy(), "torch"), "torch", NUMBERS)
        kept = client.persist(ab.convert(da.ones((200, 100), chunks=100), "torch"))
        distributed.wait(kept)
        sizes = client.run(
            lambda dask_worker: sum(x.nbytes or 0 for x in dask_worker.state.tasks.values())
        )
        assert 160_000 <= sum(sizes.values()) < 170_000
        array = ab.from_dlpack(torch.arange(1e5).bfloat16().flip(0))
        workers = [*client.scheduler_info()["workers"]]
        there = client.scatter(array, workers=workers[:1])
        back = client.submit(lambda x: x * 2, there, workers=workers[1:]).result(timeout=60)
        assert torch.equal(back.native, array.native * 2)
