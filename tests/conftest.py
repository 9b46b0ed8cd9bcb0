"""What holds for every test: the libraries can be loaded, whichever test comes first."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import warnings
from collections.abc import Iterator

import pytest

from arraybridge.cli import coexist


def pytest_configure(config: pytest.Config) -> None:
    """Load those libraries first that do not load after others, in the order that they need.

    Test modules import their library when they are collected, in the order of their names.
    """
    coexist.prepare()
    if config.getoption("dist", "no") != "no":
        return  # of several processes this is the one that runs no test
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs, at import; a test's warnings are errors still
        for name in coexist.IMPORT_ORDER:
            if importlib.util.find_spec(name) is not None:
                importlib.import_module(name)


def pytest_collection_finish() -> None:
    """Keep what the libraries made at import out of every later collection of garbage.

    Those are millions of objects, and the tests of ownership collect after every step.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def x64(request: pytest.FixtureRequest) -> Iterator[bool]:
    """JAX with 64-bit types, which the standard wants; without, for the parameter False."""
    import jax

    on = getattr(request, "param", True)
    with jax.enable_x64(on):
        yield on
