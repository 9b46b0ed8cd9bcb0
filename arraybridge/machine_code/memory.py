"""Memory for machine code (Linux)."""

from __future__ import annotations

import ctypes
from ctypes import c_int, c_long, c_size_t, c_void_p

__all__ = ["fill", "reserve"]

_READ, _WRITE, _EXECUTE = 1, 2, 4
_PRIVATE = 0x02 | 0x20  # and anonymous
_FAILED = 2**64 - 1


def reserve(size: int) -> int | None:
    """Map `size` bytes to be filled; None where the system does not allow it."""
    mmap = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_int, c_int, c_int, c_long)
    address: int | None = mmap(("mmap", ctypes.CDLL(None)))(
        None, size, _READ | _WRITE, _PRIVATE, -1, 0
    )
    return None if address == _FAILED else address


def fill(address: int, image: bytes) -> bool:
    """Write machine code to what was reserved, and make it executable; False if that fails.

    Never writable and executable at once, which hardened systems forbid.
    """
    ctypes.memmove(address, image, len(image))
    mprotect = ctypes.CFUNCTYPE(c_int, c_void_p, c_size_t, c_int)
    return not mprotect(("mprotect", ctypes.CDLL(None)))(address, len(image), _READ | _EXECUTE)
