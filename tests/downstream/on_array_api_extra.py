"""A pytest plugin: array-api-extra's tests on the namespace under test, and on no other.

Its fixture `library` iterates over an enumeration of libraries, which cannot be extended: one that
is no member, and like no member, takes their place.
"""

from __future__ import annotations

from typing import Any

import pytest

from .causes import AS_STRICT, EXCUSED
from .record import ID, NAMESPACE, keep


class Backend:
    """A library that array-api-extra does not know: it delegates and excuses nothing."""

    modname = value = NAMESPACE
    name = ID

    def like(self, *others: Any) -> bool:
        return any(self.modname == other.modname for other in others)


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "library" in metafunc.fixturenames:
        library = pytest.param(known() or Backend(), id=ID)
        metafunc.definition.add_marker(pytest.mark.parametrize("library", [library], indirect=True))


def known() -> Any:
    """The member of its enumeration that stands for the namespace, which one of ours has not."""
    from array_api_extra._lib._backends import Backend as Known

    return next((each for each in Known if each.value == NAMESPACE), None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    keep(config, items, lambda item: "library" in getattr(item, "fixturenames", ()))
    if known() is None:
        for item in items:
            if reason := EXCUSED.get(item.nodeid.partition("[")[0]):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: Any) -> None:
    """Have a test expect of the namespace what it expects of array-api-strict."""
    if known() is None and item.nodeid.partition("[")[0] in AS_STRICT:
        from array_api_extra._lib._backends import Backend as Known

        item.funcargs["library"] = Known.ARRAY_API_STRICT  # `xp` is made, and stays as it is
