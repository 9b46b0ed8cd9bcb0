"""The command that runs other projects' tests: all of array-api-extra's."""

from __future__ import annotations

import pytest

from tests.downstream.__main__ import cause_of, run


@pytest.mark.parametrize("library", ["numpy", pytest.param("torch", marks=pytest.mark.heavy)])
def test_array_api_extra(library):
    found = run("array-api-extra", f"arraybridge.xp.{library}", [])
    failed = {k: message for k, (outcome, message) in found.items() if outcome == "failed"}
    assert [k for k, why in failed.items() if not cause_of("array-api-extra", k, why)] == []
    assert sum(outcome == "passed" for outcome, _ in found.values()) > 1000
