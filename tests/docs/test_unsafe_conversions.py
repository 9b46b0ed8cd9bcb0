"""The cases of docs/start/unsafe_conversions.md run again, each in its own process."""

from __future__ import annotations

import re
import sys

import pytest
from packaging.version import Version

from examples.unsafe_conversions import CASES, KINDS, Case, Runner
from examples.unsafe_conversions.page import (
    DISTRIBUTIONS,
    PAGE,
    newest,
    render,
    results,
    row,
    version_of,
)
from tests.support.optional import installed, needs
from tests.support.processes import ROOT

HEAVY = {
    *("duckdb", "mlx.core", "onnxruntime", "openvino", "paddle", "pandas", "polars"),
    *("tensorflow", "warp"),
}
LIGHT = sorted(set(DISTRIBUTIONS) - HEAVY)
TEXT = PAGE.read_text()
#: Import name: the version that the page is about.
WRITTEN = {
    name: found.group(1)
    for name, (called, _) in DISTRIBUTIONS.items()
    if (found := re.search(rf"^Versions:.*\b{called} ([\d.]+\d)", TEXT, re.MULTILINE))
}


def parameter(case: Case):
    marks = [needs(*case.needs)]
    if HEAVY & set(case.needs):
        marks.append(pytest.mark.heavy)
    return pytest.param(case, id=case.name, marks=marks)


@pytest.fixture(scope="module")
def runners():
    """Processes that have imported what their cases need, and fork for each."""
    started: dict[frozenset[str], Runner] = {}

    def runner(case: Case) -> Runner:
        heavy = frozenset(HEAVY & set(case.needs))
        if heavy not in started:
            load = case.needs if heavy else [name for name in LIGHT if installed(name)]
            started[heavy] = Runner(["arraybridge", *load])
        return started[heavy]

    yield runner
    for one in started.values():
        one.__exit__()


@pytest.mark.skipif(sys.platform != "linux", reason="the page is about Linux, and forks")
@pytest.mark.parametrize("case", [parameter(case) for case in CASES.values()])
def test_case_is_as_on_the_page(case, runners):
    have = {name: Version(version_of(name)) for name in case.needs}
    for name, version in have.items():
        if version < Version(WRITTEN[name]):
            pytest.skip(f"the page is about {name} {WRITTEN[name]}, this is {version}")
    found = results(case, runners(case))
    kinds = {way: kind for way, (kind, _, _) in found.items()}
    expected = {**dict.fromkeys(case.own, case.kind), case.ours: "right"}
    newer = any(version != Version(WRITTEN[name]) for name, version in have.items())
    for way, (library, since, _) in case.mended.items():
        if have[library] >= Version(since):
            expected[way] = kinds[way]
            assert kinds[way] in ("right", "error")
    if newer and case.sometimes:  # a run may come out right
        expected |= {way: kind for way, kind in kinds.items() if kind == "right"}
    assert kinds == expected, "renew the page: python -m examples.unsafe_conversions --write"
    if newer:
        return  # the page has the output of the pinned versions only
    assert row(case, found) in TEXT
    if case.shown:  # of a case that depends on timing, the numbers differ from run to run
        shown = f"```python3\n{case.code}\n```" if case.sometimes else render(case, found)
        assert shown in TEXT


def test_the_page_has_all_cases_and_no_others():
    tables = dict(re.findall(r"^## (.*)\n\n((?:\|.*\n)+)", TEXT, re.MULTILINE))
    rows = r"^\| \[(.*?)\]\(.*/(\w+\.py)\) \| `(.*?)` \|"
    assert {kind: re.findall(rows, tables[KINDS[kind]], re.MULTILINE) for kind in KINDS} == {
        kind: [
            (each.given, each.file, each.function) for each in CASES.values() if each.kind == kind
        ]
        for kind in KINDS
    }


def test_the_page_is_about_the_pinned_versions():
    pins = dict(
        re.findall(r"^([\w-]+)==([\w.]+)", (ROOT / "requirements/pins.txt").read_text(), re.M)
    )
    names = {name: distribution for name, (_, distribution) in DISTRIBUTIONS.items()}
    assert {name: pins[names[name]] for name in names} == WRITTEN
    assert {name for case in CASES.values() for name in case.needs} == set(names)
    assert f"\nNewest versions tested: {newest()}.\n" in TEXT


@pytest.mark.skipif(sys.platform != "linux", reason="it forks")
def test_a_mended_library_is_noticed():
    case = CASES["torch_negative_step"]
    mended = f"print({case.right!r})"
    with Runner() as runner:
        assert runner.run(mended).kind(case) == "right"
        assert runner.run("raise ValueError('negative strides')").kind(case) == "error"
        assert runner.run("import os; os.abort()").kind(case) == "crash"
        assert runner.run("print('tensor([0., 1.])')").kind(case) == case.kind
