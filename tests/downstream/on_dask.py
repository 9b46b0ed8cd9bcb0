"""A pytest plugin: Dask's own tests of arrays, over blocks of the library under test.

Dask's functions that make arrays give Dask arrays of such blocks: of the library's own arrays
where ``DOWNSTREAM_NAMESPACE`` names a library (``torch``), of Arrays where it names a namespace of
ours (``arraybridge.xp.torch``), and of NumPy's where it is ``dask.array``, the reference. Dask's
``assert_eq`` first looks at the type and the data type of every block. A test in which no such
block is made is skipped.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import dask.array
import dask.array.utils
import numpy
import pytest

import arraybridge
from arraybridge.libraries.dask.arrays import BridgedArray
from arraybridge.libraries.dask.chunk import Chunk

from .record import NAMESPACE

IS_REFERENCE = NAMESPACE == "dask.array"
LIBRARY = NAMESPACE.rpartition(".")[2]
BACKEND = NAMESPACE.replace(".xp", "")  # as arraybridge registers it with Dask
_HOST = (numpy.ndarray, numpy.generic, int, float, complex, list, tuple, str, type(None))
_CREATED = (
    "from_array", "asarray", "asanyarray", "array", "ones", "zeros", "empty", "full", "arange",
    "linspace", "eye", "indices", "tri", "from_delayed",
)  # fmt: skip
_made = 0  # arrays of such blocks, in this test


def of_blocks(function: Any) -> Any:
    """Return a function that makes the same array, of the blocks under test."""

    @functools.wraps(function)
    def wrapped(*args: Any, **options: Any) -> Any:
        global _made
        x = function(*args, **options)
        if not isinstance(x, dask.array.Array) or isinstance(x, BridgedArray):
            return x
        _made += 1
        return x.to_backend(BACKEND)

    return wrapped


def in_numpy(x: Any) -> Any:
    """Return what is the same in NumPy, of a Dask array after a look at its blocks."""
    if not isinstance(x, dask.array.Array):
        return x if isinstance(x, _HOST) else arraybridge.convert(x, "numpy")
    (kept,) = dask.persist(x, scheduler="sync")
    blocks = [kept.dask[key] for key in dask.core.flatten(x.__dask_keys__())]
    if not isinstance(x, BridgedArray):
        assert not any(isinstance(block, Chunk) for block in blocks), "compute() gives blocks"
        return x
    for block in blocks:
        assert isinstance(block, Chunk | numpy.ndarray), f"a block is {type(block)}"
        assert block.dtype == x.dtype, f"a block is of {block.dtype}, declared was {x.dtype}"
        if isinstance(block, Chunk):
            assert block.kind == (LIBRARY, LIBRARY != NAMESPACE)
    assert kept._meta.ndim == x.ndim
    return arraybridge.convert(kept, "numpy")


_assert_eq = dask.array.utils.assert_eq


def assert_eq(a: Any, b: Any, *args: Any, **options: Any) -> Any:
    return _assert_eq(in_numpy(a), in_numpy(b), *args, **options)


def _replace(owner: Any, names: Any) -> None:
    for name in names:
        if callable(function := getattr(owner, name)):
            setattr(owner, name, of_blocks(function))


if not IS_REFERENCE:  # before the first test module is collected
    dask.array.utils.assert_eq = assert_eq
    _replace(dask.array, _CREATED)
    for _class in (dask.array.random.Generator, dask.array.random.RandomState):
        _replace(_class, [name for name in vars(_class) if not name.startswith("_")])
    _replace(dask.array.random, ("random", "normal", "randint", "choice", "permutation", "poisson"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    global _made
    _made = 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Any:
    report = yield
    if call.when == "call" and report.passed and not _made and not IS_REFERENCE:
        report.outcome, report.longrepr = "skipped", ("", 0, "no block is made")
    return report


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Leave PyTorch its own default, which no result of blocks may depend on."""
    if torch := sys.modules.get("torch"):
        torch.set_default_dtype(torch.float32)
