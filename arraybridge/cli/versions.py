"""Which libraries are installed, and in which versions. Nothing here imports one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec

from ..libraries import LIBRARIES

#: Library -> the pip requirement.
INSTALL = {entry.name: entry.install for entry in LIBRARIES}
PACKAGES = {
    "numba": "numba_cuda",
    "pillow": "PIL",
    "cuda_core": "cuda.core",
    "pyarrow.Array": "pyarrow",
}
GRAPHS = ("dask",)  # no arrays in memory, which the commands are about


@cache
def _owners() -> Mapping[str, list[str]]:
    try:
        return packages_distributions()
    except Exception:  # metadata that nobody can read, of any distribution
        return {}


def package(name: str) -> str:
    """The package that a library is imported from."""
    return PACKAGES.get(name, name)


def present(name: str) -> bool:
    """Whether a library is installed."""
    try:
        return find_spec(package(name)) is not None
    except ModuleNotFoundError:  # not even what it is a part of
        return False


def version_of(package: str) -> str:
    """The version of the distribution that a package is in, by its metadata."""
    owners = _owners().get(package.partition(".")[0], ())
    own = package.replace(".", "-")  # one of several in a namespace
    return version(own if own in owners else owners[0]) if owners else "?"
