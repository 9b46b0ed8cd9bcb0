"""The lists of packages, pins and versions agree; make keeps off environments that it did not make.

What the sdist and the wheel hold is checked by ``make release-check``.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest

import arraybridge as ab
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


def test_every_package_is_listed() -> None:
    folders = {Path(name).parent.as_posix().replace("/", ".") for name in modules()}
    assert sorted(PYPROJECT["tool"]["setuptools"]["packages"]) == sorted(folders)


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


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize("target", [".venv/.made", "clean"])
def test_make_keeps_an_environment_of_somebody_else(target: str, tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    mine = tmp_path / ".venv" / "MINE"
    mine.parent.mkdir()
    mine.touch()

    def make() -> subprocess.CompletedProcess[str]:
        command = ["make", target, f"PYTHON={sys.executable}"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    done = make()
    assert mine.exists()
    if target != "clean":
        assert done.returncode
        assert "make did not make it: move it away" in done.stderr
    (tmp_path / ".venv" / ".making").touch()  # as an interrupted make leaves it
    assert make().returncode == 0
    assert not mine.exists()
