"""A pytest plugin: scikit-learn's array-API tests on the namespace under test, and on no other.

They are parametrised by what two of its generators yield: (module, device, dtype).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sklearn.utils._array_api as array_api

from .record import NAMESPACE, keep


def _namespaces(include_numpy_namespaces: bool = True) -> Iterator[str]:
    yield NAMESPACE


def _combinations(include_numpy_namespaces: bool = True) -> Iterator[tuple[str, None, str]]:
    yield NAMESPACE, None, "float64"
    yield NAMESPACE, None, "float32"


# Test modules import these by name: they are replaced before the first is collected.
array_api.yield_namespaces = _namespaces
array_api.yield_namespace_device_dtype_combinations = _combinations


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    keep(config, items, lambda item: NAMESPACE in item.name)
