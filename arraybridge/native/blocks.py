"""Memory for results, aligned to 64 bytes; the C extension keeps that of dropped ones (`blocks.c`).

Without the extension, NumPy allocates all of it.
"""

import contextlib
import ctypes
import os
import sys
from functools import cache
from typing import Any

import numpy as np

from ..environment import whole_number
from . import C

ALIGNMENT = 64  # bytes; JAX and TensorFlow require it for views

#: The limit: this fraction of the memory that the process may use, and at most this many bytes.
FRACTION, MOST = 1 / 16, 512 << 20


def new_block(nbytes: int) -> tuple[object, int, bool]:
    """Return memory of a result: its owner, its address, and whether it has no pages yet.

    The address is a multiple of 64. As far as is known, the system has not assigned pages to fresh
    memory, and clears each when it is first written.
    """
    if C is not None:
        made: tuple[object, int, bool] = C.new_block(nbytes)
        return made
    try:
        memory: Any = np.empty(nbytes + ALIGNMENT, np.uint8)
    except (MemoryError, ValueError):  # ValueError beyond 2**63
        raise MemoryError(f"cannot allocate {nbytes} bytes") from None
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    return memory, -(-start // ALIGNMENT) * ALIGNMENT, True


def idle_bytes() -> int:
    """Return the bytes that are kept of dropped results."""
    return 0 if C is None else int(C.idle_bytes())


def empty_block_cache() -> int:
    """Return cached memory of dropped results to the system.

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
    return 0 if C is None else int(C.empty_blocks())


@cache
def get_block_cache_limit() -> int:
    """Return how much memory of dropped results is kept for later ones.

    Returns
    -------
    int
        Bytes: the environment variable ``ARRAYBRIDGE_BLOCK_CACHE``, where 0 turns the cache off; by
        default 1/16 of the memory available to the process, at most 512 MB. Without the C
        extension, 0.

    Examples
    --------
    >>> import arraybridge as ab
    >>> ab.get_block_cache_limit() >= 0
    True
    """
    if C is None:
        return 0
    given = whole_number("ARRAYBRIDGE_BLOCK_CACHE", 0, "bytes")
    if given is not None:
        return min(given, sys.maxsize)
    sizes = [MOST]
    with contextlib.suppress(AttributeError, OSError, ValueError):  # not on Windows
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        sizes.append(int(memory * FRACTION))
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError), open(file) as limit:
            sizes.append(int(int(limit.read()) * FRACTION))
    return min(sizes)


if C is not None:
    C.limit_blocks(get_block_cache_limit)  # asked for the first block
