"""The libraries' own functions, watched: ``numpy.asarray``, ``Tensor.cpu``, ...

Each library names its own (`Library.watched`). While a watch is on they are replaced, where others
look them up, by objects that equal them and call them; libraries that are imported meanwhile, too,
when their import is complete. Nothing is imported for that, as another import is going on then.
Whether a call copied is seen by the addresses, afterwards.

A program prints what it would without: tracebacks and warnings have no frame of this module.
"""

from __future__ import annotations

import operator
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, cast

from ..array.kinds import is_array
from ..dispatch.records import Route, TensorInfo
from ..dispatch.registry import packages, watched_functions
from ..exchange import inspect
from ..explaining import explain
from ..layout import in_bytes, span
from .callers import IN_ITS_PLACE, beyond, package_of
from .watching import here, seen, taken, untold

__all__ = ["start", "stop"]

_OURS = __name__.partition(".")[0]
_MANY = 1000  # items of a sequence that is looked at
_MACHINERY = "<frozen importlib._bootstrap>"


def _unseen(function: Any) -> Any:
    """Mark a function as part of the import system, whose frames warnings pass over.

    Tracebacks of an import do so, too.
    """
    function.__code__ = function.__code__.replace(co_filename=_MACHINERY)
    return function


def _call(own: Any, args: Any, keywords: Any) -> Any:
    return own(*args, **keywords)


_calls: dict[tuple[CodeType, int], CodeType] = {}


def _from(frame: FrameType) -> Callable[..., Any]:
    """Return `_call` as if it were a line of a caller: warnings of C code name the last frame."""
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
    """A function that stands in for a door: it equals it, and is pickled as it.

    Code that looks functions up in a table (Numba's compiler, ``__torch_function__``) finds it.
    """

    def __init__(self, own: Any, path: str) -> None:
        self.__wrapped__, self.__doc__ = own, own.__doc__
        self.__module__ = getattr(own, "__module__", "")  # a method of C code has none
        self._path = path
        self._inner = path.endswith("__")  # what libraries call for a program

    @_unseen
    def __call__(self, *args: Any, **keywords: Any) -> Any:
        own, frame = self.__wrapped__, sys._getframe().f_back
        c_code = frame is not None and not isinstance(own, FunctionType)
        run = _from(frame) if c_code else _call  # type: ignore[arg-type]
        watched = _on and not (here.exporting or here.watching) and self._asked(frame)
        call, before = self._path, here.count
        here.watching = here.watching or watched
        try:
            result = run(own, args, keywords)
        except BaseException as error:
            error.__traceback__ = beyond(error.__traceback__, _Watched.__call__, run)
            raise
        finally:
            here.watching = here.watching and not watched
        if watched and here.count == before:  # else what it called was noted
            given = args[0] if args else next(iter(keywords.values()), None)
            _compare(call, given, result)
        return result

    def _asked(self, frame: FrameType | None) -> bool:
        """Whether a program calls, and not a library on its own account."""
        if frame is None:  # Python itself, at its end
            return True
        package = package_of(frame)
        return package != _OURS and (self._inner or package not in packages())

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None or not hasattr(type(self.__wrapped__), "__get__"):
            return self  # of C code: no method of the class that has it as an attribute
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
    """Note what a function did with an array, or several."""
    try:
        pairs = [*_pairs(given, result)]
    except Exception:  # of a library that is just being imported
        untold()
        return
    for one, made in pairs:
        try:
            info = inspect(made)
            sources = [inspect(x) for x in (one if isinstance(one, list | tuple) else [one])]
            route = _route(call, one, sources, info)
        except Exception:  # no memory, as while something is traced
            untold()
        else:
            taken(seen(route, info.dtype_name, info.shape))


def _pairs(given: Any, result: Any) -> Iterator[tuple[Any, Any]]:
    """Yield an array, or some of which one was made, and what was made."""
    if not isinstance(given, list | tuple):
        if is_array(given) and is_array(result):
            yield given, result
    elif given and len(given) <= _MANY and all(map(is_array, given)):  # else they are numbers
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
    elif _overlap(source, info) or not info.size:
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


