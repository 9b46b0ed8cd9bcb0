"""What is known of the host's CPU: its widest vector, and what is too large for its caches."""

from __future__ import annotations

import contextlib

__all__ = ["STREAM", "VECTOR"]


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

#: Bytes of a result from which on it is written past the caches: half of the last one, but no more
#: than a process can hope to have of one that many cores share. With 300 MB of it (2 cores of a
#: virtual machine), results of 8 to 64 MB were copied 1.3 to 2.7 times as fast past it, and read
#: after that they still won.
STREAM = min(_cache() // 2, 8 << 20)
