"""The namespace of native arrays."""

from __future__ import annotations

from ...xp.native import NativeNamespace, native_face
from .corrections import CORRECTIONS, check_dtype

TABLE = NativeNamespace(
    "numpy", "array_api_compat.numpy", CORRECTIONS, check_dtype=check_dtype, takes_numpy=True
)
native = native_face(TABLE)
