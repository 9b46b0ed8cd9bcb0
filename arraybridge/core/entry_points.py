"""Libraries that other distributions declare by entry points, ``arraybridge.libraries``.

``mylib = "mylib.bridge:LIBRARY"`` declares the `Library` that ``convert`` calls ``"mylib"``. The
metadata is read once, at the first request for a library that is not in the table. The object is
imported when an array of the package ``mylib`` arrives or the library is named.
"""

import warnings
from importlib.metadata import EntryPoint, entry_points

from . import registry
from .library import Library
from .registration import RESERVED, check

GROUP = "arraybridge.libraries"

_points: dict[str, EntryPoint] = {}
_broken: dict[str, str] = {}  # why a library did not load


def declared() -> list[registry.Entry]:
    """Return the libraries of entry points, with a warning for each that is ignored.

    Those have names of arraybridge's libraries or packages, or of an earlier distribution.
    """
    for point in sorted(entry_points(group=GROUP), key=lambda x: (owner(x), x.name)):
        own = point.name in RESERVED or registry.is_built_in(point.name)
        if own or _points.setdefault(point.name, point) != point:
            warnings.warn(
                f"{_described(point)} is ignored: there is another library of that name",
                RuntimeWarning,
                stacklevel=2,
            )
    return [registry.Entry(name, owner(point), declared=True) for name, point in _points.items()]


def load(name: str) -> Library:
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
            _broken[name] = f"{_described(point)} does not load ({reason}): update or uninstall it"
            warnings.warn(_broken[name], RuntimeWarning, stacklevel=2)
        else:
            return library
    raise ImportError(_broken[name], name=name)


def owner(point: EntryPoint) -> str:
    """Return the name of the distribution that has an entry point."""
    return str(point.dist and point.dist.name)


def _described(point: EntryPoint) -> str:
    version = point.dist and point.dist.version
    return f"the entry point '{point.name} = {point.value}' of {owner(point)} {version} ({GROUP})"
