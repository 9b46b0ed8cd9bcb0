"""What holds for every test: the libraries can be loaded, whichever test comes first."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import importlib.util
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from .support import coexist
from .support.optional import Missing, installed
from .support.programs import ENVIRONMENT


def pytest_configure(config: pytest.Config) -> None:
    """Load those libraries first that do not load after others, in the order that they need.

    Test modules import their library when they are collected, in the order of their names.
    """
    coexist.prepare()
    # It forks in a thread of its own, in the middle of some test, and JAX warns of that.
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
    os.environ.pop("COLUMNS", None)  # the width of the terminal that the tests run in
    # JAX compiles each operation on each shape, dpnp on each data type: quickly rather than well.
    os.environ.setdefault("XLA_FLAGS", ENVIRONMENT["XLA_FLAGS"])
    os.environ.setdefault("SYCL_PROGRAM_COMPILE_OPTIONS", "-cl-opt-disable")
    if config.getoption("dist", "no") != "no":
        return  # of several processes this is the one that runs no test
    if _without_heavy(config):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs, at import; a test's warnings are errors still
        for name in coexist.IMPORT_ORDER:
            if importlib.util.find_spec(name) is not None:
                importlib.import_module(name)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore files with only heavy tests if no heavy test is run.

    They import their libraries, which take a gigabyte.
    """
    if collection_path.suffix == ".py" and _without_heavy(config):
        return "\npytestmark = pytest.mark.heavy\n" in collection_path.read_text("utf-8") or None
    return None


def _without_heavy(config: pytest.Config) -> bool:
    return "not heavy" in config.getoption("markexpr")


def pytest_collection_finish() -> None:
    """Keep what the libraries made at import out of every later collection of garbage.

    Those are millions of objects, and the tests of ownership collect after every step.
    """
    if jax := sys.modules.get("jax"):  # its own caches are cleared between files, see below
        jax.config.update("jax_compilation_cache_dir", _compiled.name)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    gc.collect()
    gc.freeze()


_compiled = tempfile.TemporaryDirectory(prefix="arraybridge-jax-")
_resident = 0  # bytes, when memory was last given back


@pytest.hookimpl(trylast=True)  # when the test's fixtures are gone
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Give memory back after a file, or part of one, that took much, and before one that uses gc.

    What JAX and PyTorch compiled is held by their caches, and what is freed by malloc's heap: over
    all files that comes to gigabytes.
    """
    global _resident
    if nextitem is None:
        return
    last = nextitem.path != item.path
    taken = _resident_bytes() - _resident
    if taken > (64 << 20 if last else 256 << 20) or (last and hasattr(nextitem.module, "gc")):
        for name in ("jax", "torch._dynamo"):
            library = sys.modules.get(name)
            getattr(library, "clear_caches", getattr(library, "reset", int))()
        gc.collect()
        gc.freeze()
        with contextlib.suppress(OSError, AttributeError):  # of glibc
            ctypes.CDLL(None).malloc_trim(0)
        _resident = _resident_bytes()


def _resident_bytes() -> int:
    """The memory that this process has in use; 0 where the system does not say it as Linux does."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except OSError:
        return 0


@pytest.fixture
def x64(request: pytest.FixtureRequest) -> Iterator[bool]:
    """JAX with 64-bit types, which the standard wants; without, for the parameter False."""
    import jax

    on = getattr(request, "param", True)
    with jax.enable_x64(on):
        yield on


@pytest.fixture(params=["plain", "jitted"])
def jitted(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    """What makes a function of JAX, compiled or not."""
    import jax

    return jax.jit if request.param == "jitted" else lambda function: function


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Skip a test that names a library which is not installed; no other import may fail."""
    if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
        for value in item.callspec.params.values():
            if isinstance(value, Missing):
                pytest.skip(f"{value} is not installed")
    try:
        return (yield)
    except ImportError as error:
        name = (error.name or "").partition(".")[0]
        said = f"{item.name} {item.path.read_text('utf-8')}"
        if name and not installed(name) and re.search(rf"(?<![a-z]){name}(?![a-z])", said):
            pytest.skip(f"{name} is not installed")
        raise
