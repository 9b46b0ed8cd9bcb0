"""The namespace of native arrays."""

from __future__ import annotations

from typing import Any

import array_api_strict as xp

from ...xp.integers import Wide
from ...xp.native_namespace import NativeNamespace, make_native_namespace
from ...xp.standard import EXTENSIONS
from .corrections import CORRECTIONS


def _as_scalar(value: int, dtype: Any) -> float:
    """Convert an integer beyond int64 for use with a floating-point array."""
    if xp.isdtype(dtype, "integral"):
        raise OverflowError(f"Python integer {value} out of bounds for {dtype}")
    return float(value)


WIDE = Wide(_as_scalar)
TABLE = NativeNamespace(
    "array_api_strict",
    "array_api_strict",
    CORRECTIONS,
    handlers=(WIDE,),
    switched=(*EXTENSIONS, "__array_api_version__"),
)
native = make_native_namespace(TABLE)
