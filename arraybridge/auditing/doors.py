"""The libraries' own functions, watched: ``numpy.asarray``, ``Tensor.cpu``, ...

Each library names its own (`Library.watched`). While a watch is on they are replaced, where others
look them up, by objects that equal them and call them; libraries that are imported meanwhile, too.
Whether a call copied is seen by the addresses, afterwards.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import FrameType, MethodType, ModuleType
from typing import Any

from ..array.kinds import is_array
from ..dispatch.records import Route, TensorInfo
from ..dispatch.registry import library_named, library_names, packages
from ..exchange import inspect
from ..explaining import explain
from ..layout import in_bytes, span
from .callers import package_of
from .watching import here, put_back, seen, taken, untold

__all__ = ["start", "stop"]

_OURS = __name__.partition(".")[0]
_MANY = 1000  # items of a sequence that is looked at


class _Watched:
    """A function that stands in for a door: it equals it, and is pickled as it.

    Code that looks functions up in a table (Numba's compiler, ``__torch_function__``) finds it.
    """

    def __init__(self, own: Any, path: str) -> None:
        self.__wrapped__, self.__doc__ = own, own.__doc__
        self.__module__ = getattr(own, "__module__", "")  # a method of C code has none
        self._path = path
        self._inner = path.endswith("__")  # what libraries call for a program

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        own = self.__wrapped__
        if here.exporting or here.watching or not self._asked(sys._getframe().f_back):
            return own(*args, **keywords)
        call, before = self._path, here.count
        here.watching = True
        try:
            result = own(*args, **keywords)
        finally:
            here.watching = False
        if here.count == before:  # else what it called was noted
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
        return self if instance is None else MethodType(self, instance)

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
    """Note what a door did with an array, or several."""
    if isinstance(given, list | tuple):
        if not given or len(given) > _MANY or not all(map(is_array, given)):
            return  # numbers: an array is made of them
        if not is_array(result):
            if isinstance(result, list | tuple) and len(result) == len(given):
                for one, made in zip(given, result, strict=True):
                    _compare(call, one, made)
            return
    elif not is_array(given) or not is_array(result):
        return
    try:
        info = inspect(result)
        sources = [inspect(x) for x in (given if isinstance(given, list | tuple) else [given])]
        route = _route(call, given, sources, info)
    except Exception:  # no memory, as while something is traced
        untold()
        return
    taken(seen(route, info.dtype_name, info.shape))


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
        route = explain(given, info.library)
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


_replaced: list[tuple[Any, str, Any]] = []  # owner, name, its own or None where it is inherited


def _watch(package: str) -> None:
    """Watch the doors of a library that has been imported."""
    try:
        paths = library_named(package).watched
    except ImportError:  # it is there, and arraybridge needs a newer one
        return
    for path in paths:
        place, _, name = path.rpartition(".")
        try:
            owner = _found(place) if "." in place else sys.modules[place]
            own = getattr(owner, name)
        except AttributeError:  # another version of the library
            continue
        if not isinstance(own, _Watched):
            kept, stand_in = vars(owner).get(name), _Watched(own, path)
            with suppress(TypeError):  # a class of C code
                setattr(owner, name, stand_in)
                _replaced.append((owner, name, kept))


class _Finder:
    """A finder of modules that finds none: it has libraries watched once others import them."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in library_names():
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if find is None else find(name, path, target)
            if spec is not None:
                _after_execution(spec, name)
                return spec
        return None


def _after_execution(spec: ModuleSpec, name: str) -> None:
    loader: Any = spec.loader
    execute: Callable[[ModuleType], None] | None = getattr(loader, "exec_module", None)
    if execute is None:
        return

    def exec_module(module: ModuleType) -> None:
        del loader.exec_module
        execute(module)
        if _finder in sys.meta_path:
            _watch(name)

    with suppress(AttributeError):  # a loader without attributes of its own
        loader.exec_module = exec_module


_finder = _Finder()


def start() -> None:
    """Watch the doors of all libraries from now on."""
    sys.meta_path.insert(0, _finder)  # type: ignore[arg-type]
    for name in library_names():
        if name in sys.modules:
            _watch(name)


def stop() -> None:
    """Put everything back."""
    with suppress(ValueError):
        sys.meta_path.remove(_finder)  # type: ignore[arg-type]
    put_back(_replaced)
