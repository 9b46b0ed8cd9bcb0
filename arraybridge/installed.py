"""Which distributions installed a package of this name, and whether their files are mixed.

Another project on PyPI is called ``arraybridge`` and has this import name, too. Installed into one
environment, both write into one folder, the later over the files of the earlier: ``__init__.py``
for one. pip says nothing of it, and uninstalling one takes files of the other along.

Nothing of the package is imported here: its ``__init__.py`` may be another project's, or be gone.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import url2pathname

PACKAGE = __name__.partition(".")[0]
DISTRIBUTION = "arraybridge-dlpack"


class Owner(NamedTuple):
    """A distribution that has installed a package of this name.

    Attributes
    ----------
    name, version : str
    folder : Path
        Of the package, or of the one in the checkout that an editable installation refers to.
    editable : bool
    hashes : dict
        The hash of each file of the package as it was installed, by its path in ``folder``.
    """

    name: str
    version: str
    folder: Path
    editable: bool
    hashes: dict[str, str]

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    def lost(self) -> list[str]:
        """The files that are missing, or no longer what this distribution installed."""
        return [name for name, told in self.hashes.items() if _hash(self.folder / name) != told]


def _hash(path: Path) -> str | None:
    """Return the hash of a file in the form of a wheel's RECORD; None if there is no such file."""
    try:
        digest = hashlib.sha256(path.read_bytes()).digest()
    except OSError:
        return None
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def owners(path: Sequence[str] | None = None) -> list[Owner]:
    """Return the distributions that have a package of this name, in the order of the path.

    Parameters
    ----------
    path : sequence of str, optional
        The folders to search, by default those of ``sys.path``.

    Examples
    --------
    >>> from arraybridge.installed import owners
    >>> for owner in owners():  # doctest: +SKIP
    ...     print(owner, owner.folder, owner.lost())
    arraybridge-dlpack 0.1.0 /home/me/venv/lib/python3.12/site-packages/arraybridge []
    """
    searched = sys.path if path is None else path
    found = {
        (owner.name, owner.folder): owner
        for distribution in distributions(path=list(searched))
        for owner in _owner(distribution)
    }
    return list(found.values())


def _owner(distribution: Distribution) -> Iterator[Owner]:
    try:
        yield from _told_by(distribution)
    except Exception:  # metadata, of any distribution, that nobody can read
        return


def _told_by(distribution: Distribution) -> Iterator[Owner]:
    record = distribution.read_text("RECORD") or ""
    name, version = distribution.name, distribution.version
    prefix = f"{PACKAGE}/"
    if record.startswith(prefix) or f"\n{prefix}" in record:
        rows = (row for row in csv.reader(record.splitlines()) if row[1:2] > [""])
        hashes = {row[0].removeprefix(prefix): row[1] for row in rows if row[0].startswith(prefix)}
        folder = Path(str(distribution.locate_file(PACKAGE))).resolve()
        if folder.parent.is_file():  # a zip archive
            hashes = {}
        yield Owner(name, version, folder, False, hashes)
    elif PACKAGE in (distribution.read_text("top_level.txt") or "").split():
        origin = json.loads(distribution.read_text("direct_url.json") or "{}")
        if origin.get("dir_info", {}).get("editable"):
            checkout = Path(url2pathname(urlsplit(origin["url"]).path)).resolve()
            yield Owner(name, version, checkout / PACKAGE, True, {})


def loaded_from() -> Path:
    """Return the folder of the package that is in use."""
    return Path(__file__).resolve().parent


def describe(path: Sequence[str] | None = None) -> list[str]:
    """Return lines that say which package is in use, whose it is, and what is wrong, if anything.

    Parameters
    ----------
    path : sequence of str, optional
        The folders to search for distributions, by default those of ``sys.path``.
    """
    found, here = owners(path), loaded_from()
    ours = [owner for owner in found if owner.folder == here and owner.name == DISTRIBUTION]
    whose = f"{ours[0]}{', editable' * ours[0].editable}" if ours else "not installed by pip"
    lines = [f"{PACKAGE} is loaded from {here} ({whose})"]
    lines += [
        f"{owner} is in {owner.folder}, and is not loaded"
        for owner in found
        if owner.folder != here
    ]
    return lines + list(_problems(found))


def problems(path: Sequence[str] | None = None) -> list[str]:
    """Return a sentence for each folder with files of two projects, or with files that are gone.

    Parameters
    ----------
    path : sequence of str, optional
        The folders to search for distributions, by default those of ``sys.path``.
    """
    return list(_problems(owners(path)))


def _problems(found: list[Owner]) -> Iterator[str]:
    for folder in dict.fromkeys(owner.folder for owner in found):
        sharing = [owner for owner in found if owner.folder == folder]
        lost = [(owner, names) for owner in sharing if (names := owner.lost())]
        told = "; ".join(f"of {owner}: {_some(names)}" for owner, names in lost)
        if len(sharing) > 1:
            all_of_them = " ".join(sorted(owner.name for owner in sharing))
            yield (
                f"{' and '.join(map(str, sharing))}, two projects with one import name, are both "
                f"installed into {folder}{f' (changed or missing {told})' * bool(told)}: run "
                f"`pip uninstall {all_of_them}`, then install the one that you want"
            )
        elif told:
            yield (
                f"files in {folder} are changed or missing, {told}: run `pip install "
                f"--force-reinstall --no-deps {sharing[0].name}`"
            )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
