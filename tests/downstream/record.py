"""What the plugins of every suite share: the namespace under test, and a record of what happened.

The record is a file with a line of JSON for each test, written at once: it survives whatever
becomes of the process.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

NAMESPACE = os.environ["DOWNSTREAM_NAMESPACE"]
ID = "xp"  # the namespace's place in the names of tests: the same whichever namespace it is

_WORST_FIRST = ("failed", "xfailed", "skipped", "passed")


def namespace() -> Any:
    return import_module(NAMESPACE)


def keep(config: pytest.Config, items: list[pytest.Item], concerns: Callable[[Any], bool]) -> None:
    """Deselect the tests that do not concern the namespace."""
    config.hook.pytest_deselected(items=[item for item in items if not concerns(item)])
    items[:] = [item for item in items if concerns(item)]


class Recorder:
    def __init__(self, path: Path) -> None:
        self.file = path.open("w")
        self.phases: list[tuple[str, str]] = []  # of one test: setup, call, teardown

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._line(report.nodeid, "failed", f"not collected: {_message(report)}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        outcome = "xfailed" if report.skipped and hasattr(report, "wasxfail") else report.outcome
        self.phases.append((outcome, _message(report)))
        if report.when == "teardown":
            worst = min(self.phases, key=lambda phase: _WORST_FIRST.index(phase[0]))
            self.phases.clear()
            self._line(report.nodeid, *worst)

    def _line(self, name: str, outcome: str, message: str) -> None:
        self.file.write(json.dumps([name, outcome, message]) + "\n")
        self.file.flush()


def _message(report: pytest.CollectReport | pytest.TestReport) -> str:
    if report.passed:
        return ""
    if isinstance(report.longrepr, tuple):  # (file, line, reason) of a skip
        return str(report.longrepr[2])
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash else report.longrepr)[:1000]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", type=Path, required=True, help="where the outcomes go")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Recorder(config.getoption("record")))
    namespace()
    if torch := sys.modules.get("torch"):
        torch.set_default_dtype(torch.float64)  # as SciPy's tests have it; NumPy's own default
