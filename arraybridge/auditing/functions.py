"""Watching the libraries' own functions: ``numpy.asarray``, ``Tensor.cpu``, ...

Each library lists its own (`Library.watched`). While a watch is on, their modules and classes have
objects in their place that equal them and call them. Libraries that are imported meanwhile are
watched once their import is complete. The addresses show afterwards whether a call copied.

Tracebacks and warnings contain no frame of this module, so that a program prints the same.
"""

from __future__ import annotations

import builtins
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from types import CodeType, FrameType, FunctionType, MethodType, TracebackType
from typing import Any, cast

from ..array.array_types import is_array
from ..conversion import inspect
from ..copies import _overlap
from ..core.records import Route, TensorInfo
from ..core.registry import packages, watched_functions
from ..core.table import Event
from ..explaining import explain
from .audits import IN_ITS_PLACE, OURS, _observe, count_unchecked, exclusive, package_of, thread

_MANY = 1000  # the most items of a sequence to inspect


def _unseen(function: Any) -> Any:
    """Mark a function as part of the import system, whose frames warnings skip."""
    name = "<frozen importlib._bootstrap>"
    function.__code__ = function.__code__.replace(co_filename=name)
    return function


def _without(trace: TracebackType | None, *called: Callable[..., Any]) -> TracebackType | None:
    """Return a traceback without the frames of these functions at its start."""
    for function in called:
        if trace is not None and trace.tb_frame.f_code is getattr(function, "__code__", None):
            trace = trace.tb_next
    return trace


def _call(own: Any, args: Any, keywords: Any) -> Any:
    return own(*args, **keywords)


_calls: dict[tuple[CodeType, int], CodeType] = {}


def _from(frame: FrameType) -> Callable[..., Any]:
    """Return `_call` as if it were a line of its caller: warnings of C code name the last frame."""
    key = frame.f_code, frame.f_lineno or 1
    code = _calls.get(key)
    if code is None:
        if len(_calls) >= _MANY:
            _calls.clear()
        code = _calls[key] = _call.__code__.replace(
            co_name=IN_ITS_PLACE, co_filename=key[0].co_filename, co_firstlineno=key[1] - 1
        )
    return FunctionType(code, frame.f_globals)


class _Watched:
    """A stand-in for a function, with the same equality, hash and pickle.

    So tables of functions (Numba's compiler, ``__torch_function__``) find it.
    """

    def __init__(self, own: Any, path: str) -> None:
        self.__wrapped__, self.__doc__ = own, own.__doc__
        self.__module__ = getattr(own, "__module__", "")  # a method of C code has none
        self._path = path
        self._inner = path.endswith("__")  # called by libraries on behalf of a program

    @_unseen
    def __call__(self, *args: Any, **keywords: Any) -> Any:
        own, frame = self.__wrapped__, sys._getframe().f_back
        c_code = frame is not None and not isinstance(own, FunctionType)
        run = _from(frame) if c_code else _call  # type: ignore[arg-type]
        watched = _on and not thread.watching and self._asked(frame)
        call, before = self._path, thread.count
        thread.watching = thread.watching or watched
        try:
            result = run(own, args, keywords)
        except BaseException as error:
            error.__traceback__ = _without(error.__traceback__, _Watched.__call__, run)
            raise
        finally:
            thread.watching = thread.watching and not watched
        if watched and thread.count == before:  # else a function that it called was logged
            given = args[0] if args else next(iter(keywords.values()), None)
            _compare(call, given, result)
        return result

    def _asked(self, frame: FrameType | None) -> bool:
        """Whether the program is the caller, rather than a library."""
        if frame is None:  # called by Python itself, at its end
            return True
        package = package_of(frame)
        return package != OURS and (self._inner or package not in packages())

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None or not hasattr(type(self.__wrapped__), "__get__"):
            return self  # C code that does not bind as a method
        return MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def __eq__(self, other: object) -> bool:
        return bool(self.__wrapped__ == getattr(other, "__wrapped__", other))

    def __hash__(self) -> int:
        return hash(self.__wrapped__)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)

    def __reduce__(self) -> tuple[Any, ...]:
        return _found, (self._path,)


def _found(path: str) -> Any:
    package, _, name = path.partition(".")
    return operator.attrgetter(name)(import_module(package))


def _compare(call: str, given: Any, result: Any) -> None:
    """Log what a function did with one or more arrays."""
    try:
        pairs = [*_pairs(given, result)]
    except Exception:  # the library is only partly imported
        count_unchecked()
        return
    for one, made in pairs:
        try:
            info = inspect(made)
            sources = [inspect(x) for x in (one if isinstance(one, list | tuple) else [one])]
            route = _route(call, one, sources, info)
        except Exception:  # no memory, as in tracing
            count_unchecked()
        else:
            _observe(Event(route, info, call))


