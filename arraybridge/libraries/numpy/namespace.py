"""The namespace of native arrays."""

from __future__ import annotations

from ...xp.build import NativeNamespace, make_native_namespace
from .corrections import CORRECTIONS

TABLE = NativeNamespace("numpy", "array_api_compat.numpy", CORRECTIONS)
native = make_native_namespace(TABLE)
