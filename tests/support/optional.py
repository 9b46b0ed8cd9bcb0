"""Libraries that a test can do without: what uses one that is not installed skips, nothing else.

``torch = optional("torch")`` stands for ``import torch`` where a part of the file alone needs it.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest


def optional(name: str) -> Any:
    """Import a library by its import name, or return a stand-in that skips the test that uses it.

    One that is installed and does not load is an error, as for ``import``.
    """
    return importlib.import_module(name) if installed(name) else Missing(name)


def installed(name: str) -> bool:
    """Whether a library is installed, without importing it."""
    return find_spec(name.partition(".")[0]) is not None


def needs(*names: str) -> pytest.MarkDecorator:
    """Mark a test, or a parameter, that needs libraries by their import names."""
    missing = [name for name in names if not installed(name)]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} is not installed")


def with_needs(*names: str) -> list[Any]:
    """Parameters that are libraries' names: each skips where that library is not installed."""
    return [pytest.param(name, id=name, marks=needs(name)) for name in names]


class Missing:
    """A library that is not installed, or anything of it.

    While a file is collected, its attributes and calls are stand-ins too, so that tables at the top
    of the file can be written down; while a test runs, they skip it.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Missing:
        if name.startswith("__"):  # what Python and pytest ask of any object
            raise AttributeError(name)
        self._skip()
        return Missing(f"{self._name}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Missing:
        self._skip()
        return self

    def __getitem__(self, index: Any) -> Missing:
        self._skip()
        return self

    def __iter__(self) -> Iterator[Missing]:
        self._skip()
        return iter(())

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return self._name

    def _skip(self) -> None:
        if "PYTEST_CURRENT_TEST" in os.environ:
            pytest.skip(f"{self._name.partition('.')[0]} is not installed")
