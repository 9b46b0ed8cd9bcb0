"""What the libraries accept here: each is imported, in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import arraybridge as ab

from ..dispatch.registry import library_named
from . import screen
from .arrays import DTYPES
from .child import apart, workers
from .versions import GRAPHS, INSTALL, package, present, version_of


def asked(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Ask libraries: by name, what JSON has of each. JAX is asked with x64 off."""
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
    """Say what is known of a library without importing it."""
    install = f"pip install '{INSTALL[name]}'"
    if not present(name):
        return {"state": "not installed", "version": None, "install": install}
    return {"state": "installed", "version": version_of(package(name)), "install": install}


def record(name: str) -> Iterator[dict[str, Any]]:
    """Yield what a library is and accepts here; this imports it."""
    accepts = library_named(name).accepts
    kinds = [ab.Device(kind).type.name.lower() for kind in sorted(accepts.devices)]
    devices = kinds if len(kinds) < 4 else ["any device"]
    if "." not in name and find_spec(f"arraybridge.xp.{name}"):
        xp = import_module(f"arraybridge.xp.{name}")  # which knows the devices that are here
        devices = list(map(str, xp.__array_namespace_info__().devices()))
    told = accepts._asdict() | {"devices": kinds}
    told |= {key: sorted(x) for key, x in told.items() if isinstance(x, frozenset)}
    yield {"state": "ready", "devices": devices, "accepts": told}


def described(name: str, of: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield rows of a table on a library."""
    if of["state"] != "ready":
        yield name, f"{of['state']}: {of['install']}"
        return
    yield name, f"{of['version']} on {', '.join(of['devices']) or 'no device here'}"
    if name in GRAPHS:
        yield "  blocks", "converted when they are computed, to libraries with a namespace"
        return
    accepts = of["accepts"]
    yield "  views", "none: it copies whatever it takes" if accepts["copies"] else _rules(accepts)
    yield "  read-only memory", "kept so" if accepts["readonly"] else "copied"
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
