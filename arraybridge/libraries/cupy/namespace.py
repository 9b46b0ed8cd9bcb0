"""The namespace of native arrays."""

from __future__ import annotations

from ...xp.native import NativeNamespace, native_face
from .corrections import CORRECTIONS

TABLE = NativeNamespace("cupy", "array_api_compat.cupy", CORRECTIONS, takes_numpy=True)
native = native_face(TABLE)
