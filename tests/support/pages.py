"""Memory between pages that fault: whoever reads or writes a byte too many dies at once."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

__all__ = ["Pages"]

_PAGE = mmap.PAGESIZE
_NOTHING = 0  # PROT_NONE, which Python's mmap does not name

_libc = ctypes.CDLL(None, use_errno=True)


class Pages:
    """A block of `nbytes` bytes between two pages that may be neither read nor written.

    It starts `start` bytes after the first guard; of None, it ends at the last. ``address`` is the
    block's, ``bytes`` all that lies between the guards: the block, and what fills its pages.
    """

    def __init__(self, nbytes: int, start: int | None = 0) -> None:
        self._size = -(-(nbytes + (start or 0)) // _PAGE) * _PAGE or _PAGE
        self._map = mmap.mmap(-1, self._size + 2 * _PAGE)
        whole = np.frombuffer(self._map, np.uint8)
        self._first = whole.ctypes.data + _PAGE
        self.bytes = whole[_PAGE : _PAGE + self._size]
        self.address = self._first + (self._size - nbytes if start is None else start)
        for guard in (self._first - _PAGE, self._first + self._size):
            _protect(guard, _PAGE, _NOTHING)

    def lock(self) -> None:
        """Let nobody write to the block any more."""
        _protect(self._first, self._size, mmap.PROT_READ)


def _protect(address: int, nbytes: int, protection: int) -> None:
    if _libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(nbytes), protection):
        raise OSError(ctypes.get_errno(), "mprotect")
