"""Every allocation of Python's made to fail once: an error is raised, and no reference is lost."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.native import C

testcapi = pytest.importorskip("_testcapi")
pytestmark = pytest.mark.skipif(C is None, reason="the Python in its place allocates in between")

VERSIONED = {"max_version": (1, 0)}
CASES: dict[str, Callable[[object], object]] = {
    "export": lambda a: a.__dlpack__(**VERSIONED),  # type: ignore[attr-defined]
    "export, legacy": lambda a: a.__dlpack__(),  # type: ignore[attr-defined]
    "import": lambda a: ab.dlpack.from_capsule(a.__dlpack__(**VERSIONED)),  # type: ignore[attr-defined]
    "import, legacy": lambda a: ab.dlpack.from_capsule(a.__dlpack__()),  # type: ignore[attr-defined]
    "numpy": lambda a: np.from_dlpack(a),  # type: ignore[call-overload]
    "arrow": lambda a: a.__arrow_c_array__(),  # type: ignore[attr-defined]
    "arrow, with a device": lambda a: a.__arrow_c_device_array__(),  # type: ignore[attr-defined]
}


@pytest.mark.parametrize("name", CASES)
def test_no_reference_is_lost(name: str) -> None:
    x = np.arange(12.0).reshape(3, 4)
    a, case, failed = ab.from_dlpack(x), CASES[name], 0
    for _ in range(3):
        case(a)
    gc.collect()
    before = sys.getrefcount(x)
    for i in range(1, 100):
        try:
            testcapi.set_nomemory(i, i + 1)
            case(a)
        except Exception:  # a MemoryError, or what ctypes makes of one
            failed += 1
        finally:
            testcapi.remove_mem_hooks()
    gc.collect()
    assert failed
    assert sys.getrefcount(x) == before
