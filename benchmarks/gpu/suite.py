"""The tests marked gpu, in this process, one row per test: a test that hangs or ends the process loses no other."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from .record import leave_if_lost

ROOT = Path(__file__).resolve().parents[2]

# In place of pyproject.toml's: its pytest may be newer than the one here, and what other versions of the
# libraries warn about is no failure.
SETTINGS = """[pytest]
markers =
    heavy: see pyproject.toml
    gpu: see pyproject.toml
faulthandler_timeout = 40
"""


class Rows:
    """A plugin that writes rows, and leaves out the tests that an earlier process began."""

    def __init__(self, record: Any) -> None:
        self.record = record
        self.collected = 0

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if item.nodeid not in self.record.begun]

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.record.write(
                name=f"collecting {report.nodeid}", failed=str(report.longrepr)[-1500:]
            )
        elif report.skipped:
            self.record.write(
                name=report.nodeid, values={"outcome": "skipped", "why": str(report.longrepr[-1])}
            )

    def pytest_runtest_protocol(self, item: Any) -> None:
        if self.record.left() < 3:
            self.record.write(name=item.nodeid, failed="cut: no time was left for it")
            pytest.exit("out of time", returncode=0)
        self.record.begin(item.nodeid)
        self.start = time.perf_counter()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.record.write(name=report.nodeid, failed=f"{report.when}: {_short(report)}")
        elif report.skipped:
            why = (
                report.longrepr[-1] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            )
            self.record.write(name=report.nodeid, values={"outcome": "skipped", "why": why})
        elif report.when == "call":
            self.record.write(
                name=report.nodeid, values={"outcome": "passed", "seconds": report.duration}
            )
        if report.failed:
            leave_if_lost()


def _short(report: Any) -> str:
    """The error and its place: enough to fix it without the machine."""
    text = str(report.longrepr)
    lines = text.splitlines()
    errors = [line for line in lines if line.startswith("E ")]
    places = [line for line in lines if line.rstrip().endswith("Error") or ".py:" in line]
    return "\n".join([*errors[:12], *places[-6:]])[:1600] or text[-800:]


def paths() -> list[Path]:
    """The files of tests/gpu, the longest last: it is cut first."""
    files = sorted((ROOT / "tests" / "gpu").glob("test_*.py"))
    return sorted(files, key=lambda path: path.stem.endswith("copies"))


def run(record: Any) -> None:
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # whatever else the machine has for pytest
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder, "pytest.ini")
        settings.write_text(SETTINGS)
        files = [str(path) for path in paths()]
        arguments = [
            "-c",
            str(settings),
            "--rootdir",
            str(ROOT),
            "-m",
            "gpu",
            "-q",
            "--tb=short",
            "-W",
            "default",
        ]
        code = pytest.main([*arguments, "-p", "no:cacheprovider", *files], plugins=[Rows(record)])
    record.write(
        name="pytest", values={"outcome": "ended", "status": int(code), "files": len(files)}
    )
    if code not in (0, 1, 5):  # 5: no test was left, or each was skipped with its file
        sys.exit(f"pytest ended with status {int(code)}")
