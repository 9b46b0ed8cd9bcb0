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
from ctypes import Array, c_int, c_long, c_size_t, c_uint64, c_void_p, sizeof
from operator import index

from arraybridge.machine_code import blocks as native

from ..environment import whole_number
from . import pyapi
from .owners import Block

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

_Idle = tuple[int, int, int]  # bytes, minus the number in order of return, address
_HEAD = sizeof(native.Record)
_Image = c_uint64 * (_HEAD // 8)
_NEXT, _BASE, _SIZE, _USED, _HUGE_BYTES = range(5)  # words of a record
_LIST, _GIVEN, _TAKEN, _LIMIT = range(4)  # words of the table
_READ_WRITE, _PRIVATE, _HUGE = 3, 0x22, 14  # MADV_HUGEPAGE
_FAILED = 1 << 63  # from here on no address: MAP_FAILED
_MANY = 1 << 20  # more blocks than are ever on the list


class _Cache:
    """The blocks of this process that wait to be used again.

    An exception may come between any two lines (an interrupt), and a fork while another thread is
    between them. So a block always belongs to one that is there: to its `Block`, which has a record
    before there is memory, to the list or to `idle`; and what is kept is counted, not booked. The
    lock is held by statements of one line, as it would stay locked after an exception between the
    last line and the end of a longer one.
    """

    def __init__(self) -> None:
        libc = ctypes.CDLL(None)
        # Blocks are given back after the last Python object is gone: the table is never freed.
        table = pyapi.malloc(sizeof(native.Table))
        if not table:
            raise MemoryError("no memory for the cache of blocks")
        ctypes.memset(table, 0, sizeof(native.Table))
        words = native.Table.from_address(table)
        for name in ("munmap", "madvise"):
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
        self.calloc = ctypes.PYFUNCTYPE(c_void_p, c_size_t, c_size_t)(("calloc", libc))
        self.page, self.huge = os.sysconf("SC_PAGE_SIZE"), _huge_page()
        self.lock = threading.RLock()
        self.idle: list[_Idle] = []  # sorted
        self.loose: dict[int, int] = {}  # record of a block in use -> bytes that it did not want
        self.left: list[int | None] = [None]  # the first record that is still to be sorted in
        self.number = 0  # of the last one that came back
        self.given = 0  # bytes when the list was last emptied

    def take(self, nbytes: int, head: int) -> tuple[Block, int] | None:
        """Return a block and the address of its data; None where there is no memory."""
        need = -(-nbytes // self.page) * self.page
        block = Block(0, self.release, self.give)
        block.address = (self.calloc(1, _HEAD + head) or -_HEAD) + _HEAD
        if not block.address:
            return None
        record = _Image.from_address(block.address - _HEAD)
        self._reuse(record, block.address, need)
        block.fresh = not record[_BASE]
        if block.fresh:
            self._map(record, need)
            if not record[_BASE] and self.empty():
                self._map(record, need)
            if not record[_BASE]:
                return None
        record[_HUGE_BYTES] = self._lazy(record[_BASE], record[_SIZE])
        record[_USED] = need
        return block, record[_BASE]

    def _reuse(self, record: Array[c_uint64], address: int, need: int) -> None:
        """Give a record the memory of a block that waits, if one fits; else make room."""
        inside = self._is_inside()
        with self.lock: self._find(record, address, need, inside)  # noqa: E701 # fmt: skip

    def _find(self, record: Array[c_uint64], address: int, need: int, inside: bool) -> None:
        if inside:
            return
        self._gather()
        at = bisect_left(self.idle, (need,))
        if at == len(self.idle) or need < self.idle[at][0] * (1 - FIT):
            # Make room for this one, or blocks of sizes that are not wanted would stay.
            self._shrink(self.words[_LIMIT] - need)
            return
        found = self.idle[at]
        try:
            del self.idle[at]
            self.loose[address - _HEAD] = found[0] - need
            record[_SIZE], record[_BASE] = found[0], found[2]
        except BaseException:
            if not record[_BASE] and found not in self.idle:
                insort(self.idle, found)
            raise
        self._count()

    def _is_inside(self) -> bool:
        """Whether this thread holds the lock.

        So it does in a finalizer or a signal handler that came in between.
        """
        return bool(self.lock._is_owned())  # type: ignore[attr-defined]

    def _gather(self) -> None:
        """Sort in what was given back, and count; under the lock."""
        self.given = self.words[_GIVEN]  # first: what is given back from now on counts beside it
        while self.left[0] or self.words[_LIST]:
            if not self.left[0]:
                self.number += _MANY  # the last one that came back is the first on the list
                self.left[0] = self.collect(None)
            self._sort_in(self.left[0] or 0)
        self._count()

    def _sort_in(self, record: int) -> None:
        after, base, size = _Image.from_address(record)[:3]
        self.number -= 1
        entry, into = (size, -self.number, base), self.idle if 0 < base < _FAILED else []
        self.loose.pop(record, None)
        # One line, so that it is done or not; if a signal comes in it, memory is lost, not shared.
        self.left.__setitem__(0, after), insort(into, entry), pyapi.free(record)  # type: ignore[func-returns-value]

    def _count(self) -> int:
        """Tell `give` how many bytes are kept, and return it; under the lock."""
        found = sum(size for size, *_ in self.idle) + sum(self.loose.values())
        self.words[_TAKEN] = self.given - found
        return found

    def _shrink(self, rest: int) -> int:
        """Unmap the oldest until no more than ``rest`` bytes are kept; return how many went.

        Under the lock, after `_gather`.
        """
        before = found = self._count()
        while self.idle and found > rest:
            oldest = max(self.idle, key=_age)
            self.idle.remove(oldest), self.munmap(oldest[2], oldest[0])  # type: ignore[func-returns-value]
            found = self._count()
        return before - found

    def _map(self, record: Array[c_uint64], size: int) -> None:
        """Map fresh memory at a huge page's boundary, in huge pages as far as they go.

        A record that got none has the address 0.
        """
        huge = self.huge
        for room in (huge, 0) if huge else (0,):  # 0: a limit on address space, as it comes
            record[_SIZE] = size + room
            record[_BASE] = self.mmap(None, size + room, _READ_WRITE, _PRIVATE, -1, 0) or 0
            if record[_BASE] < _FAILED:
                break
            record[_BASE] = 0
        else:
            return
        if room:
            start, end = record[_BASE], record[_BASE] + record[_SIZE]
            base = -(-start // huge) * huge
            record[_BASE], record[_SIZE], *_ = base, size, self._trim(start, base, base + size, end)
            self.madvise(base, size // huge * huge, _HUGE)

    def _trim(self, start: int, base: int, stop: int, end: int) -> int:
        """Unmap what is before and behind a block."""
        return (self.munmap(start, base - start) if start < base else 0) or self.munmap(
            stop, end - stop
        )

    def _lazy(self, base: int, size: int) -> int:
        huge = self.huge
        return 0 if not huge or base % huge else size // huge * huge

    def empty(self) -> int:
        """Unmap all blocks that wait; return their bytes."""
        return self.shrink(-(1 << 62))

    def shrink(self, rest: int) -> int:
        """Unmap the oldest until no more than ``rest`` bytes are kept; return how many went."""
        inside = self._is_inside()
        with self.lock: return self._emptied(rest, inside)  # noqa: E701 # fmt: skip

    def _emptied(self, rest: int, inside: bool) -> int:
        if inside:
            return 0
        self._gather()
        return self._shrink(rest)

    def kept(self) -> int:
        """Bytes that are mapped without being asked for."""
        self.shrink(self.words[_LIMIT])
        with self.lock: return self._count()  # noqa: E701 # fmt: skip

    def begin_in_child(self) -> None:
        """Leave the parent's blocks to it: to write to them would copy their pages first."""
        self.lock = threading.RLock()
        self.loose.clear()  # some belong to threads that are not here
        self.empty()


def _age(block: _Idle) -> int:
    return block[1]


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


def take(nbytes: int, head: int) -> tuple[Block, int] | None:
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
        The block and the address of its data. None where there are no such blocks (another
        system), or no memory.
    """
    cache = _cache()
    return None if cache is None else cache.take(nbytes, head)


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
        at most. 0 where there is no such cache. A variable that holds no whole number is ignored,
        with a RuntimeWarning.

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
    told = whole_number("ARRAYBRIDGE_BLOCK_CACHE", 0, "bytes")
    if told is not None:
        return min(told, 2**62 - 1)
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
