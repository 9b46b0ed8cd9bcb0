"""How many threads a copy may use; see docs/kernels.md, "Threads"."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextvars import ContextVar

from arraybridge.environment import whole_number

#: More threads than this do not raise the bandwidth of any known socket.
MAX_DEFAULT_THREADS = 16


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
