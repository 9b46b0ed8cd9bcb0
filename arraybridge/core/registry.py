"""The libraries that arraybridge supports: by name, by module, and by array type.

A library is loaded when one of its arrays arrives or a conversion names it, never before.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import ref

if TYPE_CHECKING:
    from .library import Library


V = TypeVar("V")

#: Packages whose classes are made once and stay; array libraries' are added as they are known.
LASTING = {"arraybridge", "builtins", "numpy"}


class TypeCache(dict[type, V]):
    """A cache of ``find(cls)`` by class, whose entries die with their class.

    Classes of `LASTING` packages are plain keys: `lasting` holds only their results, because a
    plain dict is faster than a subclass of it. Other classes (each Mock has its own, for one) are
    referenced weakly, which costs one more call.
    """

    def __init__(self, find: Callable[[type], V]) -> None:
        super().__init__()
        self.find = find
        self.lasting: dict[type, V] = {}
        self._passing: dict[int, tuple[ref[type], V]] = {}
        self._cleared = 0

    def __missing__(self, cls: type) -> V:
        passing, key = self._passing, id(cls)
        entry = passing.get(key)
        if entry is not None and entry[0]() is cls:
            return entry[1]
        cleared, value = self._cleared, self.find(cls)
        if str(cls.__module__).partition(".")[0] in LASTING and len(self) < 1024:
            self[cls] = self.lasting[cls] = value
        else:
            passing[key] = ref(cls, lambda _: passing.pop(key, None)), value
        if cleared != self._cleared:  # while `find` ran: its result may be stale
            self.clear()
        return value

    def clear(self) -> None:
        """Forget all results, including those being computed."""
        self._cleared += 1
        super().clear()
        self.lasting.clear()
        self._passing.clear()


def remembered(known: dict[Any, V], key: object, value: V, most: int = 256) -> V:
    """Keep a value in a cache of at most `most`, and return it."""
    if len(known) >= most:
        known.clear()
    known[key] = value
    return value


class Entry:
    """A library of the table in ``arraybridge.libraries``, or of an entry point.

    `name` is that in ``convert(x, name)``, `install` the pip requirement or an entry point's
    distribution, and `packages` more top-level packages whose classes are its arrays, besides the
    one with its name. `computes` has the kinds of devices on which it computes for arrays without a
    library, and what to install for that. `declared`: by an entry point; see `core.entry_points`.
    """

    def __init__(
        self,
        name: str,
        install: str,
        packages: tuple[str, ...] = (),
        computes: Mapping[str, str] = MappingProxyType({}),
        declared: bool = False,
    ) -> None:
        self.name, self.install, self.packages = name, install, packages
        self.computes, self.declared = computes, declared


class TypeRecord(dict[Any, Callable[[Any], Any]]):
    """What is known about one array type, each item computed once.

    Its items are the functions that `arraybridge.core.table.front` calls, by the call as spelled.
    Arrays of the type belong to `library`, or to `lazy` if they are graphs. `table` has the entries
    of `arraybridge.conversion` by all keywords; `entries` those of `arraybridge.core.table` by the
    libraries and the normalised request. `frame` opens a data frame
    or column (``arraybridge.protocols.frames``), `namespace` is the array API namespace, and `wrap`
    makes an Array, if that is allowed. `view` makes a NumPy view, or fails. For `sort` see
    ``arraybridge.xp.asarray``.
    """

    __slots__ = (
        "entries", "frame", "lazy", "library", "namespace", "sort", "table", "view", "wrap",
    )  # fmt: skip

    def __init__(self, cls: type) -> None:
        super().__init__()
        found = _find(cls)
        lazy = found is not None and found.computing.map_blocks is not None
        self.lazy: Library | None = found if lazy else None
        self.library: Library | None = None if self.lazy is not None else found
        self.table: dict[Any, Any] = {}
        self.entries: dict[tuple[Any, ...], Any] = {}
        self.frame: Callable[[Any, bool], Any] | None = None
        self.view: Callable[[Any], Any] | None = None
        self.namespace: Any = None
        self.wrap: tuple[Callable[[Any], Any], Callable[[Any], bool]] | None = None
        self.sort = -1


#: The record of each array type that has arrived, and of other types looked up.
RECORDS: TypeCache[TypeRecord] = TypeCache(TypeRecord)
KNOWN = RECORDS.lasting  # the first look-up of every call

_entries: dict[str, Entry] = {}
_packages: dict[str, str] = {}  # top-level package -> the library of its classes
_frames: frozenset[str] = frozenset()  # packages
_load: Callable[[Entry], Library]
_load_frames: Callable[[str], Callable[[Any], Any]]
_declared: Callable[[], Iterable[Entry]] | None = None  # None once called
_loaded: dict[str, Library] = {}  # the table's libraries in use
_registered: dict[str, Library] = {}  # the users' libraries


def provide(
    entries: Iterable[Entry],
    load: Callable[[Entry], Library],
    declared: Callable[[], Iterable[Entry]],
    frames: Iterable[str],
    load_frames: Callable[[str], Callable[[Any], Any]],
) -> None:
    """Set the table of libraries, and the packages with data frames.

    `load` imports a library; ImportError if it is not installed. `declared` returns more entries at
    the first request for an unknown library; two threads may call it at once, with the same effect.
    `load_frames` returns the function of a package that opens a frame: it returns what a frame
    converts as and its library, or None for another object.
    """
    global _load, _load_frames, _declared, _frames
    _load, _load_frames, _declared, _frames = load, load_frames, declared, frozenset(frames)
    _add(entries)


def _add(entries: Iterable[Entry]) -> None:
    for entry in entries:
        _entries[entry.name] = entry
        _packages.update(dict.fromkeys((entry.name, *entry.packages), entry.name))
    LASTING.update(_packages)


_discovering = threading.RLock()


def _discover() -> None:
    global _declared
    with _discovering:  # else a second thread would take the first one's entries for built-in ones
        if _declared is not None:
            _add(_declared())
            _declared = None


def frames_of(cls: type) -> Callable[[Any], Any] | None:
    """Return what opens the frames of a class, found by its package or a base's, or None."""
    for base in cls.__mro__[:-1]:
        package = package_of(base)
        if package in _frames:
            return _load_frames(package)
    return None


