"""What the sdist and the wheel hold, and what they say of themselves."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message
from pathlib import Path

from packaging.metadata import Metadata
from packaging.utils import parse_wheel_filename
from packaging.version import Version

from .built import git

# What git has and an sdist need not: the code host's files, and the symlink to kernels/, which
# a build would pack as a second copy.
HOST = re.compile(r"\.github/|\.ci/|\.gitignore$|\.pre-commit-config\.yaml$|arraybridge/kernels$")
# Links that lead nowhere from the page of a package index.
RELATIVE = re.compile(
    r"""\]\((?!https?://|mailto:|#)[^)]*\)|(?:src|srcset|href)=["'](?!https?://|mailto:|#)"""
)
MADE = re.compile(r"PKG-INFO$|setup\.cfg$|[^/]+\.egg-info/")


def problems(checkout: Path, sdist: Path, compiled: Path, plain: Path) -> Iterator[str]:
    """Yield what is wrong with what was built from a checkout, with a C compiler and without."""
    yield from _sdist(checkout, sdist)
    yield from _tools(checkout, sdist, compiled, plain)
    for wheel in (compiled, plain):
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            (info,) = {name.partition("/")[0] for name in names if ".dist-info/" in name}
            metadata = archive.read(f"{info}/METADATA")
        for problem in _wheel(names, info, wheel is compiled):
            yield f"{wheel.name} {problem}"
        yield from _metadata(checkout, metadata)
    (tag,) = parse_wheel_filename(compiled.name)[3]
    if (tag.interpreter, tag.abi) != ("cp311", "abi3") or tag.platform == "any":
        yield f"{compiled.name} is not called after what it holds: is there a C compiler here?"
    if [str(tag) for tag in parse_wheel_filename(plain.name)[3]] != ["py3-none-any"]:
        yield f"{plain.name} is not called after what it holds"


def _wheel(names: list[str], info: str, compiled: bool) -> Iterator[str]:
    foreign = [name for name in names if not name.startswith(("arraybridge/", f"{info}/"))]
    foreign += [name for name in names if name.endswith((".c", ".h", ".o"))]
    if foreign:
        yield f"holds {', '.join(foreign)}"
    native = [name for name in names if name.startswith("arraybridge/_native.")]
    if len(native) != compiled:
        yield f"holds {native} as the C extension"
    for name in ("arraybridge/py.typed", f"{info}/licenses/LICENSE", f"{info}/entry_points.txt"):
        if name not in names:
            yield f"lacks {name}"


def _tools(checkout: Path, sdist: Path, *wheels: Path) -> Iterator[str]:
    for tool in (
        ("twine", "check", "--strict", str(sdist), *map(str, wheels)),
        ("check_wheel_contents", *map(str, wheels)),
    ):
        command = [sys.executable, "-m", *tool]
        done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
        if done.returncode:
            yield f"{tool[0]}:\n{done.stdout}{done.stderr}"


def _sdist(checkout: Path, sdist: Path) -> Iterator[str]:
    listed = git("ls-files", cwd=checkout).splitlines()
    tracked = {name for name in listed if not HOST.match(name)}
    with tarfile.open(sdist) as archive:
        files = [member.name for member in archive.getmembers() if not member.isdir()]
    packed = {name.partition("/")[2] for name in files}
    packed = {name for name in packed if not MADE.match(name)}
    for told, names in (("lacks", tracked - packed), ("holds, untracked,", packed - tracked)):
        if names:
            yield f"the sdist {told} {', '.join(sorted(names))}"


def _metadata(checkout: Path, text: bytes) -> Iterator[str]:
    metadata = Metadata.from_email(text, validate=True)
    told: Message = message_from_bytes(text)
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    if Version(told["Metadata-Version"]) < Version("2.4"):  # License-Expression, License-File
        yield f"metadata of version {told['Metadata-Version']}"
    if metadata.license_expression != project["license"] or metadata.license_files != ["LICENSE"]:
        yield "the metadata do not name the license"
    pythons = [
        name[len(told_of) :]
        for name in metadata.classifiers or ()
        if name.startswith(told_of := "Programming Language :: Python :: 3.")
    ]
    lowest = re.search(r">=3\.(\d+)$", project["requires-python"])
    if lowest is None or pythons != sorted(pythons, key=int) or pythons[0] != lowest[1]:
        yield f"requires-python is {project['requires-python']}, the classifiers name 3.{pythons}"
    if told["Description-Content-Type"] != "text/markdown":
        yield f"the description is {told['Description-Content-Type']}"
    for link in RELATIVE.finditer(metadata.description or ""):
        yield f"the description has a link that leads nowhere on an index: {link[0]}"
    if len(metadata.description or "") < 1000:
        yield "there is no description"


def tagged(checkout: Path, tag: str) -> Iterator[str]:
    """Yield what does not agree with the tag of a release, ``vX.Y.Z``."""
    init = (checkout / "arraybridge" / "__init__.py").read_text()
    (version,) = re.findall(r'^__version__ = "(.+)"$', init, re.MULTILINE)
    if tag != f"v{version}":
        yield f"the tag is {tag}, the version {version}"
    if Version(version).is_devrelease:
        yield f"{version} is no version to release"
    changelog = (checkout / "CHANGELOG.md").read_text()
    dated = re.search(
        rf"^## \[{re.escape(version)}\] - (\d{{4}}-\d\d-\d\d)$", changelog, re.MULTILINE
    )
    if not dated:
        yield f"CHANGELOG.md has no section `## [{version}] - YYYY-MM-DD`"
    for page in ("README.md", "docs/index.md", "docs/start/install.md"):
        if "not on PyPI" in (checkout / page).read_text():
            yield f"{page} says that this is not on PyPI"
    citation = (checkout / "CITATION.cff").read_text()
    for line in (f"version: {version}", f"date-released: {dated[1] if dated else 'YYYY-MM-DD'}"):
        if line not in citation.splitlines():
            yield f"CITATION.cff does not say `{line}`"
