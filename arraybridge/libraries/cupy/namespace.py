"""The namespace of native arrays."""

from __future__ import annotations

from ...xp.native_namespace import NativeNamespace, make_native_namespace
from .corrections import CORRECTIONS

TABLE = NativeNamespace("cupy", "array_api_compat.cupy", CORRECTIONS, takes_numpy=True)
native = make_native_namespace(TABLE)
