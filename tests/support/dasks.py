"""Dask arrays for its tests: what they are made of, and whose their results are."""

import numpy as np
import pytest

import arraybridge as ab

from .optional import needs

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")

NUMBERS = np.random.default_rng(7).random((6, 8)).astype("float32")
LIBRARIES = [pytest.param(name, marks=needs(name)) for name in ("torch", "jax", "array_api_strict")]


@pytest.fixture
def here():
    """In this thread: JAX's and PyTorch's are not to be mixed with Dask's pools in one test run."""
    with dask.config.set(scheduler="sync"):
        yield


def lazy(chunks=(3, 4)):
    return da.from_array(NUMBERS, chunks=chunks)


def is_of(x, library):
    return ab.convert(x, library) is x
