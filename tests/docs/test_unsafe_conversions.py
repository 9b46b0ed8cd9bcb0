"""The cases of docs/start/unsafe_conversions.md: the libraries go wrong, arraybridge does not."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from importlib.metadata import packages_distributions, version

import pytest

from examples.unsafe_conversions.__main__ import Case, cases
from tests.docs.test_docs import DOCS, HEAVY
from tests.support.optional import needs
from tests.support.processes import ROOT

PAGE = (DOCS / "start" / "unsafe_conversions.md").read_text()
CASES = cases()
PINS = dict(re.findall(r"^([\w-]+)==(\S+)", (ROOT / "requirements" / "pins.txt").read_text(), re.M))
pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the page is about Linux, and forks"
)


def heavy(case: Case) -> bool:
    return bool(HEAVY & {name.partition(".")[0] for name in case.needs})


@cache
def outcomes(*names: str) -> dict[tuple[str, str], tuple[str, str]]:
    """(case, conversion) -> what it does, and its output; cases with heavy libraries run alone."""
    command = [sys.executable, "-m", "examples.unsafe_conversions", "--json", *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith('["')]
    return {(name, way): (kind, text) for name, way, kind, text in map(json.loads, lines)}


def pinned(name: str) -> bool:
    """Whether a library has the version that the page is about."""
    (distribution, *_) = packages_distributions()[name.partition(".")[0]]
    return version(distribution).partition("+")[0] == PINS.get(distribution.lower())


def parameters():
    for case in CASES.values():
        marks = [needs(*case.needs), *[pytest.mark.heavy] * heavy(case)]
        yield pytest.param(case, id=case.name, marks=marks)


LIGHT = [name for name, case in CASES.items() if not heavy(case)]


@pytest.mark.parametrize("case", list(parameters()))
def test_the_library_goes_wrong_and_arraybridge_does_not(case: Case) -> None:
    found = outcomes(case.name) if heavy(case) else outcomes(*LIGHT)
    assert found[case.name, case.ours][0] == "right", found
    if all(map(pinned, case.needs)):  # newer versions may have mended it
        kinds = {found[case.name, way][0] for way in case.own}
        assert kinds <= {"wrong", "crash"}, found


def test_the_page_has_each_case() -> None:
    listed = re.findall(r"^\| .* \(`(\w+)`\) \| `", PAGE, re.MULTILINE)
    assert sorted(listed) == sorted(CASES)
