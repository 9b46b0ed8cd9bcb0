"""Memory for results, aligned to 64 bytes; large blocks are reused.

Fresh memory costs more than the copy that fills it, because the system clears every page. So a pool
keeps the memory of large results, up to a limit, for the next result of its size or slightly less,
once only the pool refers to it.

There is no lock: a thread that takes memory removes its entry from the dict in one step. An
exception at any line, or a fork, only leaves memory that is not reused.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from functools import cache
from itertools import count
from typing import Any

import numpy as np

from ..environment import whole_number

ALIGNMENT = 64  # bytes; JAX and TensorFlow require it for views

#: The smallest block in bytes that is reused; ``malloc`` reuses smaller ones as well.
LEAST = 1 << 22

#: The limit: this fraction of the memory that the process may use, and at most this many bytes.
FRACTION, MOST = 1 / 16, 512 << 20

#: A block is reused for results that are smaller by at most this fraction.
FIT = 1 / 8

_PAGE = 4096
_Key = tuple[int, int]  # bytes, minus a number: the smallest first, then the latest
_pool: dict[_Key, np.ndarray] = {}
_numbers = count()


class Block:
    """Memory of one result; `fresh`: as far as is known, the system has not assigned pages yet."""

    __slots__ = ("fresh", "memory")

    def __init__(self, memory: np.ndarray, fresh: bool) -> None:
        self.memory = memory
        self.fresh = fresh


def new_block(nbytes: int) -> tuple[Block, int]:
    """Return a block, and an address in it, a multiple of 64, with room for ``nbytes`` bytes."""
    if nbytes < LEAST:
        block = Block(_fresh(nbytes), True)
    else:
        nbytes = -(-nbytes // _PAGE) * _PAGE
        memory = _reused(nbytes)
        block = Block(_fresh(nbytes) if memory is None else memory, memory is None)
        room = cache_limit() - nbytes
        if memory is None and room >= 0:
            _shrink(room)
            _pool[nbytes, -next(_numbers)] = block.memory
    memory_of: Any = block.memory
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory_of))
    return block, -(-start // ALIGNMENT) * ALIGNMENT


def _fresh(nbytes: int) -> np.ndarray:
    for _ in range(2):
        with contextlib.suppress(MemoryError, ValueError):  # ValueError beyond 2**63
            return np.empty(nbytes + ALIGNMENT, np.uint8)
        if not empty_block_cache():
            break
    raise MemoryError(f"cannot allocate {nbytes:,} bytes")


def _reused(nbytes: int) -> np.ndarray | None:
    """Return unused memory that fits, or None."""
    for key in sorted(_pool):
        if nbytes <= key[0] <= nbytes / (1 - FIT) and _is_idle(key):
            memory = _pool.pop(key, None)
            if memory is not None:  # no other thread was faster
                _pool[key[0], -next(_numbers)] = memory
                return memory
    return None


def _is_idle(key: _Key) -> bool:
    """Return whether only the pool refers to some memory, so that it can be taken."""
    return sys.getrefcount(_pool.get(key)) <= _ALONE


_pool[0, 0] = np.empty(0)
_ALONE = sys.getrefcount(_pool.get((0, 0)))
_pool.clear()


def _shrink(most: int, in_use: bool = True) -> int:
    """Drop memory until the pool has at most `most` bytes; return how many were idle.

    The oldest idle blocks go first, then, if `in_use`, the oldest others, freed with their results.
    """
    freed = 0
    for key in sorted(_pool, key=lambda key: (not _is_idle(key), -key[1])):
        if sum(size for size, _ in list(_pool)) <= most:
            break
        idle = _is_idle(key)
        if (idle or in_use) and _pool.pop(key, None) is not None:
            freed += key[0] * idle
    return freed


def idle_bytes() -> int:
    """Return the bytes in the pool that no result uses."""
    return sum(key[0] for key in list(_pool) if _is_idle(key))


def empty_block_cache() -> int:
    """Return cached memory of deleted results to the system.

    The environment variable ``ARRAYBRIDGE_BLOCK_CACHE`` limits the cache; 0 turns it off.

    Returns
    -------
    int
        The number of bytes returned.

    Examples
    --------
    >>> import arraybridge as ab
    >>> ab.empty_block_cache() >= 0
    True
    >>> ab.empty_block_cache()                      # nothing is left
    0
    """
    return _shrink(0, in_use=False)


@cache
def cache_limit() -> int:
    """Return the limit from the environment, or a fraction of the memory that may be used."""
    given = whole_number("ARRAYBRIDGE_BLOCK_CACHE", 0, "bytes")
    if given is not None:
        return given
    sizes = [MOST]
    with contextlib.suppress(AttributeError, OSError, ValueError):  # not on Windows
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        sizes.append(int(memory * FRACTION))
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError), open(file) as limit:
            sizes.append(int(int(limit.read()) * FRACTION))
    return min(sizes)


if hasattr(os, "register_at_fork"):  # writing to the parent's memory would copy its pages
    os.register_at_fork(after_in_child=_pool.clear)
