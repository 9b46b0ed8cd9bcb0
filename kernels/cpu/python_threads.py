"""The pool of threads where there is no C extension: threads of Python's.

One needs the GIL before and after each slice, and gives it up in between. The threads start when
they are first needed, and nothing waits for them when the interpreter ends.
"""

from __future__ import annotations

import os
import threading
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from ctypes import CFUNCTYPE, c_int64, memmove
from queue import SimpleQueue

_STACK = 4 << 20  # bytes a thread: kernels keep scratch buffers there


class _Job:
    """A function of the number of a slice, and the slices that nobody has taken yet."""

    def __init__(self, work: Callable[[int], object], count: int) -> None:
        self.work = work
        self.left = deque(range(count))
        self.helpers: list[threading.Lock] = []  # of all who have come; locked while they work

    def drain(self) -> None:
        with suppress(IndexError):
            while True:
                self.work(self.left.popleft())

    def help(self) -> None:
        lock = threading.Lock()
        with lock:
            self.helpers.append(lock)
            self.drain()

    def finish(self) -> None:
        """Drain, and wait for helpers that have a slice: one that comes later finds none.

        An interrupt is raised when all is done, as nobody may write to memory that its owner has
        back.
        """
        interrupt = None
        while True:
            try:
                self.drain()
                for lock in self.helpers[:]:
                    with lock:
                        pass
                break
            except BaseException as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt


class _Pool:
    """The threads of one process."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[_Job] = SimpleQueue()
        self.busy = threading.Lock()
        self.size = 0

    def serve(self) -> None:
        while True:
            self.jobs.get().help()

    def grow(self, size: int) -> None:
        """Have so many threads, or as many of them as the system gives."""
        before = threading.stack_size(_STACK)
        try:
            with suppress(RuntimeError):
                while self.size < size:
                    start_new_thread(self.serve, ())
                    self.size += 1
        finally:
            threading.stack_size(before)

    def run(self, job: _Job, helpers: int) -> None:
        if helpers <= 0 or not self.busy.acquire(blocking=False):
            job.finish()
            return
        try:
            if self.size < helpers:
                self.grow(helpers)
            for _ in range(min(helpers, self.size)):
                self.jobs.put(job)
            job.finish()
        finally:
            self.busy.release()


_pools: dict[int, _Pool] = {}  # by process: a forked child has none of its parent's threads


def _run(work: Callable[[int], object], count: int, threads: int) -> None:
    process = os.getpid()
    pool = _pools.get(process) or _pools.setdefault(process, _Pool())
    pool.run(_Job(work, count), min(threads, count) - 1)


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
