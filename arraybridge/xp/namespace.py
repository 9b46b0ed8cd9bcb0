"""Make the module ``arraybridge.xp.<library>`` for a class of Arrays, now or on its first use."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from ..array.native_array import VERSIONS, NativeArray
from ..core.registry import library_named


def open_namespace(cls: type[NativeArray], doc: str | None = None) -> Any:
    """Make the array API namespace of a class of Arrays, and attach it to the class.

    ``arraybridge.xp.<library>`` can be imported from then on.
    """
    from .array_namespace import build
    from .inspection import Info
    from .native_namespace import following

    name = f"{__package__}.{cls._home.name}"
    module: Any = sys.modules.get(name)
    if module is None or "native" in vars(module):  # not one that `published` is filling
        module = ModuleType(name)
    module.__doc__ = doc
    native = cls._native_namespace
    module.__array_namespace_info__ = lambda: Info(cls, native)
    module.native = native
    build(module, cls, native)
    module.__array_api_version__ = VERSIONS[-1]
    module.__getattr__ = following(module, native, native._switched, _lacking(name))
    cls._namespace = module
    sys.modules[name] = module
    setattr(sys.modules[__package__], cls._home.name, module)
    return module


def _lacking(module: str) -> Callable[[str], Any]:
    def __getattr__(name: str) -> Any:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return __getattr__


class _Deferred:
    """A placeholder for a class attribute, which ``make`` sets and returns on first access."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make

    def __get__(self, array: Any, cls: Any) -> Any:
        return self.make()


def defer_namespace(cls: type[NativeArray]) -> None:
    """Make the namespaces of a class of Arrays on their first use.

    Otherwise the first Array of NumPy would mostly wait for array-api-compat to import numpy.f2py,
    numpy.testing and others.
    """

    def native() -> Any:
        cls._native_namespace = made = cls._home.native_namespace()
        return made

    name = f"{__package__}.{cls._home.name}"
    cls._native_namespace = _Deferred(native)
    # The import lock lets one thread make it while others wait.
    cls._namespace = _Deferred(lambda: import_module(name))


def published(module: str) -> None:
    """Fill the module ``arraybridge.xp.<library>`` during its import."""
    cls = library_named(module.rpartition(".")[2]).array_class()
    if isinstance(vars(cls)["_namespace"], _Deferred):
        open_namespace(cls, sys.modules[cls.__module__].__doc__)