def registered() -> dict[str, Library]:
    """Return the libraries that users registered, by name."""
    return _registered


def imported_libraries() -> list[Library]:
    """List the libraries that the program has imported or registered."""
    imported = [
        own_library(name)
        for name, entry in [*_entries.items()]
        if name in (_loaded if entry.declared else sys.modules) and name not in _registered
    ]
    return [*_registered.values(), *imported]


def forget() -> None:
    """Forget the records of array types, after a library or a kernel was added or removed."""
    RECORDS.clear()
    for each in _forgetting:
        each()


def forgetting(function: Callable[[], None]) -> None:
    """Add a function that `forget` calls, for caches elsewhere."""
    _forgetting.append(function)


_forgetting: list[Callable[[], None]] = []


def library_names(declared: bool = True) -> list[str]:
    """List the names that ``convert`` accepts, sorted, with or without entry points'."""
    if declared:
        _discover()
    own = {name for name, entry in _entries.items() if declared or not entry.declared}
    return sorted(own | _registered.keys())


def all_entries() -> Mapping[str, Entry]:
    """Return the libraries of the table and of entry points, by name."""
    _discover()
    return _entries


def is_library(name: str) -> bool:
    """Whether ``convert`` accepts a name."""
    if name not in _entries and name not in _registered:
        _discover()
    return name in _entries or name in _registered


def is_built_in(package: str) -> bool:
    """Whether arraybridge itself converts the classes of a package."""
    return package in _frames or package in _packages


def packages() -> frozenset[str]:
    """Return the top-level packages of the libraries of the table."""
    return frozenset(_packages)


def computing_on(device_kind: str) -> dict[str, str]:
    """Return the libraries that compute on a kind of device, in order, with their requirements."""
    return {
        name: entry.computes[device_kind]
        for name, entry in _entries.items()
        if device_kind in entry.computes
    }


def library_named(to: object) -> Library:
    """Return the library of a name or module; ValueError if unknown, ImportError if missing."""
    name = to if isinstance(to, str) else known_name(to)
    return _registered.get(name) or _loaded.get(name) or own_library(known_name(name))


def own_library(name: str) -> Library:
    """Return the library of the table or an entry point, even if a user replaced it."""
    if name not in _loaded:
        entry = _entries[name]
        try:
            _loaded[name] = _load(entry)
        except ImportError as error:
            if entry.declared or (error.name and error.name.startswith("arraybridge")):
                raise
            raise ImportError(
                f"{name} is not installed or does not load ({error}): pip install "
                f"'{entry.install}'",
                name=name,
            ) from error
    return _loaded[name]


def known_name(to: object) -> str:
    """Return the name of a library or module, not loaded; ValueError or TypeError if it is none."""
    if not isinstance(to, (str, ModuleType)):
        raise TypeError(
            "the array comes first, and then the name of a library or its module: "
            f"convert(x, 'torch'); got a {type(to).__name__} as the library"
        )
    name = to if isinstance(to, str) else to.__name__
    if not isinstance(to, str) and name not in _registered:
        root = name.removeprefix("array_api_compat.").partition(".")[0]
        name = _library_of(root) or root
    if is_library(name):
        return name
    from ..suggest import closest

    close = closest(name, library_names())
    hint = f": did you mean {close!r}?" if close else ";"
    if name in _frames:
        hint = ": pass its frames to convert or explain; to make one, convert to 'numpy' first;"
    raise ValueError(f"no library {name!r}{hint} arraybridge knows {', '.join(library_names())}")


def _library_of(package: str) -> str | None:
    """Return the name of the library that a package's classes belong to, or None."""
    if package not in _packages and package not in _NO_LIBRARIES and package not in _frames:
        _discover()
    return _packages.get(package)


# Reading all entry points takes as long as thousands of conversions: not for these packages.
_NO_LIBRARIES = sys.stdlib_module_names | {"", "__main__"}


def package_of(cls: type) -> str:
    """Return the top-level package that defines a class; "" if unknown."""
    module = getattr(cls, "__module__", None)  # a class body or metaclass may set anything
    return module.partition(".")[0] if isinstance(module, str) else ""


def library_of_package(cls: type) -> Library | None:
    """Return the library whose package defines a class, loading it if necessary, or None."""
    package = package_of(cls)
    name = _library_of(package)
    if name is None:
        return None
    try:
        return library_named(name)
    except ImportError:
        if package == name and not _entries[name].declared:
            raise
        # A broken entry point, or a namespace package without a part (cuda without cuda.core).
        return None


def library_of_type(array_type: type) -> Library | None:
    """Return the library of an array type, or None."""
    return RECORDS[array_type].library


def _find(array_type: type) -> Library | None:
    if hasattr(array_type, "__arraybridge__"):  # an Array: its native array has a library
        return None
    for library in (_registered | _loaded | _registered).values():  # users' first
        if library.owns(array_type):
            return library
    for base in array_type.__mro__:  # even if another thread is loading it
        found = library_of_package(base)
        if found is not None and found.owns(array_type):
            return found
    return None
