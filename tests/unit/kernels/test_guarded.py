"""Copies between pages that fault: `tests.guarded` for as long as a test may take."""

from __future__ import annotations

import pytest

from tests.guarded import fuzz
from tests.support import guarded


def test_drawn_copies() -> None:
    assert fuzz(0, cases=120)["cases"] == 120


@pytest.mark.heavy
@pytest.mark.parametrize("first", [0, guarded.BLOCK])
def test_many_drawn_copies(first: int) -> None:
    """About a minute of both; with the kernels of an older version it is over in seconds."""
    done = fuzz("heavy", first=first, cases=2000)
    kinds = {kind.partition(",")[0] for kind in done["kinds"]}
    assert kinds >= {"runs", "items", "tile", "split", "merge", "reverse", "fill"}
