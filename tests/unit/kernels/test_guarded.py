"""Copies between pages that fault: `tests.guarded` for as long as a test may take.

Where one ends the process, ``python -m tests.guarded --seed 0`` (or ``heavy``) prints its number.
"""

from __future__ import annotations

import pytest

from tests.guarded import fuzz
from tests.support import guarded

KINDS = {"runs", "items", "tile", "split", "merge", "reverse", "fill"}


def test_drawn_copies() -> None:
    assert set(fuzz(0, cases=120)) <= KINDS


@pytest.mark.heavy
@pytest.mark.parametrize("first", [0, guarded.BLOCK])
def test_many_drawn_copies(first: int) -> None:
    """About a minute of both; with the kernels of an older version it is over in seconds."""
    assert set(fuzz("heavy", first=first, cases=2000)) == KINDS
