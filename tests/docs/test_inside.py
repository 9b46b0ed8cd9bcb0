"""The contributors' pages: the code map leads to code, and counts are those of the data files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.processes import ROOT
from tests.unit.test_layers import LAYERS, first_level

DATA = ("benchmarks/results/conformance.md", "tests/integration/programs.md",
        "tests/downstream/results.md")  # fmt: skip
MAP = (ROOT / "docs" / "code_map.md").read_text()


def rows(text: str) -> list[list[str]]:
    """The cells of each row of a page's tables."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def place(path: str) -> Path:
    """A path of the map, which leaves out the package."""
    folder = ROOT if path.startswith(("kernels/", "tests/")) else ROOT / "arraybridge"
    return folder / path


def test_counts_of_compatibility() -> None:
    known = {tuple(row) for path in DATA for row in rows((ROOT / path).read_text())}
    counted = [row for row in rows((ROOT / "docs" / "compatibility.md").read_text())
               if re.fullmatch(r"[\d.]+", row[-1])]  # fmt: skip
    assert len(counted) > 15
    assert [row for row in counted if tuple(row) not in known] == []


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:\w+/)*\w+(?:\.py|\.json|/))`", MAP))))
def test_paths_of_the_code_map(path: str) -> None:
    assert place(path).exists() or (ROOT / path).exists()


def test_names_of_the_code_map() -> None:
    questions = [row for row in rows(MAP) if row[0].endswith("?")]
    assert len(questions) > 8
    for question, path, where in questions:
        files = re.findall(r"`([\w/]+\.py)`", where)
        source = "".join(place(each).read_text() for each in (path.strip("`"), *files))
        for name in re.findall(r"`(?:\w+\.)?(\w+)`", where):
            assert re.search(rf"\b{name}\b", source), f"{question} {name} is not in {path}"


def test_folders_of_the_code_map_are_in_the_order_of_the_layers() -> None:
    order = [part for layer in LAYERS for part in layer.split(" | ")]
    text = MAP.partition("## Folders")[2].partition("## Changes")[0]
    shown = [first_level(f"arraybridge.{part}") for part in re.findall(r"`(\w+)(?:/|\.py)`", text)]
    at = {part: number for number, layer in enumerate(LAYERS) for part in layer.split(" | ")}
    assert [at[part] for part in shown] == sorted(at[part] for part in shown)
    assert set(shown) <= set(order)
    assert len(shown) > 15
