"""What an sdist and a wheel carry, and that the pins name what pyproject.toml asks for."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

import arraybridge as ab
from tests.release.contents import RELATIVE
from tests.support.processes import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]


def modules() -> set[str]:
    """Every source file, by its path in a wheel: kernels/ lies inside arraybridge/ there."""
    ours = {
        path.relative_to(ROOT)
        for path in (ROOT / "arraybridge").rglob("*.py")
        if path.relative_to(ROOT).parts[1] != "kernels"
    }
    kernels = {"arraybridge" / path.relative_to(ROOT) for path in (ROOT / "kernels").rglob("*.py")}
    return {path.as_posix() for path in ours | kernels}


def build(kind: str, source: Path, out: Path, **env: str) -> Path:
    """Build an sdist or a wheel with the setuptools that is installed, in its own process."""
    code = f"import sys; from setuptools import build_meta; build_meta.build_{kind}(sys.argv[1])"
    # Windows has no UTF-8 either, where nobody asks for it.
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(out)],
        cwd=source,
        env=os.environ | plain | env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (built,) = out.glob("*.tar.gz" if kind == "sdist" else "*.whl")
    return built


def test_every_package_is_listed() -> None:
    folders = {Path(name).parent.as_posix().replace("/", ".") for name in modules()}
    assert sorted(PYPROJECT["tool"]["setuptools"]["packages"]) == sorted(folders)


@pytest.fixture(scope="module")
def sdist(tmp_path_factory) -> Path:
    """An sdist, unpacked: no git, no symlink, nothing but what was packed."""
    folder = tmp_path_factory.mktemp("sdist")
    checkout = folder / "checkout"
    checkout.mkdir()
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout)
    # As if the repository had this public address.
    settings = (checkout / "pyproject.toml").read_text()
    settings = re.sub(r"^\[project\.urls\]\n(?:[^[\n].*\n)*", "", settings, flags=re.MULTILINE)
    settings += '[project.urls]\nSource = "https://code.invalid/arraybridge/"\n'
    (checkout / "pyproject.toml").write_text(settings)
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "arraybridge", checkout / "arraybridge", symlinks=True, ignore=ignore)
    shutil.copytree(ROOT / "kernels", checkout / "kernels", ignore=ignore)
    with tarfile.open(build("sdist", checkout, folder / "sdist")) as archive:
        # Debian 12's Python 3.11.2 has no filters yet; 3.12 and 3.13 warn without one
        filters = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(folder / "unpacked", **filters)
    (source,) = (folder / "unpacked").iterdir()
    return source


def test_the_sdist_holds_the_c_sources_and_nothing_compiled(sdist: Path) -> None:
    told = {path.name for path in (sdist / "arraybridge" / "native").glob("*.[ch]")}
    assert told == {path.name for path in (ROOT / "arraybridge" / "native").glob("*.[ch]")} != set()
    assert [path for path in sdist.rglob("*") if path.suffix in (".so", ".pyd", ".pyc")] == []


HEADERS = Path(sysconfig.get_path("include"), "Python.h")
NO_COMPILER = pytest.mark.skipif(
    not (shutil.which("cc") and HEADERS.exists()), reason="needs a C compiler, and Python's headers"
)


@pytest.mark.parametrize(
    "compiled", [pytest.param(True, marks=NO_COMPILER), False], ids=["compiler", "no-compiler"]
)
def test_the_wheel_of_the_sdist_has_each_module_once(
    sdist: Path, tmp_path: Path, compiled: bool
) -> None:
    env = {} if compiled else {"CC": str(tmp_path / "no-compiler")}
    source = shutil.copytree(sdist, tmp_path / "source")
    wheel = build("wheel", source, tmp_path / "wheel", **env)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        told = archive.read(metadata).decode()
    assert f"\nVersion: {ab.__version__}\n" in told
    assert "](https://code.invalid/arraybridge/blob/" in told
    assert not RELATIVE.findall(told.partition("\n\n")[2])

    packed = {name for name in names if ".dist-info/" not in name}
    assert len(names) == len(set(names))
    native = {name for name in packed if name.startswith("arraybridge/_native.")}
    assert packed - native == modules() | {"arraybridge/py.typed"}
    assert len(native) == compiled
    tags = wheel.stem.split("-")[-3:]
    if not compiled:
        assert tags == ["py3", "none", "any"]
    else:
        assert "any" not in tags
        abi3 = not sysconfig.get_config_var("Py_GIL_DISABLED")
        assert (tags[:2] == ["cp311", "abi3"]) is abi3, tags


def requirement_names(requirements: Iterable[str]) -> set[str]:
    """The distributions that requirement lines name, normalized as PEP 503 says."""
    lines = (line.partition("#")[0].strip() for line in requirements)
    names = (re.match(r"[\w.-]+", line) for line in lines)
    return {re.sub(r"[-_.]+", "-", name.group()).lower() for name in names if name}


PINS = (ROOT / "requirements" / "pins.txt").read_text().splitlines()


@pytest.mark.parametrize("extra", ["", *PROJECT["optional-dependencies"]])
def test_what_is_asked_for_is_pinned(extra: str) -> None:
    wanted = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    assert requirement_names(wanted) <= requirement_names(PINS)


def test_every_pin_is_exact() -> None:
    lines = [line for line in PINS if line.strip() and not line.startswith("#")]
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[\w.]+", line)] == []


def test_the_lowest_versions_are_those_that_are_promised() -> None:
    text = (ROOT / "requirements" / "lowest.txt").read_text()
    lowest = dict(re.findall(r"^([a-z0-9-]+)==([\w.]+)$", text, re.MULTILINE))
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["test"]]
    for line in wanted:
        (name,) = requirement_names([line])
        assert name in lowest
        bound = re.search(r">=([\d.]+)", line)
        if bound:
            assert re.fullmatch(re.escape(bound[1]) + r"(\.0)*", lowest[name]), line


CHANGELOG = (ROOT / "CHANGELOG.md").read_text()


def test_the_changelog_dates_releases_and_nothing_else() -> None:
    unreleased, *releases = re.findall(r"^## (.+)$", CHANGELOG, re.MULTILINE)
    assert unreleased == "[Unreleased]"
    dated = [
        re.fullmatch(r"\[(\d+)\.(\d+)\.(\d+)\] - (\d{4}-\d\d-\d\d)", line) for line in releases
    ]
    assert None not in dated, releases
    told = [(tuple(map(int, line.groups()[:3])), line[4]) for line in dated if line]
    assert told == sorted(told, reverse=True)
    # A checkout between releases calls itself X.Y.Z.dev0, after those that the changelog dates.
    number, _, development = ab.__version__.partition(".dev")
    version = tuple(map(int, number.split(".")))
    newest = told[0][0] if told else (0, 0, 0)
    assert version > newest if development else version == newest


def test_the_citation_names_this_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text().splitlines()
    assert f"version: {ab.__version__}" in citation
    dated = f"## [{ab.__version__}] - "
    date = [line.removeprefix(dated) for line in CHANGELOG.splitlines() if line.startswith(dated)]
    assert [line for line in citation if line.startswith("date-released")] == [
        f"date-released: {day}" for day in date
    ]
