"""Which libraries are installed, in which versions, and what they accept.

To find out what a library accepts, it is imported in a separate process; nothing else imports one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec
from typing import Any

import arraybridge as ab

from ..core.entry_points import declared, owner
from ..core.registry import library_named
from ..libraries import LIBRARIES
from . import screen
from .arrays import DTYPES
from .child import apart, workers

#: Library -> the pip requirement.
INSTALL = {entry.name: entry.install for entry in LIBRARIES}
PACKAGES = {
    "numba": "numba_cuda",
    "pillow": "PIL",
    "cuda_core": "cuda.core",
    "pyarrow.Array": "pyarrow",
}
GRAPHS = ("dask",)  # no arrays in memory, which the commands need


@cache
def _owners() -> Mapping[str, list[str]]:
    try:
        return packages_distributions()
    except Exception:  # unreadable metadata of any distribution
        return {}


def package(name: str) -> str:
    """The package that a library is imported from."""
    return PACKAGES.get(name, name)


def present(name: str) -> bool:
    """Whether a library is installed."""
    try:
        return name in declared() or find_spec(package(name)) is not None
    except ModuleNotFoundError:  # the parent package is missing too
        return False


def version_of(package: str) -> str:
    """The version of the distribution that contains a package, from its metadata."""
    owners = _owners().get(package.partition(".")[0], ())
    own = package.replace(".", "-")  # one of several in a namespace package
    return version(own if own in owners else owners[0]) if owners else "?"


def asked(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Import libraries and return the JSON record of each, by name. JAX runs with x64 off."""
    with screen.progress(len(names), "importing libraries") as advance, workers(2) as pool:

        def ask(name: str) -> dict[str, Any]:
            found = _asked(name)
            advance(name)
            return found

        return dict(zip(names, pool.map(ask, names), strict=True))


def _asked(name: str) -> dict[str, Any]:
    found = unasked(name)
    try:
        return found | next(apart(1.0, record, name)) if present(name) else found
    except ChildProcessError as error:
        return found | {"state": f"does not work: {error}"}


def unasked(name: str) -> dict[str, Any]:
    """Return what is known about a library without importing it."""
    if (point := declared().get(name)) is not None and point.dist is not None:
        found = {"state": "installed", "version": point.dist.version, "distribution": owner(point)}
        return found | {"install": f"pip install '{owner(point)}'"}
    install = f"pip install '{INSTALL[name]}'"
    if not present(name):
        return {"state": "not installed", "version": None, "install": install}
    return {"state": "installed", "version": version_of(package(name)), "install": install}


def record(name: str) -> Iterator[dict[str, Any]]:
    """Yield the devices of a library and what it accepts; this imports it."""
    accepts = library_named(name).accepts
    kinds = [ab.Device(kind).type.name.lower() for kind in sorted(accepts.devices)]
    devices = kinds if len(kinds) < 4 else ["any device"]
    if "." not in name and find_spec(f"arraybridge.xp.{name}"):
        xp = import_module(f"arraybridge.xp.{name}")  # lists the devices of this machine
        devices = list(map(str, xp.__array_namespace_info__().devices()))
    fields = accepts._asdict() | {"devices": kinds}
    fields |= {key: sorted(x) for key, x in fields.items() if isinstance(x, frozenset)}
    yield {"state": "ready", "devices": devices, "accepts": fields}


def described(name: str, of: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the table rows for a library."""
    if of["state"] != "ready":
        yield name, f"{of['state']}: {of['install']}"
        return
    yield name, f"{of['version']} on {', '.join(of['devices']) or 'no device here'}"
    if name in GRAPHS:
        yield "  blocks", "converted when computed, to libraries with an array API namespace"
        return
    accepts = of["accepts"]
    yield "  views", "none: it copies every array" if accepts["copies"] else _rules(accepts)
    yield "  read-only memory", "stays read-only" if accepts["readonly"] else "copied"
    missing = [name for name in DTYPES if name not in accepts["dtypes"]]
    yield "  dtypes", f"all but {', '.join(missing)}" if missing else "all"
    if accepts["tested"] != of["version"].partition("+")[0]:
        yield "  measured on", accepts["tested"]


def _rules(accepts: dict[str, Any]) -> str:
    least, most = accepts["ndim"]
    rules = [f"{accepts['strides']} strides", f"{least} to {most} dimensions"]
    rules += [] if accepts["broadcast"] else ["no zero strides"]
    rules += [f"aligned to {accepts['alignment']} bytes"] * (accepts["alignment"] > 1)
    if len(accepts["aligned"]) > 3:
        rules.append("elements aligned to their size")
    else:
        rules += [f"{name} aligned to its size" for name in accepts["aligned"]]
    return ", ".join(rules)