def _overlap(a: TensorInfo, b: TensorInfo) -> bool:
    """Whether the byte ranges of two arrays overlap."""
    if not (a.size and b.size):
        return False
    if not (a.data and b.data):
        raise ValueError("no memory")
    low, high = span(a.shape, in_bytes(a.strides, a.itemsize), a.itemsize)
    least, most = span(b.shape, in_bytes(b.strides, b.itemsize), b.itemsize)
    return a.pointer + low < b.pointer + most and b.pointer + least < a.pointer + high


_lock = threading.RLock()
_on = False
_replaced: list[tuple[Any, str, Any, _Watched]] = []  # owner, name, its own or None if inherited
_late: set[str] = set()  # packages that another thread was importing at the start


def _watch(package: str, executed: str = "") -> None:
    """Watch the functions of a package, as far as they are there and wholly imported.

    Parameters
    ----------
    package : str
    executed : str
        The module of it whose import is just being completed.
    """
    with _lock:
        for path in watched_functions() if _on else ():
            if path.partition(".")[0] == package:
                owner, name = _owner(path, executed), path.rpartition(".")[2]
                own = _names(owner).get(name)
                kept, own = own, getattr(owner, name, None) if isinstance(owner, type) else own
                if callable(own) and not isinstance(own, _Watched):
                    stand_in = _Watched(own, path)
                    with suppress(TypeError, AttributeError):  # a class of C code
                        setattr(owner, name, stand_in)
                        _replaced.append((owner, name, kept, stand_in))


def _owner(path: str, executed: str) -> Any:
    """Return the module or class that has a function; None where it is not there, or not yet."""
    owner: Any = None
    parts = path.split(".")[:-1]
    for number, part in enumerate(parts, 1):  # a module is not yet an attribute of its package
        owner = sys.modules.get(".".join(parts[:number])) or _names(owner).get(part)
        if owner is None or (_is_imported_now(owner) and owner.__name__ != executed):
            return None
    return owner


def _names(owner: Any) -> Any:
    """Return what a module or class has, without asking a lazy module for what it has not."""
    try:
        return object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return {}


def _is_imported_now(module: Any) -> bool:
    return getattr(_names(module).get("__spec__"), "_initializing", False) is True


class _Finder:
    """A finder of modules that finds none: it has libraries watched once others import them."""

    @_unseen
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        for package in [*_late]:
            if not _is_imported_now(sys.modules.get(package)):
                _late.discard(package)
                _watch(package)
        if not any(each.startswith(f"{name}.") for each in watched_functions()):
            return None
        if sys._getframe(2).f_globals.get("__name__") != "importlib._bootstrap":
            return None  # a program asks whether there is such a module
        finders = [*sys.meta_path]
        for finder in finders[finders.index(self) + 1 :] if self in finders else ():
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if find is None else find(name, path, target)
            if spec is not None:
                _after_execution(spec, name)
                return spec
        return None


def _after_execution(spec: ModuleSpec, name: str) -> None:
    """Have a module watched when its loader has executed it."""
    loader: Any = spec.loader
    execute: Callable[[ModuleType], None] | None = getattr(loader, "exec_module", None)
    if execute is None or isinstance(loader, type):  # which serves other modules
        return

    @_unseen
    def exec_module(module: ModuleType) -> None:
        vars(loader).pop("exec_module", None)
        execute(module)
        _watch(name.partition(".")[0], name)

    with suppress(AttributeError):  # a loader without attributes of its own
        loader.exec_module = exec_module


_finder = _Finder()


def start() -> None:
    """Watch the functions of all libraries from now on."""
    global _on
    with _lock:
        _on = True
        sys.meta_path.insert(0, _finder)  # type: ignore[arg-type]
        for package in {path.partition(".")[0] for path in watched_functions()}:
            if _is_imported_now(sys.modules.get(package)):
                _late.add(package)
            _watch(package)


def stop() -> None:
    """Put everything back, save what the program itself has replaced meanwhile."""
    global _on
    with _lock:
        _on = False
        with suppress(ValueError):
            sys.meta_path.remove(_finder)  # type: ignore[arg-type]
        _late.clear()
        _calls.clear()
        while _replaced:
            owner, name, own, stand_in = _replaced.pop()
            if _names(owner).get(name) is stand_in:
                if own is None:
                    delattr(owner, name)
                else:
                    setattr(owner, name, own)


def _after_fork_in_child() -> None:
    """Make the lock anew: another thread of the parent may have held it."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
