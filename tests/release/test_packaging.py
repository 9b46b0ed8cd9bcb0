"""The lists of packages, pins and versions agree; make keeps off environments that it did not make.

What the sdist and the wheel hold is checked by ``make release-check``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

import arraybridge as ab
from tests.support.processes import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
PINS = (ROOT / "requirements" / "pins.txt").read_text().splitlines()


def test_every_package_is_listed() -> None:
    """kernels/ lies inside arraybridge/ in a wheel."""
    found = {path.relative_to(ROOT) for path in (ROOT / "arraybridge").rglob("*.py")}
    found |= {"arraybridge" / path.relative_to(ROOT) for path in (ROOT / "kernels").rglob("*.py")}
    folders = {".".join(path.parent.parts) for path in found}
    assert sorted(PYPROJECT["tool"]["setuptools"]["packages"]) == sorted(folders)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the sources, and of the compiled kernels."""
    for name in ("arraybridge", "kernels"):
        kept = shutil.ignore_patterns("__pycache__", "_native.*")
        shutil.copytree(ROOT / name, tmp_path / name, symlinks=True, ignore=kept)
    for name in ("pyproject.toml", "setup.py", "build_backend.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def built(tree: Path, command: str) -> tuple[Path, str]:
    """A wheel, built without a C compiler, and what was said of it."""
    words = [sys.executable, "setup.py", "-q", command, "--dist-dir", "dist"]
    without_c = os.environ | {"CC": "/nonexistent"}
    done = subprocess.run(words, cwd=tree, env=without_c, check=True, capture_output=True)
    (wheel,) = (tree / "dist").glob("*.whl")
    return wheel, done.stderr.decode()


def test_an_editable_install_is_a_path(tree: Path) -> None:
    """Type checkers follow a path file, but not setuptools' import hook."""
    wheel, _ = built(tree, "editable_wheel")
    with zipfile.ZipFile(wheel) as files:
        (path,) = (name for name in files.namelist() if name.endswith(".pth"))
        assert files.read(path).decode().split() == [str(tree.resolve())]


def test_kernels_are_packed_only_if_they_are_of_these_sources(tree: Path) -> None:
    """Those in the tree are taken as they are: a newer file changes nothing, another line does."""
    library = "arraybridge/kernels/cpu/_kernels.so"
    source = tree / "kernels" / "cpu" / "loops.py"
    os.utime(source)
    wheel, _ = built(tree, "bdist_wheel")
    with zipfile.ZipFile(wheel) as files:
        assert files.read(library) == (tree / library).read_bytes()
    assert "-py3-none-linux_" in wheel.name
    wheel.unlink()
    source.write_text(source.read_text() + "# changed\n")
    wheel, said = built(tree, "bdist_wheel")  # over the first one's build folder
    assert "the compiled kernels are left out, and NumPy will copy: there is no C compiler" in said
    with zipfile.ZipFile(wheel) as files:
        assert library not in files.namelist()
    assert wheel.name.endswith("-py3-none-any.whl")


def requirement_names(requirements: Iterable[str]) -> set[str]:
    """The distributions that requirement lines name, normalized as PEP 503 says."""
    lines = (line.partition("#")[0].strip() for line in requirements)
    names = (re.match(r"[\w.-]+", line) for line in lines)
    return {re.sub(r"[-_.]+", "-", name.group()).lower() for name in names if name}


def test_what_is_asked_for_is_pinned() -> None:
    extras = PROJECT["optional-dependencies"].values()
    wanted = [line for lines in (PROJECT["dependencies"], *extras) for line in lines]
    backend = (ROOT / "build_backend.py").read_text()
    to_build = re.findall(r'"((?:numba|llvmlite|ziglang)[^"]*)"', backend)
    assert {*to_build[:2]} <= {*PROJECT["optional-dependencies"]["test"]}  # the same bounds
    wanted += [*PYPROJECT["build-system"]["requires"], *to_build]
    assert requirement_names(wanted) <= requirement_names(PINS)
    lines = [line for line in PINS if line.strip() and not line.startswith("#")]
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[\w.]+", line)] == []


def test_the_lowest_versions_are_those_that_are_promised() -> None:
    text = (ROOT / "requirements" / "lowest.txt").read_text()
    lowest = dict(re.findall(r"^([a-z0-9-]+)==([\w.]+)$", text, re.MULTILINE))
    for line in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["test"]]:
        (name,) = requirement_names([line])
        assert name in lowest
        bound = re.search(r">=([\d.]+)", line)
        if bound:
            assert re.fullmatch(re.escape(bound[1]) + r"(\.0)*", lowest[name]), line


def test_the_citation_names_this_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text().splitlines()
    assert f"version: {ab.__version__}" in citation


def test_make_deletes_only_what_it_made(tmp_path: Path) -> None:
    """In a checkout with somebody's environments, builds and notes."""

    def make(target: str) -> int:
        command = ["make", target, f"PYTHON={sys.executable}"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True).returncode

    shutil.copy(ROOT / "Makefile", tmp_path)
    mine = (
        ".venv/MINE venv/x/__pycache__/y.pyc build/NOTES dist/other-1.0.whl docs/mine.md "
        "other.egg-info/PKG-INFO"
    ).split()
    made = (
        "build/lib.linux/x.py dist/arraybridge_dlpack-0.1.whl docs/_build/html/index.html "
        "arraybridge_dlpack.egg-info/PKG-INFO .ruff_cache/x arraybridge/_native.abi3.so "
        "kernels/cpu/_kernels.so kernels/cpu/_kernels-x/64.o"
    ).split()
    for folder in ("arraybridge", "benchmarks", "docs", "examples", "kernels", "tests"):
        made.append(f"{folder}/__pycache__/y.pyc")
    for name in (*mine, *made):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert make("demo") != 0  # it would install into this .venv
    assert make("clean") == 0
    assert [name for name in (*mine, *made) if (tmp_path / name).exists()] == mine
    (tmp_path / ".venv" / ".making").touch()  # as an interrupted make leaves it
    (tmp_path / ".venv" / "bin").mkdir()
    (tmp_path / ".venv" / "bin" / "python").symlink_to("nowhere")
    assert make(".venv/.made") == 0
    assert (tmp_path / ".venv" / "bin" / "python").exists()
    assert (tmp_path / ".venv" / "MINE").exists()
    assert make("clean") == 0
    assert not (tmp_path / ".venv").exists()
