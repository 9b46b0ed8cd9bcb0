"""What tests of the copy audit share: arrays, records, and whether everything was put back."""

from __future__ import annotations

import sys

import numpy as np

import arraybridge as ab
from arraybridge.array import native_array
from arraybridge.auditing import AuditLog, Record, watching
from arraybridge.dispatch.registry import RECORDS, TypeRecord
from arraybridge.dlpack.offered import table_of


def strided() -> np.ndarray:
    return np.arange(12.0).reshape(3, 4)[:, ::-1]


def line() -> int:
    """Return the line of the caller."""
    return sys._getframe(1).f_lineno


def only(logged: AuditLog) -> Record:
    (record,) = logged
    return record


def state() -> list[object]:
    """Return everything that an audit replaces."""
    found: list[object] = [RECORDS.find, vars(ab.Array)["__dlpack__"], ab.Array.__array__]
    for cls in native_array.NativeArray.__subclasses__():
        found += [cls, cls.__dict__.get("__dlpack__"), cls.__dict__.get("_exported")]
        found.append(cls.__dict__.get("_namespace"))
        capsule = cls.__dict__.get("__dlpack_c_exchange_api__")
        if type(capsule).__name__ == "PyCapsule":
            found.append(table_of(capsule).way)
    for name, module in sorted(sys.modules.items()):
        if name.startswith("arraybridge.") and not name.startswith("arraybridge.auditing"):
            found += [
                (name, key, value)
                for key, value in sorted(vars(module).items())
                if callable(value) and not isinstance(value, type)
            ]
    return found


def check_off() -> None:
    """Check that no audit is on, and that nothing of one is left."""
    assert not watching._on
    assert RECORDS.find is TypeRecord
    for name, module in [*sys.modules.items()]:
        if name.startswith("arraybridge.") and not name.startswith("arraybridge.auditing"):
            for key, value in [*vars(module).items()]:
                home = getattr(getattr(value, "__code__", None), "co_filename", "")
                assert "auditing" not in home or key in ("audit",), (name, key)
    for cls in (ab.Array, *native_array.NativeArray.__subclasses__()):
        for key, value in vars(cls).items():
            home = getattr(getattr(value, "__code__", None), "co_filename", "")
            assert "auditing" not in home, (cls, key)
