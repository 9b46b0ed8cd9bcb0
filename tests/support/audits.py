"""What tests of audits share: an array that is copied, its line, and whether no audit is on."""

from __future__ import annotations

import sys

import numpy as np

from arraybridge.core.table import OBSERVERS


def strided() -> np.ndarray:
    return np.arange(12.0).reshape(3, 4)[:, ::-1]


def line() -> int:
    """Return the line of the caller."""
    return sys._getframe(1).f_lineno


def check_off() -> None:
    """Check that no audit is on."""
    assert not OBSERVERS
