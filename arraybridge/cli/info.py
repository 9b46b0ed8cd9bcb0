"""``info``: versions, devices, and what each library accepts, asked in a process of its own."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec
from typing import Any

import arraybridge as ab

from ..dispatch.registry import library_named
from ..libraries import LIBRARIES
from .arrays import DTYPES
from .child import apart

INSTALL = {entry.name: entry.install for entry in LIBRARIES}
PACKAGES = {
    "numba": "numba_cuda",
    "pillow": "PIL",
    "cuda_core": "cuda.core",
    "pyarrow.Array": "pyarrow",
}
GRAPHS = ("dask",)  # no arrays in memory, which the commands are about


def package(name: str) -> str:
    """The package that a library is imported from."""
    return PACKAGES.get(name, name)


def present(name: str) -> bool:
    """Whether a library is installed; nothing is imported."""
    try:
        return find_spec(package(name)) is not None
    except ModuleNotFoundError:  # not even what it is a part of
        return False


def version_of(package: str) -> str:
    """The version of the distribution that a package is in, by its metadata."""
    owners = packages_distributions().get(package.partition(".")[0], ())
    own = package.replace(".", "-")  # one of several in a namespace
    return version(own if own in owners else owners[0]) if owners else "?"


def _asked(name: str) -> dict[str, Any]:
    found = {"state": "not installed", "install": f"pip install '{INSTALL[name]}'"}
    try:
        return found | next(apart(1.0, record, name)) if present(name) else found
    except ChildProcessError as error:
        return found | {"state": f"does not work: {error}"}


def record(name: str) -> Iterator[dict[str, Any]]:
    """Yield what a library is and accepts here; this imports it."""
    accepts = library_named(name).accepts
    kinds = [ab.Device(kind).type.name.lower() for kind in sorted(accepts.devices)]
    devices = kinds if len(kinds) < 4 else ["any device"]
    if find_spec(f"arraybridge.xp.{name}"):  # the namespaces know the devices that are here
        xp = import_module(f"arraybridge.xp.{name}")
        devices = list(map(str, xp.__array_namespace_info__().devices()))
    told = accepts._asdict() | {"devices": kinds}
    told |= {key: sorted(x) for key, x in told.items() if isinstance(x, frozenset)}
    found = version_of(package(name))
    yield {"state": "ready", "version": found, "devices": devices, "accepts": told}


def show(args: argparse.Namespace) -> int:
    """Print what there is; no library is imported into this process, JAX asked with x64 off."""
    with ThreadPoolExecutor(2) as pool:
        libraries = dict(zip(INSTALL, pool.map(_asked, INSTALL), strict=True))
    versions = {"python": platform.python_version(), "arraybridge": ab.__version__}
    packages = ("numpy", "numba", "llvmlite", "array_api_compat", "ml_dtypes")
    versions |= {package: version_of(package) for package in packages}
    here = f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPU cores"
    if args.json:
        found = {"versions": versions, "platform": here, "libraries": libraries}
        print(json.dumps(found, indent=1))
        return 0
    print(
        ", ".join(f"{package} {version}" for package, version in versions.items()), here, sep="\n"
    )
    for name, of in libraries.items():
        if of["state"] == "ready":
            print(f"\n{name} {of['version']} on {', '.join(of['devices'])}")
            graphs = ["converts blocks when they are computed, to libraries with a namespace"]
            for told in graphs if name in GRAPHS else _told(of["accepts"], of["version"]):
                print(f"    {told}")
        else:
            print(f"\n{name}: {of['state']} ({of['install']})")
    return 0


def _told(accepts: dict[str, Any], version: str) -> Iterator[str]:
    """Yield lines on what a library takes."""
    if accepts["copies"]:
        yield "copies whatever it takes"
    else:
        least, most = accepts["ndim"]
        rules = [f"{accepts['strides']} strides", f"{least} to {most} dimensions"]
        rules += [] if accepts["broadcast"] else ["no zero strides"]
        rules += [f"aligned to {accepts['alignment']} bytes"] * (accepts["alignment"] > 1)
        rules += [f"{name} aligned to its size" for name in accepts["aligned"]]
        yield f"takes as a view: {', '.join(rules)}"
    yield f"read-only memory: {'kept so' if accepts['readonly'] else 'copied'}"
    missing = [name for name in DTYPES if name not in accepts["dtypes"]]
    yield f"dtypes: all but {', '.join(missing)}" if missing else "dtypes: all"
    if accepts["tested"] != version.partition("+")[0]:
        yield f"measured on {accepts['tested']}"
