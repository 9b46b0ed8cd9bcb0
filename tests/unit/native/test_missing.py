"""An extension that cannot be loaded, and an interpreter in which nothing could work."""

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


@pytest.mark.parametrize("without", ["0", "1"])
def test_a_sub_interpreter_gets_an_error(without: str) -> None:
    """NumPy's deleters, and ours, wait for the GIL of the main one: forever."""
    pytest.importorskip("_testcapi")
    python(
        """
import _testcapi
assert not _testcapi.run_in_subinterp('''
import warnings
warnings.simplefilter("ignore")  # NumPy's about itself
try:
    import arraybridge
except ImportError as error:
    assert "sub-interpreter" in str(error), error
else:
    raise SystemError("it was imported")
''')
""",
        env={"ARRAYBRIDGE_NO_NATIVE": without},
    )