def _pairs(given: Any, result: Any) -> Iterator[tuple[Any, Any]]:
    """Yield pairs of an array, or several that were combined into one, and the result."""
    if not isinstance(given, list | tuple):
        if is_array(given) and is_array(result):
            yield given, result
    elif given and len(given) <= _MANY and all(map(is_array, given)):
        if is_array(result):
            yield given, result
        elif isinstance(result, list | tuple) and len(result) == len(given):
            for one, made in zip(given, result, strict=True):
                yield from _pairs(one, made)


def _route(call: str, given: Any, sources: Sequence[TensorInfo], info: TensorInfo) -> Route:
    source = sources[0]
    kind: Any = "kernel"
    if len(sources) > 1:
        why = f"{len(sources):,} arrays become one"
    elif source.device != info.device and not (source.device.host and info.device.host):
        kind, why = "transfer", f"from {source.device} to {info.device}"
    elif not info.size or _shared(source, info):
        kind, why = "view", f"{call} takes it as it is"
    elif source.dtype != info.dtype:
        why = f"{source.dtype_name} becomes {info.dtype_name}"
    elif source.library == info.library:
        why = f"the layout is {source.layout}"
        if source.layout == info.layout:
            why = f"{call} copies whatever it is given"
    else:
        route = explain(given, cast(Any, info.library))
        why = route.why
        if route.kind == "view":
            why = f"arraybridge.convert(x, {info.library!r}) would be a view"
    nbytes = 0 if kind == "view" else info.nbytes
    by = None if kind == "view" else call
    return Route(kind, why, nbytes, source.library, info.library, info.device, by)


def _shared(a: TensorInfo, b: TensorInfo) -> bool:
    if not (a.data and b.data):
        raise ValueError("no memory")
    return _overlap(a, b)  # type: ignore[arg-type] # a TensorInfo has all that it reads


_on = False
_own_import = builtins.__import__
_checked: dict[str, int] = {}  # package -> the number of modules when it was checked
_replaced: dict[str, tuple[Any, str, Any, _Watched]] = {}  # owner, name, own or None if inherited


def watch(on: bool) -> None:
    """Watch the functions of all libraries, or restore them; the caller must hold the lock.

    Functions that the program itself has replaced meanwhile stay.
    """
    global _on, _own_import
    if on is _on:
        return
    _on = on
    if on:
        _own_import, builtins.__import__ = builtins.__import__, _import
        for package in {path.partition(".")[0] for path in watched_functions()}:
            _watch_package(package)
        return
    if builtins.__import__ is _import:
        builtins.__import__ = _own_import
    _calls.clear()
    _checked.clear()
    while _replaced:
        owner, name, own, stand_in = _replaced.popitem()[1]
        if _names(owner).get(name) is stand_in:
            if own is None:
                delattr(owner, name)
            else:
                setattr(owner, name, own)


@_unseen
def _import(
    name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
) -> Any:
    """Import as Python does, and watch the package if its import is complete."""
    try:
        found = _own_import(name, globals, locals, fromlist, level)
    except BaseException as error:
        error.__traceback__ = _without(error.__traceback__, _import)
        raise
    package = name.partition(".")[0]
    if _on and not level and _checked.get(package) != len(sys.modules):
        _watch_package(package)
    return found


def _watch_package(package: str) -> None:
    """Watch the functions of a package, in modules whose import is complete."""
    if _is_imported_now(sys.modules.get(package)):
        return
    with exclusive():
        _checked[package] = len(sys.modules)
        for path in watched_functions() if _on else ():
            if path.partition(".")[0] != package:
                continue
            owner, name = _owner(path), path.rpartition(".")[2]
            own = kept = _names(owner).get(name)
            if isinstance(owner, type):
                own = getattr(owner, name, None)
            if callable(own) and not isinstance(own, _Watched):
                stand_in = _Watched(own, path)
                with suppress(TypeError, AttributeError):  # a class of C code
                    setattr(owner, name, stand_in)
                    _replaced[path] = owner, name, kept, stand_in


def _owner(path: str) -> Any:
    """Return the module or class that has a function; None if it is not imported yet."""
    owner: Any = None
    parts = path.split(".")[:-1]
    for number, part in enumerate(parts, 1):  # a module is not yet an attribute of its package
        owner = sys.modules.get(".".join(parts[:number])) or _names(owner).get(part)
        if owner is None or _is_imported_now(owner):
            return None
    return owner


def _is_imported_now(module: Any) -> bool:
    return getattr(_names(module).get("__spec__"), "_initializing", False) is True


def _names(owner: Any) -> Any:
    """Return the attributes of a module or class, without triggering a lazy module."""
    try:
        return object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return {}
