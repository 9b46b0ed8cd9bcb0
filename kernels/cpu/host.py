"""Sizes of the host's CPU: its widest vector and its last cache."""

from __future__ import annotations

import contextlib

__all__ = ["CACHE", "VECTOR"]


def _vector() -> int:
    try:
        from numpy._core._multiarray_umath import __cpu_features__ as has
    except ImportError:
        has = {}
    if has.get("AVX512BW") or has.get("AVX512_SKX"):
        return 64
    if has.get("AVX2"):
        return 32
    return 16


def _cache() -> int:
    """Read the size of the last cache on Linux; elsewhere assume 16 MiB."""
    units = {"K": 1 << 10, "M": 1 << 20}
    for level in (3, 2):
        with contextlib.suppress(OSError, ValueError, KeyError):
            with open(f"/sys/devices/system/cpu/cpu0/cache/index{level}/size") as file:
                size = file.read().strip()
            return int(size[:-1]) * units[size[-1]]
    return 1 << 24


#: Bytes of a vector: 64 (AVX-512 with byte and word operations), 32 (AVX2), else 16 (SSE2, NEON).
VECTOR = _vector()

#: Bytes of the last cache.
CACHE = _cache()
