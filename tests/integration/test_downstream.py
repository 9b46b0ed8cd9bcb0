"""The command that runs other projects' tests: its plugins, its page; array-api-extra's whole."""

from __future__ import annotations

import pytest

from tests.downstream.__main__ import run
from tests.downstream.page import Result, page
from tests.downstream.suites import REFERENCE, SUITES


@pytest.mark.parametrize("library", ["numpy", pytest.param("torch", marks=pytest.mark.heavy)])
def test_array_api_extra(library):
    """All of its tests."""
    result = run(SUITES["array-api-extra"], f"arraybridge.xp.{library}", [])
    failed = {k: message for k, (outcome, message) in result.tests.items() if outcome == "failed"}
    assert not failed
    assert result.counts()["passed"] > 1000


# A few tests of each project that show whether the plugin puts the namespace in.
FEW = {
    "scipy": ("scipy/stats/tests/test_stats.py", "TestKruskal"),
    "scikit-learn": ("sklearn/utils/tests/test_extmath.py", "array_api"),
}


@pytest.mark.heavy
@pytest.mark.parametrize("name", FEW)
def test_a_few(name, monkeypatch):
    suite = SUITES[name]
    path, word = FEW[name]
    monkeypatch.setattr(type(suite), "modules", lambda suite: [suite.site() / path])
    ours = run(suite, "arraybridge.xp.numpy", ["-k", word])
    theirs = run(suite, suite.reference, ["-k", word])
    assert ours.tests.keys() == theirs.tests.keys()
    assert not ours.failed(theirs, "passed")
    assert ours.counts()["passed"] > 2


def result(**outcomes: str) -> Result:
    return Result({k: (v, "AssertionError: 1 != 2") for k, v in outcomes.items()}, 0.1)


def test_page():
    """Failures only here are listed apart from those on the reference."""
    reference = result(a="passed", b="failed", c="passed", d="skipped")
    ours = result(a="passed", b="failed", c="failed", d="failed")
    text, unknown = page({"scipy": {REFERENCE: reference, "arraybridge.xp.numpy": ours}})
    assert unknown == ["c"]
    assert "| `arraybridge.xp.numpy` | 1 | 0 | 3 | 1 |" in text
    assert "Not known: `AssertionError: 1 != 2`\n\n- `c` on numpy" in text
    assert "- 1: scipy, numpy: `AssertionError: 1 != 2`" in text
