"""A pytest plugin: a project's tests on the namespace under test, and on no other; and a record.

Each project iterates over the libraries that it knows; the namespace takes their place, and all
else, with the project's own checks, stays as it is. The record is a file with a line of JSON for
each test, written at once: it survives whatever becomes of the process.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SUITE, NAMESPACE = os.environ["DOWNSTREAM_SUITE"], os.environ["DOWNSTREAM_NAMESPACE"]
ID = "xp"  # the namespace's place in the names of tests: the same whichever namespace it is
XP: Any = import_module(NAMESPACE)
XARRAYS = ("xarray.tests.test_duck_array_wrapping", "xarray.tests.test_array_api")
_WORST_FIRST = ("failed", "xfailed", "skipped", "passed")

if torch := sys.modules.get("torch"):
    torch.set_default_dtype(torch.float64)  # as SciPy's tests have it; NumPy's own default
if SUITE == "scikit-learn":  # test modules import these by name
    import sklearn.utils._array_api as array_api

    array_api.yield_namespaces = lambda *_: iter([NAMESPACE])
    array_api.yield_namespace_device_dtype_combinations = lambda *_: iter(
        [(NAMESPACE, None, "float64"), (NAMESPACE, None, "float32")]
    )


class Backend:
    """A library that array-api-extra does not know: it delegates and excuses nothing."""

    modname = value = NAMESPACE
    name = ID

    def like(self, *others: Any) -> bool:
        return any(self.modname == other.modname for other in others)


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise before the project's own fixtures do, by a mark on the test."""
    module: Any = metafunc.module
    if SUITE == "scipy" and "xp" in metafunc.fixturenames:
        import scipy.conftest

        scipy.conftest.xp_known_backends.add(NAMESPACE)
        _mark(metafunc, "xp", XP)
    elif SUITE == "array-api-extra" and "library" in metafunc.fixturenames:
        from array_api_extra._lib._backends import Backend as Known

        known = (each for each in Known if each.value == NAMESPACE)
        _mark(metafunc, "library", next(known, None) or Backend())
    elif module.__name__ == XARRAYS[0]:
        # What its table asks of a module: the class of its arrays, and what makes one.
        stand_in: Any = ModuleType(f"{__name__}.stand_in")
        stand_in.__getattr__ = lambda name: getattr(XP, name)
        stand_in.Array, stand_in.constructor = type(XP.asarray(0.0)), XP.asarray
        sys.modules[stand_in.__name__] = stand_in
        attributes = {"array": "Array", "constructor": "constructor"}
        module.NAMESPACE_ARRAYS[stand_in.__name__] = {"attrs": attributes, "xfails": {}}
        # The list that every class of the module is parametrised with.
        module.NAMESPACES[:] = [pytest.param(stand_in.__name__, id=ID)]
    elif module.__name__ == XARRAYS[1]:
        module.xp, module.Array = XP, type(XP.asarray(0.0))


def _mark(metafunc: pytest.Metafunc, name: str, value: Any) -> None:
    values = [pytest.param(value, id=ID)]
    metafunc.definition.add_marker(pytest.mark.parametrize(name, values, indirect=True))


def _concerns(item: Any) -> bool:
    fixtures = getattr(item, "fixturenames", ())
    return {
        "scipy": "xp" in fixtures,
        "array-api-extra": "library" in fixtures,
        "scikit-learn": NAMESPACE in item.name,
        "xarray": item.module.__name__ in XARRAYS,
    }[SUITE]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if _concerns(item)]


class Recorder:
    def __init__(self, path: Path) -> None:
        self.file = path.open("w")
        self.phases: list[tuple[str, str]] = []  # of one test: setup, call, teardown

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._line(report.nodeid, "failed", f"not collected: {report.longrepr}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        outcome = "xfailed" if report.skipped and hasattr(report, "wasxfail") else report.outcome
        crash = getattr(report.longrepr, "reprcrash", None)
        self.phases.append((outcome, str(crash.message if crash else report.longrepr or "")))
        if report.when == "teardown":
            worst = min(self.phases, key=lambda phase: _WORST_FIRST.index(phase[0]))
            self.phases.clear()
            self._line(report.nodeid, *worst)

    def _line(self, name: str, outcome: str, message: str) -> None:
        self.file.write(json.dumps([name, outcome, message[:1000]]) + "\n")
        self.file.flush()


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Recorder(Path(os.environ["DOWNSTREAM_RECORD"])))
