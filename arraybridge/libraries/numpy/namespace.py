"""The namespace of native arrays."""

from __future__ import annotations

from ...xp.native_namespace import NativeNamespace, make_native_namespace
from .corrections import CORRECTIONS, check_dtype

TABLE = NativeNamespace(
    "numpy", "array_api_compat.numpy", CORRECTIONS, check_dtype=check_dtype, takes_numpy=True
)
native = make_native_namespace(TABLE)
