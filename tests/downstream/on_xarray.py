"""A pytest plugin: xarray's duck-array tests on the namespace under test, and on no other.

One module of them names array-api-strict, the other has a table of libraries, by module.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from .record import ID, keep, namespace

CLASS = type(namespace().asarray(0.0))
_WRAPPING, _STRICT = "xarray.tests.test_duck_array_wrapping", "xarray.tests.test_array_api"

# What the table asks of a module: the class of its arrays, and what makes one.
stand_in: Any = ModuleType(f"{__name__}.stand_in")
stand_in.__getattr__ = lambda name: getattr(namespace(), name)
stand_in.Array, stand_in.constructor = CLASS, namespace().asarray
sys.modules[stand_in.__name__] = stand_in


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    module: Any = metafunc.module
    if module.__name__ == _WRAPPING:
        attributes = {"array": "Array", "constructor": "constructor"}
        module.NAMESPACE_ARRAYS[stand_in.__name__] = {"attrs": attributes, "xfails": {}}
        # The list that every class of the module is parametrised with.
        module.NAMESPACES[:] = [pytest.param(stand_in.__name__, id=ID)]
    elif module.__name__ == _STRICT:
        module.xp, module.Array = namespace(), CLASS


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    keep(config, items, lambda item: item.module.__name__ in (_WRAPPING, _STRICT))
