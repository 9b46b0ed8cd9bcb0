"""Benchmarks stay runnable: every module imports, and a quick run ends."""

import importlib
import importlib.util
import pkgutil

import pytest

import benchmarks
from tests.support.processes import run_python

MODULES = [
    found.name
    for found in pkgutil.walk_packages(benchmarks.__path__, "benchmarks.")
    if not found.name.endswith("__main__")
]
#: Of the CI's optional packages.
NEEDED = {
    "benchmarks.calls": "tvm_ffi",
    "benchmarks.wrapper": "array_api_strict",
}


@pytest.mark.parametrize("name", MODULES)
def test_module_imports(name):
    if name in NEEDED and importlib.util.find_spec(NEEDED[name]) is None:
        pytest.skip(f"{NEEDED[name]} is not installed")
    importlib.import_module(name)


@pytest.mark.heavy
def test_quick_run_prints_a_table():
    out = run_python("-m", "benchmarks.core", "--quick", check=True).stdout
    assert len([line for line in out.splitlines() if line.startswith("| ")]) > 4
