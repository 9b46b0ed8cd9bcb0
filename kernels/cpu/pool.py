"""A pool of native threads for kernels that were cut into slices; see docs/kernels.md, "Threads".

They are made with ``pthread_create`` and run native code only (``machine_code.threads``), so that
they start at once whatever Python does, and the end of the interpreter neither waits for them nor
trips over them. A slice goes to whoever comes first, the caller among them, so a thread that wakes
late costs nothing. A pool serves one caller at a time: a second one does its slices alone.

Numba's threads do not survive a fork: on the OpenMP layer a child that calls a kernel again is
killed, on the workqueue layer concurrent callers abort the process (numba/numba#8563, #10565).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Iterator
from contextvars import ContextVar

from arraybridge.environment import whole_number
from arraybridge.kernels.cpu import loader
from arraybridge.machine_code.threads import Job, Pool

#: More threads than this do not raise the bandwidth of one socket that any is known to have.
MOST = 16

#: Bytes of stack a thread: kernels keep scratch buffers there; musl would give 128 KB, macOS 512.
_STACK = 4 << 20


class _Pool:
    """The memory and the threads of one process's pool."""

    def __init__(self, functions: loader.Functions) -> None:
        libc = ctypes.CDLL(None)
        self.run, self.serve = functions.run, functions.serve
        libc.calloc.restype = ctypes.c_void_p
        # Never freed: the threads look at it until the process is gone.
        self.address: int = libc.calloc(1, ctypes.c_size_t(ctypes.sizeof(Pool)))
        if not self.address:
            raise MemoryError("no memory for the pool of threads")
        for field, init in (
            (Pool.mutex, libc.pthread_mutex_init),
            (Pool.work, libc.pthread_cond_init),
            (Pool.done, libc.pthread_cond_init),
        ):
            if init(ctypes.c_void_p(self.address + field.offset), None):
                raise OSError(f"{init.__name__} failed")
        self.attributes = ctypes.create_string_buffer(256)
        libc.pthread_attr_init(self.attributes)
        libc.pthread_attr_setstacksize(self.attributes, ctypes.c_size_t(_STACK))
        self.create = libc.pthread_create
        self.detach = libc.pthread_detach
        self.size = 0
        self.full = False
        self.growing = threading.Lock()

    def grow(self, size: int) -> None:
        """Have `size` threads, or as many of them as the system gives."""
        from signal import SIG_BLOCK, SIG_SETMASK, pthread_sigmask, valid_signals

        with self.growing:
            if self.size >= size or self.full:
                return
            # A thread inherits the mask: signals go to Python's threads, whose calls they end.
            before = pthread_sigmask(SIG_BLOCK, valid_signals())
            try:
                while self.size < size:
                    thread = ctypes.c_void_p()
                    if self.create(
                        ctypes.byref(thread),
                        self.attributes,
                        ctypes.c_void_p(self.serve),
                        ctypes.c_void_p(self.address),
                    ):
                        self.full = True  # a limit on threads: do with what there is
                        return
                    self.detach(thread)
                    self.size += 1
            finally:
                pthread_sigmask(SIG_SETMASK, before)


_pool: _Pool | None = None
_pool_of = 0  # the process that it belongs to


def _here() -> _Pool | None:
    """The pool of this process, made on the first call; None where there can be none."""
    global _pool, _pool_of
    if _pool_of != os.getpid():
        functions = loader.functions()
        with loader.compiling():
            if _pool_of != os.getpid():
                try:
                    _pool = _Pool(functions) if functions else None
                except (AttributeError, MemoryError, OSError):
                    _pool = None  # no POSIX threads: the caller does every job
                _pool_of = os.getpid()
    return _pool


def run(kernel: int, records: int, stride: int, count: int) -> None:
    """Call a kernel once for each record, on as many threads as there are to be had.

    `kernel` is the address of a ``void(int64)`` that takes the address of a record, raises nothing,
    and may be called on several threads at once, each with a record of its own; the GIL is not held
    meanwhile. There are several records a thread, `stride` bytes apart: whoever is free takes the
    next.
    """
    pool = _here()
    threads = min(get_num_threads(), count)
    if pool is None or threads <= 1:
        call = ctypes.CFUNCTYPE(None, ctypes.c_int64)(kernel)
        for record in range(records, records + stride * count, stride):
            call(record)
        return
    if pool.size < threads - 1 and not pool.full:
        pool.grow(threads - 1)
    pool.run(pool.address, Job(kernel, records, stride, count), threads - 1)


def _default() -> int:
    """Threads by the environment, else one for each core that this process may use."""
    wanted = whole_number("ARRAYBRIDGE_NUM_THREADS", 1, "threads")
    if wanted is not None:
        return wanted
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(cores or 1, MOST)


def _checked(n: int) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ValueError(f"a number of threads is a whole number of at least 1, got {n!r}")
    return n


_number: int | None = None
_number_here: ContextVar[int | None] = ContextVar("arraybridge_num_threads", default=None)


def get_num_threads() -> int:
    """Threads that a copy may use here and now, the calling one counted.

    Returns
    -------
    int
        What `num_threads` says in this context, else what `set_num_threads` has said, else the
        environment variable ``ARRAYBRIDGE_NUM_THREADS``, else the number of cores that the process
        may use, `MOST` at most. A variable that holds no such number is ignored, with a
        RuntimeWarning.

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
    """Let copies use at most ``n`` threads from now on, the calling one counted.

    Parameters
    ----------
    n : int or None
        At least 1; 1 means that no thread is ever started. None: the default again.

    Raises
    ------
    ValueError
        If it is less than 1, or no int.

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
    """Let copies use at most ``n`` threads inside a ``with`` block, in this thread or task alone.

    Parameters
    ----------
    n : int
        At least 1, as for `set_num_threads`.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np
    >>> x = np.zeros((64, 64, 64)).transpose(2, 0, 1)
    >>> with ab.num_threads(1):                     # in a worker of a data loader, say
    ...     y = ab.contiguous(x)
    """
    token = _number_here.set(_checked(n))
    try:
        yield
    finally:
        _number_here.reset(token)
