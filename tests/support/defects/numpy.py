"""Where NumPy departs from the standard."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy

from . import Probe, shared


def _of_ml_dtypes(name: str) -> Any:
    return numpy.dtype(getattr(import_module("ml_dtypes"), name))


def _promotes_otherwise(xp: Any) -> bool:
    """Whether a data type of ml_dtypes beside a number becomes another than in a sum."""
    narrow = xp.ones(1, dtype=_of_ml_dtypes("bfloat16"))
    return bool(xp.result_type(narrow, 1.5) != (narrow + 1.5).dtype)


PROBES: dict[str, Probe] = {
    **shared.DIFF,
    **shared.MATRIX_RANK,
    **shared.ROLL,
    **shared.SHIFTS,
    **shared.LINSPACE,
    **shared.FROM_DLPACK,
    **shared.NUMPY_SPECIAL_CASES,
    **shared.FINFO,
    "asarray": lambda xp: not shared.raises(lambda: xp.asarray(numpy.asarray(["text"])), TypeError),
    "isdtype": lambda xp: not xp.isdtype(_of_ml_dtypes("bfloat16"), "real floating"),
    "result_type": _promotes_otherwise,
    "iinfo": lambda xp: xp.iinfo(_of_ml_dtypes("int4")).max != 7,
}
