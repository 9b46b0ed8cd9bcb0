"""What tests of the copy audit share: arrays, records, and whether everything was put back."""

from __future__ import annotations

import builtins
import sys

import numpy as np

import arraybridge as ab
from arraybridge.array import native_array
from arraybridge.auditing import AuditLog, Record, audits
from arraybridge.auditing import functions as audit_functions
from arraybridge.core.table import OBSERVERS

OWN_IMPORT = builtins.__import__


def strided() -> np.ndarray:
    return np.arange(12.0).reshape(3, 4)[:, ::-1]


def line() -> int:
    """Return the line of the caller."""
    return sys._getframe(1).f_lineno


def only(logged: AuditLog) -> Record:
    (record,) = logged
    return record


def functions() -> list[object]:
    """Return every function and method of the package outside the audit's own files."""
    found: list[object] = []
    for name, module in sorted(sys.modules.items()):
        if name.startswith("arraybridge.") and not name.startswith("arraybridge.auditing"):
            found += [
                (name, key, value)
                for key, value in sorted(vars(module).items())
                if callable(value) and not isinstance(value, type)
            ]
    for cls in (ab.Array, *native_array.NativeArray.__subclasses__()):
        found += [(cls, key, value) for key, value in vars(cls).items() if callable(value)]
    return found


def check_off() -> None:
    """Check that no audit is on or has left anything behind."""
    assert not audits.those_on()
    assert not OBSERVERS
    assert not audit_functions._on
    assert not audit_functions._replaced
    assert builtins.__import__ is OWN_IMPORT
