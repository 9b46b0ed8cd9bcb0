"""Where an audit looks into the bridge: tables emptied and names replaced while one is on.

Off, nothing of this is in the path of a call. On, the tables of quick ways are empty: every
conversion is planned, and what carries out a plan has been replaced by what notes it as well.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .. import copies
from ..array import crossing, ingest, written
from ..dispatch import execute as execution
from ..dispatch import kernel
from ..dispatch.kernel import own_copies_serve
from ..dispatch.library import Library
from ..dispatch.records import Route, TensorInfo
from ..dispatch.registry import RECORDS, TypeRecord, forget
from ..dispatch.route import route_between
from ..exchange import inspect
from . import exports
from .callers import beyond, caller
from .watching import here, seen, taken

__all__ = ["start", "stop"]


class _Always(dict[Any, Any]):
    """A table that has the same value for every key, and keeps nothing."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value

    def __missing__(self, key: object) -> Any:
        return self.value

    def __contains__(self, key: object) -> bool:
        return True

    def get(self, key: object, default: object = None) -> Any:
        return self.value


class _Planned(TypeRecord):
    """What is known of a type of arrays while an audit is on: no quick way."""

    __slots__ = ()

    def __init__(self, cls: type) -> None:
        super().__init__(cls)
        self.doors = _Always(None)
        self.ways = _Always(_Always(()))
        self.ways_with = _Always(())
        self.casts = _Always(None)


def _execute(x: object, source: Library, target: Library, route: Route, info: TensorInfo) -> object:
    try:
        return _carried_out(x, source, target, route, info)
    except Exception as error:  # as it is printed without an audit
        error.__traceback__ = beyond(error.__traceback__, _execute, _carried_out)
        raise


def _carried_out(
    x: object, source: Library, target: Library, route: Route, info: TensorInfo
) -> object:
    if route.kind == "refuse":
        return _own.execute(x, source, target, route, info)
    told = route
    if route.kind == "view" and info.copied:
        told = route._replace(kind="kernel", why=_PRODUCED, nbytes=info.nbytes)
    noted = seen(told, info.dtype_name, info.shape)
    result = _own.execute(x, source, target, route, info)
    taken(noted, result if noted.call == "from_dlpack" else None)  # which wraps it next
    return result


_PRODUCED = "the producer says that what it exports is a copy"


def _maker(library: Library, kind: type) -> Callable[[Any], Any]:
    """Return what makes Arrays of a type: views, unless what they hold was just noted."""
    make = _own.maker(library, kind)

    def maker(native: Any) -> Any:
        made, here.made = here.made, 0
        if made == id(native) or caller().call != "from_dlpack":
            return make(native)
        try:
            info = library.describe(native)
        except Exception:  # a tracer
            return make(native)
        route = _view(library.name, info)
        noted = seen(route, info.dtype_name, info.shape)
        result = make(native)
        taken(noted)
        return result

    return maker


def _view(library: str, info: TensorInfo, why: str = "an Array refers to it") -> Route:
    return Route("view", why, 0, library, library, info.device)


def _way_of(array_type: type) -> Callable[[Any], Any]:
    """Return the first step of ``contiguous``, without the builtin that would take it."""
    library = RECORDS[array_type].library
    if hasattr(array_type, "__arraybridge__"):
        return copies._of_array
    if library is None:
        return Library().compact
    home = library

    def contiguous(x: Any) -> Any:
        way = home.compact if own_copies_serve() else Library().compact
        noted = None
        try:
            info = home.describe(x)
            compact = info.c_contiguous and not info.pending
            route, _ = route_between(x, home, home, copy=None if compact else True)
            if not compact:
                route = route._replace(why=f"the layout is {info.layout}")
        except Exception:  # the function says what is wrong
            return way(x)
        if route.kind != "refuse":
            noted = seen(route, info.dtype_name, info.shape, "contiguous")
        result = way(x)  # None: what called this goes on, and makes what was noted
        if noted is not None:
            taken(noted)
        return result

    return contiguous


def _write(out: Any, x: Any, name: str) -> None:
    call = "copyto" if name == "dst" else "contiguous(out=)"
    noted = None
    try:
        info, into = inspect(x), inspect(out)
        kind: Any = "kernel" if info.device == into.device else "transfer"
        why = f"{call} writes into memory that is there"
        route = Route(kind, why, info.nbytes, info.library, into.library, into.device)
    except Exception:  # the function says what is wrong
        _own.write(out, x, name)
        return
    if info.shape == into.shape and info.dtype == into.dtype:
        noted = seen(route, info.dtype_name, info.shape, call)
    _own.write(out, x, name)
    if noted is not None:
        taken(noted)


def _kept(x: Any) -> Any:
    """Note the copy by which ``adapt`` sees whether a function wrote to the copy of an argument."""
    info = TensorInfo.of_tensor(x)
    why = "kept, to see whether the function writes to its copy of an argument"
    route = Route("kernel", why, info.nbytes, "dlpack", "dlpack", info.device)
    noted = seen(route, info.dtype_name, info.shape)
    result = _own.compact_copy(x)
    taken(noted)
    return result


def _given_back(out: Any, x: Any, *args: Any) -> Any:
    info = TensorInfo.of_tensor(x)
    why = "the function wrote to its copy of an argument"
    route = Route("kernel", why, info.nbytes, "dlpack", "dlpack", info.device)
    noted = seen(route, info.dtype_name, info.shape)
    _own.copy_into(out, x, *args)
    taken(noted)


class _Own:
    """The functions that are replaced."""

    execute = staticmethod(execution.execute)
    maker = staticmethod(ingest._maker)
    write = staticmethod(copies._write)
    way_of = staticmethod(copies._way_of)
    compact_copy = staticmethod(kernel.compact_copy)
    copy_into = staticmethod(kernel.copy_into)


_own = _Own


def _places() -> list[tuple[ModuleType, str, Any, Any]]:
    """List (module, name, own, noting) of all that is replaced."""
    found: list[tuple[ModuleType, str, Any, Any]] = [
        (ingest, "_maker", _own.maker, _maker),
        (copies, "_write", _own.write, _write),
        (copies, "_way_of", _own.way_of, _way_of),
        (written, "compact_copy", _own.compact_copy, _kept),
        (written, "copy_into", _own.copy_into, _given_back),
    ]
    # Whoever carries out a plan; `execute` itself goes on with intermediate arrays.
    for module in [*sys.modules.values()]:
        name = getattr(module, "__name__", "")
        if not (isinstance(name, str) and name.startswith(_PACKAGE)) or module is execution:
            continue
        if vars(module).get("execute") in (_own.execute, _execute):
            found.append((module, "execute", _own.execute, _execute))
    return found


_PACKAGE = f"{__name__.partition('.')[0]}."
assert vars(crossing)["execute"] is _own.execute


def start() -> None:
    """Note routes from now on."""
    for module, name, _, noting in _places():
        setattr(module, name, noting)
    exports.start()
    RECORDS.refind(_Planned)
    forget()


def stop() -> None:
    """Put everything back, also in modules that were imported meanwhile."""
    for module, name, own, _ in _places():
        setattr(module, name, own)
    exports.stop()
    RECORDS.refind(TypeRecord)
    forget()
