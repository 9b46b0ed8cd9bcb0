"""Make the module ``arraybridge.xp.<library>`` on its first use."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from ..array.library_array import LibraryArray
from ..core.registry import library_named


class _Deferred:
    """A placeholder for a class attribute, which ``make`` sets and returns on first access."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make

    def __get__(self, array: Any, cls: Any) -> Any:
        return self.make()


def defer_namespace(cls: type[LibraryArray]) -> None:
    """Make the namespaces of a class of Arrays on their first use.

    Else the first Array of NumPy would wait for array-api-compat, which imports numpy.testing.
    """

    def native() -> Any:
        cls._native_namespace = made = cls._home.computing.native_namespace()
        return made

    name = f"{__package__}.{cls._home.name}"
    cls._native_namespace = _Deferred(native)
    # The import lock lets one thread make it while others wait.
    cls._namespace = _Deferred(lambda: import_module(name))


def published(module: str) -> None:
    """Fill the module ``arraybridge.xp.<library>`` during its import."""
    cls = library_named(module.rpartition(".")[2]).computing.array_class()
    if "native" not in vars(sys.modules[module]):
        from .build import open_namespace

        open_namespace(cls, sys.modules[cls.__module__].__doc__)
