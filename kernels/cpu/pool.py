"""Copies on several threads, in slices; see docs/kernels.md, "Threads".

The threads are native (``native/threads.c``), so that they start at once even if Python is busy,
and do not disturb the end of the interpreter. A free thread, or the caller, takes the next slice,
so a thread that wakes late costs nothing. They serve one caller at a time: a second one copies all
its slices, as every caller does without the C extension.

Numba's threads do not survive a fork: with OpenMP a child that calls a kernel again is killed, with
workqueue concurrent callers abort the process (numba/numba#8563, #10565).
"""

from __future__ import annotations

import contextlib
import os
from array import array
from collections.abc import Iterator
from contextvars import ContextVar
from ctypes import CFUNCTYPE, c_int64, memmove

from arraybridge.environment import whole_number
from arraybridge.native import C

#: More threads than this do not raise the bandwidth of any known socket.
MAX_DEFAULT_THREADS = 16

_LINE = 64  # bytes of the cache


def run(nest: int, record: int, dst: int, src: int, blocks: int, count: int) -> None:
    """Copy the blocks of a layout in `count` slices, on as many threads as are available.

    `nest` is the address of a function such as ``loops.nest``, which raises nothing, and can be
    called on several threads at once without the GIL. A free thread takes the next slice.
    """
    if C is not None:
        C.call_slices(nest, record, dst, src, blocks, count, get_num_threads())
    else:
        _NEST(nest)(record, dst, src, 0, blocks)


_NEST = CFUNCTYPE(None, *[c_int64] * 5)


def copy_run(dst: int, src: int, nbytes: int, count: int, *, past_cache: bool) -> None:
    """Copy one run of bytes to another that does not overlap it, in ``count`` slices.

    All but the first start at a cache line of the destination. Past the cache, memory is not read
    before it is overwritten; without the C extension ``memmove`` decides.
    """
    if C is None:
        memmove(dst, src, nbytes)
        return
    record = array("q", (nbytes, past_cache))
    lines = nbytes // _LINE + 1
    C.call_slices(0, record.buffer_info()[0], dst, src, lines, count, get_num_threads())


def _default() -> int:
    """Return the number from the environment, else one per core that this process may use."""
    wanted = whole_number("ARRAYBRIDGE_NUM_THREADS", 1, "threads")
    if wanted is not None:
        return wanted
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(cores or 1, MAX_DEFAULT_THREADS)


def _checked(n: int) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ValueError(f"the number of threads must be an int of at least 1, got {n!r}")
    return n


_number: int | None = None
_number_here: ContextVar[int | None] = ContextVar("arraybridge_num_threads", default=None)


def get_num_threads() -> int:
    """Return the number of threads that a copy may use, including the calling thread.

    Returns
    -------
    int
        The value of :func:`num_threads` in this context, else of :func:`set_num_threads`, else of
        the environment variable ``ARRAYBRIDGE_NUM_THREADS`` (ignored with a RuntimeWarning if it is
        not a positive integer), else the cores available to the process, at most 16.

    Examples
    --------
    >>> import arraybridge as ab
    >>> ab.get_num_threads() >= 1
    True
    >>> with ab.num_threads(1):
    ...     ab.get_num_threads()
    1
    """
    global _number
    here = _number_here.get()
    if here is not None:
        return here
    if _number is None:
        _number = _default()
    return _number


def set_num_threads(n: int | None) -> None:
    """Limit the number of threads that a copy may use, including the calling thread.

    Parameters
    ----------
    n : int or None
        At least 1; with 1, no thread is started. None restores the default.

    Raises
    ------
    ValueError
        If ``n`` is less than 1 or not an int.

    Examples
    --------
    >>> import arraybridge as ab
    >>> ab.set_num_threads(2)
    >>> ab.get_num_threads()
    2
    >>> ab.set_num_threads(None)                    # the default again
    """
    global _number
    _number = None if n is None else _checked(n)


@contextlib.contextmanager
def num_threads(n: int) -> Iterator[None]:
    """Limit the threads of copies in a ``with`` statement, in the current thread or task only.

    Parameters
    ----------
    n : int
        At least 1, as for :func:`set_num_threads`.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np
    >>> x = np.zeros((64, 64, 64)).transpose(2, 0, 1)
    >>> with ab.num_threads(1):                     # such as in a data loader's worker
    ...     y = ab.contiguous(x)
    """
    token = _number_here.set(_checked(n))
    try:
        yield
    finally:
        _number_here.reset(token)
