"""An extension that cannot be loaded: Python does its work, and it is said why."""

from __future__ import annotations

import pytest

from tests.support.processes import python


@pytest.mark.parametrize("error", ["ImportError", "RuntimeError", "RuntimeWarning"])
def test_python_in_its_place(error: str) -> None:
    """The last one: warnings are errors, and a Python without the global lock warns."""
    python(
        f"""
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "arraybridge._native":
            raise {error}("said here")
sys.meta_path.insert(0, Finder())
import numpy as np
import arraybridge as ab
from arraybridge.native import C, MISSING
assert C is None and MISSING == "it cannot be loaded: said here", MISSING
assert np.from_dlpack(ab.from_dlpack(np.arange(3)[::-1])).tolist() == [2, 1, 0]
""",
        env={"ARRAYBRIDGE_NO_NATIVE": "0"},
    )
