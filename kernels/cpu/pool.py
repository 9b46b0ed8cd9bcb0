"""Threads of our own for kernels that were cut into slices.

The threads are made with ``pthread_create`` and run native code only: they never take the GIL, so
they start at once whatever Python does, and the end of the interpreter neither waits for them
nor trips over them. They sleep on a condition between two jobs. The caller takes slices as well,
from the first moment; a slice belongs to whoever comes first, so that a thread that wakes late
costs nothing.

A pool serves one caller at a time. A second one, at the same time, does its slices alone: nothing
waits for a thread that another job holds, and the machine is not asked for more threads than it
has. A forked child has none of the parent's threads; it makes its own when it first needs them.

Numba's own threads would not do: on the OpenMP layer a forked child that calls a kernel
again is killed, on the workqueue layer concurrent callers abort the process (numba/numba#8563,
#10565).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Iterator
from contextvars import ContextVar

from arraybridge.kernels.cpu import loader
from arraybridge.kernels.cpu.handwritten import linked

__all__ = ["get_num_threads", "num_threads", "run", "set_num_threads"]

#: More threads than this do not raise the bandwidth of one socket that any is known to have.
MOST = 16

_IR = """
define internal void @drain(ptr %pool) {
entry:
  %kernel_at = getelementptr i8, ptr %pool, i64 392
  %records_at = getelementptr i8, ptr %pool, i64 400
  %stride_at = getelementptr i8, ptr %pool, i64 408
  %count_at = getelementptr i8, ptr %pool, i64 416
  %next_at = getelementptr i8, ptr %pool, i64 448
  %kernel = load ptr, ptr %kernel_at
  %records = load i64, ptr %records_at
  %stride = load i64, ptr %stride_at
  %count = load i64, ptr %count_at
  br label %take
take:
  %i = atomicrmw add ptr %next_at, i64 1 seq_cst
  %more = icmp slt i64 %i, %count
  br i1 %more, label %work, label %done
work:
  %offset = mul i64 %i, %stride
  %record = add i64 %records, %offset
  call void %kernel(i64 %record)
  br label %take
done:
  ret void
}

define ptr @serve(ptr %pool) {
entry:
  %work_at = getelementptr i8, ptr %pool, i64 128
  %done_at = getelementptr i8, ptr %pool, i64 256
  %generation_at = getelementptr i8, ptr %pool, i64 384
  %kernel_at = getelementptr i8, ptr %pool, i64 392
  %helpers_at = getelementptr i8, ptr %pool, i64 424
  %active_at = getelementptr i8, ptr %pool, i64 432
  %l0 = call i32 @pthread_mutex_lock(ptr %pool)
  br label %look
look:
  %seen = phi i64 [ 0, %entry ], [ %seen, %sleep ], [ %generation, %finished ]
  %generation = load i64, ptr %generation_at
  %kernel = load i64, ptr %kernel_at
  %helpers = load i64, ptr %helpers_at
  %new = icmp ne i64 %generation, %seen
  %open = icmp ne i64 %kernel, 0
  %room = icmp sgt i64 %helpers, 0
  %both = and i1 %new, %open
  %all = and i1 %both, %room
  br i1 %all, label %join, label %sleep
sleep:
  %w0 = call i32 @pthread_cond_wait(ptr %work_at, ptr %pool)
  br label %look
join:
  %fewer = sub i64 %helpers, 1
  store i64 %fewer, ptr %helpers_at
  %a0 = load i64, ptr %active_at
  %a1 = add i64 %a0, 1
  store i64 %a1, ptr %active_at
  %u0 = call i32 @pthread_mutex_unlock(ptr %pool)
  call void @drain(ptr %pool)
  %l1 = call i32 @pthread_mutex_lock(ptr %pool)
  %a2 = load i64, ptr %active_at
  %a3 = sub i64 %a2, 1
  store i64 %a3, ptr %active_at
  %last = icmp eq i64 %a3, 0
  br i1 %last, label %tell, label %finished
tell:
  %s0 = call i32 @pthread_cond_signal(ptr %done_at)
  br label %finished
finished:
  br label %look
}

