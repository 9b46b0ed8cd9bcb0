"""Every allocation of Python's made to fail once: an error is raised, and no reference is lost."""

from __future__ import annotations

import sys

import pytest

from arraybridge.native import C
from tests.support.processes import python

pytest.importorskip("_testcapi")
pytestmark = [
    pytest.mark.skipif(C is None, reason="the Python in its place allocates in between"),
    # PyFunction_NewWithQualName, one of many such places.
    pytest.mark.skipif(
        sys.version_info >= (3, 13),
        reason="CPython itself crashes where it makes a function (python/cpython#151763)",
    ),
]


def test_no_reference_is_lost() -> None:
    """In a process of its own, whose other threads need no memory."""
    python(
        """
import gc, sys
import numpy as np, arraybridge as ab
from _testcapi import remove_mem_hooks, set_nomemory
from arraybridge.native import C

VERSIONED = {"max_version": (1, 0)}
CASES = {
    "export": lambda a: a.__dlpack__(**VERSIONED),
    "export, legacy": lambda a: a.__dlpack__(),
    "import": lambda a: ab.dlpack.from_capsule(a.__dlpack__(**VERSIONED)),
    "import, legacy": lambda a: ab.dlpack.from_capsule(a.__dlpack__()),
    "numpy": lambda a: np.from_dlpack(a),
    "copy": lambda a: ab.contiguous(large),
    "block": lambda a: ab.dlpack.ManagedTensor.allocate((1 << 17,), ab.DataType("uint8")),
}
large = np.zeros((300, 301)).T
for name, case in CASES.items():
    x = np.arange(12.0).reshape(3, 4)
    a, failed = ab.from_dlpack(x), 0
    for _ in range(3):
        case(a)
    gc.collect()
    before = sys.getrefcount(x)
    for i in range(1, 100):
        try:
            set_nomemory(i, i + 1)
            case(a)
        except Exception:  # a MemoryError, or what ctypes makes of one
            failed += 1
        finally:
            remove_mem_hooks()
    gc.collect()
    assert failed, name
    assert sys.getrefcount(x) == before, name
    assert 0 <= C.idle_bytes() <= 1 << 20  # the last result's
"""
    )
