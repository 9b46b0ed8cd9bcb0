"""The suites: which tests of which installed project, by which plugin, in which environment."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

REFERENCE = "array_api_strict"


class Suite(NamedTuple):
    """Tests that a project's wheel carries."""

    project: str  # its distribution
    package: str  # of it, that holds the tests
    plugin: str  # of pytest, in this folder, that puts the namespace under test in
    mentions: str  # a regular expression: modules in which it is not found are not collected
    environment: tuple[tuple[str, str], ...] = ()
    options: tuple[str, ...] = ()  # for pytest, where the project's own settings have them
    files: tuple[str, ...] = ("test_*.py",)
    reference: str = REFERENCE  # what else it is run on, to compare

    def namespaces(self, libraries: list[str]) -> list[str]:
        """What to run it on: the reference first."""
        return [self.reference, *(f"arraybridge.xp.{name}" for name in libraries)]

    def installed(self) -> bool:
        return find_spec(self.package.partition(".")[0]) is not None

    def folder(self) -> Path:
        """Where the package is."""
        found = find_spec(self.package)
        assert found is not None
        assert found.origin is not None
        return Path(found.origin).parent

    def site(self) -> Path:
        """Where the names of its tests begin: the folder that the project is installed in."""
        return self.folder().parents[self.package.count(".")]

    def modules(self) -> list[Path]:
        """The test modules to collect."""
        found = re.compile(self.mentions)
        return [
            path
            for path in sorted({p for name in self.files for p in self.folder().rglob(name)})
            if found.search(path.read_text(encoding="utf-8"))
        ]


_SWITCH = (("SCIPY_ARRAY_API", "1"),)  # SciPy's, which scikit-learn asks for too

SUITES = {
    "scipy": Suite("scipy", "scipy", "on_scipy", r"\bxp\b", _SWITCH),
    "array-api-extra": Suite(
        "array-api-extra",
        "array_api_extra.tests.main",
        "on_array_api_extra",
        r"\bxp\b",
        options=("-W", "error::DeprecationWarning"),
    ),
    "scikit-learn": Suite(
        "scikit-learn",
        "sklearn",
        "on_sklearn",
        "yield_namespaces|yield_namespace_device_dtype_combinations",
        _SWITCH,
    ),
    "xarray": Suite(
        "xarray",
        "xarray.tests",
        "on_xarray",
        r"NAMESPACE_ARRAYS = |importorskip\(.array_api_strict",
    ),
}
