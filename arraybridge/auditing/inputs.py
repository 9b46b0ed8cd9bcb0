"""``asarray`` of the namespaces, noted: the copies and casts that a library makes by itself.

Other libraries' arrays come in by ``convert``, which is noted elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import wraps
from types import ModuleType
from typing import Any

import numpy

from ..array.kinds import is_array, unwrapped
from ..dispatch.library import Library, place_named
from ..dispatch.records import Route
from ..dispatch.registry import library_named, library_of_type
from ..dlpack import CPU
from ..exchange import inspect
from ..xp import namespace as array_namespaces
from ..xp import native_namespace as native_namespaces
from ..xp.sources import _Taking
from .watching import here, seen, taken

__all__ = ["start", "stop"]


def _noting(own: Callable[..., Any], library: str) -> Callable[..., Any]:
    """Return an ``asarray`` that notes what becomes of arrays."""

    @wraps(own)
    def asarray(obj: Any, /, *args: Any, **keywords: Any) -> Any:
        if not is_array(obj):  # an array is made, none is copied
            return own(obj, *args, **keywords)
        call, before = "asarray", here.count
        noted = None
        try:
            home, native = library_named(library), unwrapped(obj)
            info = inspect(native)
            mine = library_of_type(type(native)) is home
            why = _why(home, info, args, keywords, mine)
        except Exception:  # a tracer; or the function says what is wrong
            return own(obj, *args, **keywords)
        if why is not None:
            route = Route("kernel", why, info.nbytes, library, library, info.device)
            noted = seen(route, info.dtype_name, info.shape, call)
        result = own(obj, *args, **keywords)
        if noted is not None:
            taken(noted)
        elif mine and here.count == before:
            route = Route("view", "it is one already", 0, library, library, info.device)
            taken(seen(route, info.dtype_name, info.shape, call))
        return result

    return asarray


def _why(
    home: Library, info: Any, args: tuple[Any, ...], keywords: dict[str, Any], mine: bool
) -> str | None:
    """Return why a library's ``asarray`` copies an array of its own, or casts any; else None."""
    dtype = args[0] if args else keywords.get("dtype")
    if dtype is not None:
        name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None)
        name = str(dtype).rpartition(".")[2] if name is None else str(name)
        if name != info.dtype.name:
            return f"{info.dtype.name} becomes {name}"
    device = keywords.get("device")
    if mine and device is not None and place_named(device) != info.device:
        return "asked for by device="
    return "copy=True" if mine and keywords.get("copy") else None


def _array(self: _Taking, x: Any, dtype: Any, device: Any, shared: bool) -> Any:
    """Stand in for `_Taking.array`: note NumPy's arrays that the library's ``asarray`` copies."""
    if not (self.takes_numpy and not shared and isinstance(x, numpy.ndarray)):
        return _own_array(self, x, dtype, device, shared)
    home = self.home.name
    why = f"{home}'s asarray copies NumPy's arrays"
    route = Route("kernel", why, x.nbytes, "numpy", home, CPU)
    noted = seen(route, x.dtype, x.shape)
    result = _own_array(self, x, dtype, device, shared)
    taken(noted)
    return result


_own_array = _Taking.array
_own_open = array_namespaces.open_namespace
_own_make = native_namespaces.make_native_namespace
_PACKAGE = f"{__name__.partition('.')[0]}."
_replaced: list[tuple[Any, Any, Any]] = []  # module, its own asarray, the one that notes


def _watch(module: Any, library: str) -> None:
    own = vars(module).get("asarray")
    if own is None or any(module is known for known, *_ in _replaced):
        return
    noting = _noting(own, library)
    _replaced.append((module, own, noting))
    module.asarray = noting


def _open(cls: Any, doc: str | None = None) -> Any:
    module = _own_open(cls, doc)
    _watch(module, cls._home.name)
    return module


def _make(table: Any) -> Any:
    module = _own_make(table)
    _watch(module, table.library)
    return module


_FACTORIES = {"open_namespace": (_own_open, _open), "make_native_namespace": (_own_make, _make)}


def _modules() -> Iterator[ModuleType]:
    for name, module in [*sys.modules.items()]:
        if name.startswith(_PACKAGE) and isinstance(module, ModuleType):
            yield module


def start() -> None:
    """Note from now on, in namespaces that are made meanwhile too."""
    for module in _modules():
        for name, (_, noting) in _FACTORIES.items():
            if name in vars(module):
                setattr(module, name, noting)
        if module.__name__.startswith(f"{_PACKAGE}xp.") and "native" in vars(module):
            library = module.__name__.rpartition(".")[2]
            _watch(module, library)
            _watch(vars(module)["native"], library)
        if module.__name__.startswith(f"{_PACKAGE}libraries."):
            for found in [*vars(module).values()]:
                if isinstance(found, ModuleType) and "_functions" in vars(found):
                    _watch(found, module.__name__.split(".")[2])
    _Taking.array = _array  # type: ignore[method-assign]


def stop() -> None:
    """Put everything back, what was imported meanwhile as well."""
    _Taking.array = _own_array  # type: ignore[method-assign]
    for module in _modules():
        for name, (own, noting) in _FACTORIES.items():
            if vars(module).get(name) is noting:
                setattr(module, name, own)
    while _replaced:
        module, own, noting = _replaced.pop()
        if vars(module).get("asarray") is noting:
            module.asarray = own