define void @run(ptr %pool, i64 %kernel, i64 %records, i64 %stride, i64 %count, i64 %helpers) {
entry:
  %work_at = getelementptr i8, ptr %pool, i64 128
  %done_at = getelementptr i8, ptr %pool, i64 256
  %generation_at = getelementptr i8, ptr %pool, i64 384
  %kernel_at = getelementptr i8, ptr %pool, i64 392
  %records_at = getelementptr i8, ptr %pool, i64 400
  %stride_at = getelementptr i8, ptr %pool, i64 408
  %count_at = getelementptr i8, ptr %pool, i64 416
  %helpers_at = getelementptr i8, ptr %pool, i64 424
  %active_at = getelementptr i8, ptr %pool, i64 432
  %next_at = getelementptr i8, ptr %pool, i64 448
  %busy_at = getelementptr i8, ptr %pool, i64 512
  %call = inttoptr i64 %kernel to ptr
  %swap = cmpxchg ptr %busy_at, i64 0, i64 1 seq_cst seq_cst
  %ours = extractvalue { i64, i1 } %swap, 1
  br i1 %ours, label %post, label %alone
alone:
  %i = phi i64 [ 0, %entry ], [ %j, %one ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %out
one:
  %offset = mul i64 %i, %stride
  %record = add i64 %records, %offset
  call void %call(i64 %record)
  %j = add i64 %i, 1
  br label %alone
post:
  %l0 = call i32 @pthread_mutex_lock(ptr %pool)
  store i64 %kernel, ptr %kernel_at
  store i64 %records, ptr %records_at
  store i64 %stride, ptr %stride_at
  store i64 %count, ptr %count_at
  store i64 %helpers, ptr %helpers_at
  store i64 0, ptr %next_at
  %g0 = load i64, ptr %generation_at
  %g1 = add i64 %g0, 1
  store i64 %g1, ptr %generation_at
  %u0 = call i32 @pthread_mutex_unlock(ptr %pool)
  %b0 = call i32 @pthread_cond_broadcast(ptr %work_at)
  call void @drain(ptr %pool)
  %l1 = call i32 @pthread_mutex_lock(ptr %pool)
  store i64 0, ptr %kernel_at
  br label %look
look:
  %active = load i64, ptr %active_at
  %none = icmp eq i64 %active, 0
  br i1 %none, label %free, label %wait
wait:
  %w0 = call i32 @pthread_cond_wait(ptr %done_at, ptr %pool)
  br label %look
free:
  %u1 = call i32 @pthread_mutex_unlock(ptr %pool)
  store atomic i64 0, ptr %busy_at seq_cst, align 8
  br label %out
out:
  ret void
}
"""
# What `_IR` takes at which byte of the pool: 0 a mutex, 128 the condition "there is work", 256 the
# condition "the last helper has left" (128 bytes are more than any system's); then 64-bit words:
# 384 the number of the job, 392 its kernel or 0, 400 the address of its records, 408 bytes from one
# to the next, 416 how many, 424 how many threads may still join, 432 how many have; and, each on
# a cache line of its own, 448 the next slice, 512 whether somebody has the pool.
_SIZE = 576

#: Bytes of stack a thread: kernels keep scratch buffers there; musl would give 128 KB, macOS 512.
_STACK = 4 << 20

_CALLED = (
    "pthread_mutex_lock",
    "pthread_mutex_unlock",
    "pthread_cond_wait",
    "pthread_cond_signal",
    "pthread_cond_broadcast",
)


class _Pool:
    """The memory and the threads of one process's pool."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None)
        self.run, self.serve = _functions()
        # Never freed: the threads look at it until the process is gone.
        self.memory = ctypes.create_string_buffer(_SIZE + 64)
        _kept.append(self.memory)
        self.address = -(-ctypes.addressof(self.memory) // 64) * 64
        pointer = ctypes.c_void_p
        if libc.pthread_mutex_init(pointer(self.address), None):
            raise OSError("pthread_mutex_init failed")
        for offset in (128, 256):
            if libc.pthread_cond_init(pointer(self.address + offset), None):
                raise OSError("pthread_cond_init failed")
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


_kept: list = []
_compiled: tuple | None = None
_pool: _Pool | None = None
_pool_of = 0  # the process that it belongs to


def _functions() -> tuple:
    """``run`` as a ctypes function and the address of ``serve``; compiled once, kept for good."""
    global _compiled
    if _compiled is None:
        run, serve = linked(_IR, _CALLED, ("run", "serve"))
        _compiled = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 6)(run), serve
    return _compiled


def _here() -> _Pool | None:
    """The pool of this process, made on the first call; None where there can be none."""
    global _pool, _pool_of
    if _pool_of != os.getpid():
        with loader.compiling():
            if _pool_of != os.getpid():
                try:
                    _pool = _Pool()
                except Exception:
                    # No llvmlite, no memory for it, no POSIX threads: the caller does every job.
                    _pool = None
                _pool_of = os.getpid()
    return _pool


def run(kernel: int, records: int, stride: int, count: int) -> None:
    """Call a kernel once for each record, on as many threads as there are to be had.

    Parameters
    ----------
    kernel : int
        Address of a ``void(int64)`` that takes the address of a record, raises nothing, and may be
        called on several threads at once, each with a record of its own.
    records : int
        Address of the first record.
    stride : int
        Bytes from one record to the next.
    count : int
        How many there are. Several a thread are well: whoever is free takes the next.

    Notes
    -----
    Returns when every call has. The GIL is not held meanwhile.
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
    pool.run(pool.address, kernel, records, stride, count, threads - 1)


def _default() -> int:
    """Threads by the environment, else one for each core that this process may use."""
    told = os.environ.get("ARRAYBRIDGE_NUM_THREADS", "").strip()
    if told:
        try:
            return _checked(int(told))
        except ValueError:
            raise ValueError(
                f"ARRAYBRIDGE_NUM_THREADS={told!r}: expected a whole number of at least 1"
            ) from None
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
        may use, `MOST` at most.

    Raises
    ------
    ValueError
        If the environment variable is no number.
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
    """
    global _number
    _number = None if n is None else _checked(n)


@contextlib.contextmanager
def num_threads(n: int) -> Iterator[None]:
    """Let copies use at most ``n`` threads inside a ``with`` block, in this thread or task alone.

    Parameters
    ----------
    n : int
        As for `set_num_threads`.
    """
    token = _number_here.set(_checked(n))
    try:
        yield
    finally:
        _number_here.reset(token)
