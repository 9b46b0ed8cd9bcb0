"""Blocks for large results, used again when they are given back.

Fresh memory costs more than the copy that fills it: the system clears every page. So a block that
its last owner gave back stays mapped, up to a bound on the bytes of all such blocks, and is handed
out again for a result of its size or a little less. Its pages may be taken by the kernel at any
time before that (``MADV_FREE``): a machine short of memory gets them back without asking.

The way back is native code (``machine_code.blocks``), as a library may drop its array on any
thread. The way out is Python's, under a lock. Linux only; elsewhere all blocks are of ``malloc``.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from ctypes import c_char, c_int, c_long, c_size_t, c_void_p, sizeof
from operator import index
from struct import Struct
from typing import Any

from arraybridge.machine_code import blocks as native

from . import pyapi

__all__ = [
    "LEAST",
    "empty_block_cache",
    "get_block_cache_limit",
    "kept",
    "set_block_cache_limit",
    "take",
]

#: Bytes from which a block comes from here. Smaller ones ``malloc`` keeps as well as we could.
LEAST = pyapi.LARGE

#: The bound: this fraction of the memory that the process may use, and never more than so many.
FRACTION, MOST = 1 / 16, 512 << 20

#: A block serves what is smaller than it by no more than this fraction.
FIT = 1 / 8

_VARIABLE = "ARRAYBRIDGE_BLOCK_CACHE"
_Function = Callable[[int], Any]
_Idle = tuple[int, int, int]  # bytes, minus the number in order of return, address
_RECORD = Struct("6Q")
_HEAD = sizeof(native.Record)
_Image = c_char * _HEAD
_LIST, _GIVEN, _TAKEN, _LIMIT = range(4)  # words of the table
_READ_WRITE, _PRIVATE, _HUGE = 3, 0x22, 14  # MADV_HUGEPAGE


class _Cache:
    """The blocks of this process that wait to be used again."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None)
        # Blocks are given back after the last Python object is gone: the table is never freed.
        table = pyapi.malloc(sizeof(native.Table))
        if not table:
            raise MemoryError("no memory for the cache of blocks")
        ctypes.memset(table, 0, sizeof(native.Table))
        words = native.Table.from_address(table)
        for name in ("munmap", "madvise", "free"):
            setattr(words, name, ctypes.cast(getattr(libc, name), c_void_p).value)
        self.words = memoryview(words).cast("B").cast("q")
        self.words[_LIMIT] = _default()
        made = native.loaded(table)
        self.release = made["give"]
        self.give = ctypes.CFUNCTYPE(None, c_void_p)(made["give"])
        self.collect = ctypes.PYFUNCTYPE(c_void_p, c_void_p)(made["collect"])
        types = c_void_p, c_void_p, c_size_t, c_int, c_int, c_int, c_long
        self.mmap = ctypes.CFUNCTYPE(*types)(("mmap", libc))
        self.munmap = ctypes.CFUNCTYPE(c_int, c_void_p, c_size_t)(("munmap", libc))
        self.madvise = ctypes.CFUNCTYPE(c_int, c_void_p, c_size_t, c_int)(("madvise", libc))
        self.page, self.huge = os.sysconf("SC_PAGE_SIZE"), _huge_page()
        self.lock, self.inside = threading.RLock(), False
        self.idle: list[_Idle] = []  # sorted
        self.number = 0  # of the last one that came back

    def take(self, nbytes: int, head: int) -> tuple[int, int, bool] | None:
        """Return the addresses for a struct and for the data, and whether that has no pages yet.

        None where there is no memory.
        """
        need = -(-nbytes // self.page) * self.page
        record: int | None = pyapi.malloc(_HEAD + head)
        if not record:
            return None
        base, size, old = self._reuse(need)
        self._unmap(old)
        fresh = not base
        if fresh:
            base = self._map(need) or (self.empty() and self._map(need)) or 0
            if not base:
                pyapi.free(record)
                return None
        _Image.from_address(record).raw = _RECORD.pack(
            0, base, size, need, self._lazy(base, size), 0
        )
        return record + _HEAD, base, fresh

    def _reuse(self, need: int) -> tuple[int, int, list[_Idle]]:
        """Return the address and the bytes of a block that waits, 0 if none, and what must go."""
        with self._alone() as alone:
            if not alone:
                return 0, need, []
            self._gather()
            at = bisect_left(self.idle, (need,))
            if at < len(self.idle) and need >= self.idle[at][0] * (1 - FIT):
                size, _, base = self.idle.pop(at)
                self.words[_TAKEN] += need
                return base, size, []
            # Make room for this one, or blocks of sizes that are not wanted would stay.
            return 0, need, self._oldest(self.words[_LIMIT] - need)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[bool]:
        """Hold the lock; False where this thread is inside already.

        So it is in a finalizer or a signal handler that came in between.
        """
        with self.lock:
            alone, self.inside = not self.inside, True
            try:
                yield alone
            finally:
                self.inside = not alone

    def _gather(self) -> None:
        """Sort in what was given back; under the lock."""
        if not self.words[_LIST]:
            return
        found = []
        record = self.collect(None)
        while record:
            after, base, size, *_ = _RECORD.unpack_from(_Image.from_address(record))
            found.append((size, base))
            pyapi.free(record)
            record = after
        for size, base in reversed(found):  # the last one that came back is the first on the list
            self.number += 1
            insort(self.idle, (size, -self.number, base))

    def _oldest(self, rest: int) -> list[_Idle]:
        """Take out the oldest blocks until no more than ``rest`` bytes are kept; under the lock."""
        words, old = self.words, []
        while self.idle and words[_GIVEN] - words[_TAKEN] > rest:
            oldest = max(self.idle, key=lambda block: block[1])
            self.idle.remove(oldest)
            words[_TAKEN] += oldest[0]
            old.append(oldest)
        return old

    def _map(self, size: int) -> int | None:
        """Map fresh memory at a huge page's boundary, in huge pages as far as they go."""
        huge = self.huge
        start = self._mmap(size + huge)
        if start is None:  # a limit on address space: as it comes
            return self._mmap(size)
        if not huge:
            return start
        base = -(-start // huge) * huge
        if base > start:
            self.munmap(start, base - start)
        self.munmap(base + size, start + huge - base)
        self.madvise(base, size // huge * huge, _HUGE)
        return base

    def _mmap(self, size: int) -> int | None:
        address: int | None = self.mmap(None, size, _READ_WRITE, _PRIVATE, -1, 0)
        return None if address is None or address == 2**64 - 1 else address

    def _lazy(self, base: int, size: int) -> int:
        huge = self.huge
        return 0 if not huge or base % huge else size // huge * huge

    def _unmap(self, blocks: list[_Idle]) -> int:
        for size, _, base in blocks:
            self.munmap(base, size)
        return sum(size for size, *_ in blocks)

    def empty(self) -> int:
        """Unmap all blocks that wait; return their bytes."""
        return self.shrink(-(1 << 62))

    def shrink(self, rest: int) -> int:
        """Unmap the oldest until no more than ``rest`` bytes are kept; return how many went."""
        with self._alone() as alone:
            if alone:
                self._gather()
            old = self._oldest(rest) if alone else []
        return self._unmap(old)

    def kept(self) -> int:
        """Bytes that are mapped without being asked for."""
        return self.words[_GIVEN] - self.words[_TAKEN]

    def begin_in_child(self) -> None:
        """Leave the parent's blocks to it: to write to them would copy their pages first."""
        self.lock, self.inside = threading.RLock(), False
        self.empty()


_caches: dict[None, _Cache | None] = {}


def _cache() -> _Cache | None:
    """Return this process's cache, made on the first call; None where there can be none."""
    try:
        return _caches[None]
    except KeyError:
        pass
    made = None
    if sys.platform == "linux":
        with contextlib.suppress(ImportError, AttributeError, OSError):
            made = _Cache()
    return _caches.setdefault(None, made)


def take(nbytes: int, head: int) -> tuple[int, int, bool, int, _Function] | None:
    """Return a block of at least ``nbytes`` bytes, whose contents are anything.

    Parameters
    ----------
    nbytes : int
        At least `LEAST`.
    head : int
        Bytes of its DLPack struct.

    Returns
    -------
    tuple or None
        The addresses of the struct and of the data; whether the data has no pages yet; the address
        of the struct's deleter, and the deleter as a function. None where there are no such blocks
        (another system), or no memory.
    """
    cache = _cache()
    taken = cache and cache.take(nbytes, head)
    return (*taken, cache.release, cache.give) if cache and taken else None


def kept() -> int:
    """Return the bytes that wait to be used again, or are more than their users asked for."""
    cache = _caches.get(None)
    return 0 if cache is None else cache.kept()


def get_block_cache_limit() -> int:
    """Return the limit on the memory of dropped results that is kept for later ones.

    Returns
    -------
    int
        What `set_block_cache_limit` has set, else the environment variable
        ``ARRAYBRIDGE_BLOCK_CACHE``, else a sixteenth of the memory that the process may use, 512 MB
        at most. 0 where there is no such cache.

    Raises
    ------
    ValueError
        If the environment variable is not a number.

    Examples
    --------
    >>> import arraybridge as ab
    >>> ab.set_block_cache_limit(64 << 20)
    >>> ab.get_block_cache_limit()
    67108864
    >>> ab.set_block_cache_limit(None)              # the default again
    """
    cache = _cache()
    return 0 if cache is None else cache.words[_LIMIT]


def set_block_cache_limit(nbytes: int | None) -> None:
    """Limit the memory of dropped results that is kept for later ones.

    Parameters
    ----------
    nbytes : int or None
        The limit in bytes; 0 keeps nothing, None restores the default.

    Raises
    ------
    ValueError
        If it is negative, or not an int.

    Examples
    --------
    >>> import arraybridge as ab
    >>> ab.set_block_cache_limit(0)                 # every dropped result goes back to the system
    >>> ab.get_block_cache_limit()
    0
    >>> ab.set_block_cache_limit(None)              # the default again
    """
    limit = _default() if nbytes is None else _whole(nbytes)
    cache = _cache()
    if cache is not None:
        cache.words[_LIMIT] = limit
        cache.shrink(limit)


def _whole(nbytes: object) -> int:
    with contextlib.suppress(TypeError):
        limit = -1 if isinstance(nbytes, bool) else index(nbytes)  # type: ignore[arg-type]
        if 0 <= limit < 2**62:
            return limit
    raise ValueError(f"a limit is a whole number of bytes, 0 or more, got {nbytes!r}")


def empty_block_cache() -> int:
    """Return the memory of dropped results to the system.

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
    cache = _caches.get(None)
    return 0 if cache is None else cache.empty()


def _default() -> int:
    """Bytes by the environment, else a part of the memory that this process may use."""
    told = os.environ.get(_VARIABLE, "").strip()
    if told:
        if not told.isdecimal():
            raise ValueError(f"{_VARIABLE}={told!r}: expected a whole number of bytes")
        return min(int(told), 2**62 - 1)
    sizes = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError), open(file) as limit:
            sizes.append(int(limit.read()))
    return min(int(min(sizes) * FRACTION), MOST)


def _huge_page() -> int:
    """Return the bytes of a huge page; 0 where the system gives none."""
    folder = "/sys/kernel/mm/transparent_hugepage/"
    found = 0
    with contextlib.suppress(OSError, ValueError), open(folder + "hpage_pmd_size") as size:
        found = int(size.read())
    with contextlib.suppress(OSError), open(folder + "enabled") as enabled:
        return 0 if "[never]" in enabled.read() or found > LEAST else found
    return 0


def _after_fork_in_child() -> None:
    cache = _caches.get(None)
    if cache is not None:
        cache.begin_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
