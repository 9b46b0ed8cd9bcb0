"""The pool of threads where there is no C extension: a ``ThreadPoolExecutor``.

A thread of Python's needs the GIL before and after each slice, and gives it up in between.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from ctypes import CFUNCTYPE, c_int64, memmove

_STACK = 4 << 20  # bytes a thread: kernels keep scratch buffers there
#: By process, as a forked child has no threads: the pool, and how many it may have.
_pools: dict[int, tuple[ThreadPoolExecutor, int]] = {}


def _submit(work: Callable[[], None], count: int) -> list[Future[None]]:
    """Have so many threads of the pool do it, or as many of them as the system gives."""
    made: list[Future[None]] = []
    if count <= 0:
        return made
    pool, size = _pools.get(os.getpid(), (None, 0))
    before = threading.stack_size(_STACK)
    try:
        with suppress(RuntimeError):  # also where the interpreter ends
            if pool is None or size < count:
                pool = ThreadPoolExecutor(count)
                _pools[os.getpid()] = pool, count  # the threads of the one before end
            made.extend(pool.submit(work) for _ in range(count))
    finally:
        threading.stack_size(before)
    return made


def _run(work: Callable[[int], object], count: int, threads: int) -> None:
    """Do all slices; return, or raise an interrupt, when nobody is at work on one any more."""
    left = deque(range(count))

    def drain() -> None:
        with suppress(IndexError):
            while True:
                work(left.popleft())

    helpers = _submit(drain, min(threads, count) - 1)
    interrupt = None
    while True:
        try:
            drain()
            while helpers:
                if helpers[-1].cancel() or helpers[-1].exception() is None:
                    helpers.pop()
            break
        except BaseException as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


def call_slices(kernel: int, records: int, stride: int, count: int, threads: int) -> None:
    """Call a kernel, the address of a ``void(int64)``, once for each record."""
    call = CFUNCTYPE(None, c_int64)(kernel)
    _run(lambda i: call(records + i * stride), count, threads)


def copy_slices(
    dst: int, src: int, nbytes: int, past_cache: bool, count: int, threads: int
) -> None:
    """Copy a run of bytes; past the cache goes what ``memmove`` finds long enough."""

    def copy(i: int) -> None:
        start, stop = nbytes * i // count, nbytes * (i + 1) // count
        memmove(dst + start, src + start, stop - start)

    _run(copy, count, threads)
