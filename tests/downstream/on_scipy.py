"""A pytest plugin: SciPy's tests on the namespace under test, and on no other.

SciPy's fixture `xp` iterates over the libraries that SciPy knows. Each test that takes it is
parametrised here instead; the fixture itself, with all its checks, stays SciPy's. It skips and
excuses tests by the library's name: one that it does not know is skipped where a test is for NumPy
alone, and excused nowhere.
"""

from __future__ import annotations

import pytest

from .record import ID, NAMESPACE, keep, namespace


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "xp" in metafunc.fixturenames:
        import scipy.conftest

        scipy.conftest.xp_known_backends.add(NAMESPACE)
        xp = pytest.param(namespace(), id=ID)
        # As a mark on the test it comes before the fixture's own parameters.
        metafunc.definition.add_marker(pytest.mark.parametrize("xp", [xp], indirect=True))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    keep(config, items, lambda item: "xp" in getattr(item, "fixturenames", ()))
