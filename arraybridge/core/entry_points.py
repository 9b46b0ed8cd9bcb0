"""Libraries that other distributions declare by entry points, ``arraybridge.libraries``.

``mylib = "mylib.bridge:LIBRARY"`` declares the `Library` that ``convert`` calls ``"mylib"``;
``mylib_core = "mylib"`` declares that classes of the package ``mylib_core`` are its arrays too. The
metadata is read once, at the first request for a library that is not in the table. The object is
imported when an array of the package arrives or the library is named.
"""

from __future__ import annotations

import warnings
from importlib.metadata import EntryPoint, entry_points

from . import registry
from .library import Library
from .registration import check, reserved

GROUP = "arraybridge.libraries"

_points: dict[str, EntryPoint] = {}
_broken: dict[str, str] = {}  # why a library did not load


def provide_declared() -> list[str]:
    """Add the libraries of entry points to the table; return why others were ignored.

    Entry points with names of arraybridge's own libraries or their packages are ignored. If two
    distributions use one name, the first in alphabetical order wins.
    """
    try:
        points = sorted(entry_points(group=GROUP), key=lambda point: (owner(point), point.name))
    except Exception as error:  # a distribution's metadata cannot be read
        return [f"the entry points of {GROUP} cannot be read: {type(error).__name__}: {error}"]
    problems, used = [], dict[str, EntryPoint]()
    for point in points:
        own = reserved(point.name) or registry.is_built_in(point.name)
        whose = "arraybridge" if own else owner(used.setdefault(point.name, point))
        if own or used[point.name] is not point:
            problems.append(f"{described(point)} is ignored: {whose} has a library of that name")
    packages: dict[str, list[str]] = {name: [] for name, each in used.items() if ":" in each.value}
    for name in [name for name in used if name not in packages]:
        library = used[name].value
        if library in packages and owner(used[library]) == owner(used[name]):
            packages[library].append(name)
        else:
            problems.append(
                f"{described(used[name])} is ignored: expected an object, 'module:LIBRARY', or the "
                "name of another library of the same distribution"
            )
    _points.update((name, used[name]) for name in packages)
    registry.provide(
        [
            registry.Entry(name, owner(used[name]), (*more,), distribution=owner(used[name]))
            for name, more in packages.items()
        ],
        _load,
    )
    return problems


def declared() -> dict[str, EntryPoint]:
    """Return the entry points of libraries, by their names."""
    registry.library_names()
    return _points


def owner(point: EntryPoint) -> str:
    """Return the name of the distribution that has an entry point."""
    return str(point.dist and point.dist.name)


def described(point: EntryPoint) -> str:
    """Name an entry point and its distribution."""
    version = point.dist and point.dist.version
    return f"the entry point '{point.name} = {point.value}' of {owner(point)} {version} ({GROUP})"


def _load(name: str) -> Library:
    """Import a library; ImportError if that fails, with a warning the first time."""
    point = _points[name]
    if name not in _broken:
        try:
            library: Library = point.load()
            check(library)
            if library.name != name:
                raise ValueError(f"the library's name is {library.name!r}")
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            _broken[name] = f"{described(point)} does not load ({reason}): update or uninstall it"
            warnings.warn(_broken[name], RuntimeWarning, stacklevel=2)
        else:
            return library
    raise ImportError(_broken[name], name=name)
