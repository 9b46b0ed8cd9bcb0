"""``open_namespace``: make the module ``arraybridge.xp.<library>`` for a class of Arrays."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from ..array.missing import refer_to_functions
from ..array.native_array import VERSIONS, NativeArray
from ..dispatch.registry import library_named
from .array_namespace import build
from .entrance import ENTRANCES
from .inspection import Info


def open_namespace(cls: type[NativeArray], doc: str | None = None) -> Any:
    """Make the array API namespace of a class of Arrays, and attach it to the class.

    Parameters
    ----------
    cls : type
    doc : str, optional
        The module's documentation.

    Returns
    -------
    module
        ``arraybridge.xp.<library>``, which can be imported under that name from then on.
    """
    name = f"{__package__}.{cls._home.name}"
    module: Any = sys.modules.get(name)
    if module is None or "native" in vars(module):  # not one that is being imported: see published
        module = ModuleType(name)
    module.__doc__ = doc
    native = cls._native_namespace
    cls._namespace = module
    for entrance, make in ENTRANCES.items():
        setattr(module, entrance, make(cls, native))
    module.__array_namespace_info__ = lambda: Info(cls, native)
    module.native = native
    build(module, cls, native)
    module.__array_api_version__ = VERSIONS[-1]
    refer_to_functions(cls)
    sys.modules[name] = module
    setattr(sys.modules[__package__], cls._home.name, module)
    return module


def published(module: str) -> None:
    """Fill the module ``arraybridge.xp.<library>`` while it is imported."""
    library_named(module.rpartition(".")[2]).array_class()
