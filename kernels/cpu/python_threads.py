"""The pool of threads without the C extension: a ``ThreadPoolExecutor``.

A Python thread needs the GIL before and after each slice, but not during the copy.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from ctypes import CFUNCTYPE, c_int64, memmove

_STACK = 4 << 20  # bytes per thread, for the scratch buffers of kernels
#: The pool and its size by process, as a forked child has no threads.
_pools: dict[int, tuple[ThreadPoolExecutor, int]] = {}


def _submit(work: Callable[[], None], count: int) -> list[Future[None]]:
    """Run `work` on ``count`` threads of the pool, or as many as the system allows."""
    made: list[Future[None]] = []
    if count <= 0:
        return made
    pool, size = _pools.get(os.getpid(), (None, 0))
    before = threading.stack_size(_STACK)
    try:
        with suppress(RuntimeError):  # no more threads, or the interpreter is ending
            if pool is None or size < count:
                pool = ThreadPoolExecutor(count)
                _pools[os.getpid()] = pool, count  # ends the threads of the previous pool
            made.extend(pool.submit(work) for _ in range(count))
    finally:
        threading.stack_size(before)
    return made


def _run(work: Callable[[int], object], count: int, threads: int) -> None:
    """Do all slices; return, or raise an interrupt, once no thread works on one any more."""
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
    """Copy a run of bytes; ``memmove`` decides whether to write past the cache."""

    def copy(i: int) -> None:
        start, stop = nbytes * i // count, nbytes * (i + 1) // count
        memmove(dst + start, src + start, stop - start)

    _run(copy, count, threads)
