"""Copies in host memory: how to copy a layout is found once, as a way, and then remembered.

A way is a few words for the thread pool (``native/threads.c``): a nest, the number of its blocks,
the most slices, what is added to the two addresses, and the nest's record. Nest 0 is the copy of
one run of bytes, whose record has their number and whether they bypass the cache. No way, ``b""``,
means that NumPy copies: below `least` bytes, or without a kernel.

Copies run without the GIL, and on several threads for large results. They are safe in a forked
child. The threads are native, so that they start at once even if Python is busy, and do not disturb
the end of the interpreter. They serve one caller at a time: a second one copies all its slices, as
every caller does without the C extension.

Numba's threads do not survive a fork: with OpenMP a child that calls a kernel again is killed, with
workqueue concurrent callers abort the process (numba/numba#8563, #10565).
"""

from __future__ import annotations

from array import array
from ctypes import CFUNCTYPE, c_int64, memmove
from functools import lru_cache

import numpy as np

from arraybridge.kernels.cpu import loader, plan, pool
from arraybridge.kernels.cpu.plan_types import STREAM_MIN_BYTES, Plan
from arraybridge.layout import Canonical, Memory, canonical
from arraybridge.native import C

#: The most bytes of a result that one thread copies alone: a second one takes 5 to 50 µs to wake,
#: and longer on a busy machine.
SINGLE_THREAD_MAX_BYTES = 1 << 20

#: The least bytes and blocks of a slice, whose first block is not prefetched.
MIN_SLICE_BYTES, MIN_SLICE_BLOCKS = 256 * 1024, 8

#: The most axes of an array in NumPy 2.
MAX_NDIM = 64

_WORD, _LINE = 8, 64  # bytes: of a word of a way, of a line of the cache


def copy(
    dst: int,
    src: int,
    shape: tuple[int, ...],
    dst_strides: tuple[int, ...],
    src_strides: tuple[int, ...],
    itemsize: int,
    stream: int | None = None,
    *,
    fresh: bool = False,
) -> None:
    """Copy one strided block of host memory to another.

    Parameters
    ----------
    dst, src : int
        Addresses of the item with all indices 0, of any alignment.
    shape : tuple of int
        Extents of any number of axes, including 0 and 1.
    dst_strides, src_strides : tuple of int
        In **bytes**, of any sign, including 0.
    itemsize : int
        Bytes per item, any positive number.
    stream : None
        For the signature that all kernels share; host memory has no streams.
    fresh : bool
        Whether the destination has no pages yet, for which another plan is faster.

    Raises
    ------
    ValueError
        If the tuples differ in length, or `stream` is not None.
    OverflowError
        If an extent or a stride does not fit in 64 bits.

    Notes
    -----
    The addresses cannot be checked here. Source and destination must not overlap each other, unless
    both are one run. The source may overlap itself (broadcasts, windows); if the destination does,
    each byte of it gets one of its sources, unspecified which.
    """
    if stream is not None:
        raise ValueError(f"host memory has no streams, got stream={stream!r}: pass None")
    form = canonical(shape, dst_strides, src_strides, itemsize)
    if not copied(dst, src, form, fresh):
        copy_by_numpy(dst + form.dst_offset, src + form.src_offset, *form[:4])


def copied(dst: int, src: int, form: Canonical, fresh: bool = False) -> bool:
    """Copy as `copy` does, unless NumPy is as fast; return whether that was done."""
    known = way_of(form, fresh)
    if known:
        run(known, dst, src)
    return known != b""


def copy_run(dst: int, src: int, nbytes: int, fresh: bool = False) -> None:
    """Copy ``nbytes`` bytes from the address ``src`` to ``dst``; the two runs may overlap."""
    run(_run_way(nbytes, fresh), dst, src)


def run(way: bytes, dst: int, src: int) -> None:
    """Copy by a way, on as many threads as are available and its bytes are worth."""
    if C is not None:
        C.run_way(way, dst, src, pool.get_num_threads())
        return
    words = array("q", way)
    nest, blocks, _, to, of = words[:5]
    if nest:
        record = words.buffer_info()[0] + 5 * _WORD
        _NEST(nest)(record, dst + to, src + of, 0, blocks)
    else:
        memmove(dst, src, words[5])


_NEST = CFUNCTYPE(None, *[c_int64] * 5)


@lru_cache(1024)
def way_of(form: Canonical, fresh: bool = False) -> bytes:
    """Return the way to copy a layout, ``b""`` where NumPy is as fast; `fresh` as for `copy`."""
    if not form.shape or 0 in form.shape:
        return _run_way(0 if form.shape else form.itemsize, fresh)
    made = plan.plan(form, fresh)
    if made.nbytes < least(made) and len(form.shape) <= MAX_NDIM:
        return b""
    return way(made, form.dst_offset, form.src_offset)


def way(made: Plan, to: int = 0, of: int = 0) -> bytes:
    """Return the way of a plan; `to` and `of` are added to the addresses."""
    inner, nest = loader.address(made.kernel), loader.nest(made.kernel)
    if inner is None or nest is None:
        return b""
    blocks, slices = made.blocks, 1
    if made.nbytes > SINGLE_THREAD_MAX_BYTES and not made.whole:
        slices = max(1, min(made.nbytes // MIN_SLICE_BYTES, blocks // MIN_SLICE_BLOCKS))
    words = array("q", (nest, blocks, slices, to + made.dst_offset, of + made.src_offset))
    return (words + made.record(inner)).tobytes()


def _run_way(nbytes: int, fresh: bool) -> bytes:
    """Return the way to copy one run of bytes.

    Slices of long runs are written past the cache, so that memory is not read before it is
    overwritten; ``memmove`` does so only for runs much longer than a slice. ``fresh`` memory,
    without pages yet, is in the cache after the system has cleared it, and is written there.
    """
    parted = nbytes > SINGLE_THREAD_MAX_BYTES and not loader.SWITCHED_OFF
    slices = nbytes // MIN_SLICE_BYTES if parted else 1
    past_cache = parted and nbytes >= STREAM_MIN_BYTES and not fresh
    words = 0, nbytes // _LINE + 1, slices, 0, 0, nbytes, past_cache
    return array("q", words).tobytes()


def least(made: Plan) -> int:
    """Return the least bytes for which a plan is as fast as NumPy's own copy, as measured."""
    kind, width = made.kernel[:2]
    if kind == "fill":
        return 256 << 10 if width >= 4 else SINGLE_THREAD_MAX_BYTES + 1
    if kind == "items" and width == 0 and made.item >= 192:
        return SINGLE_THREAD_MAX_BYTES + 1
    return 4 << 10 if (kind, width) in (("items", 1), ("reverse", 1)) else 0


def way_of_key(key: bytes) -> bytes:
    """Return the way of a layout that ``native/copies.c`` has written down.

    Its words: the item size, twice, plus whether the memory is fresh; extents; both strides in
    bytes.
    """
    size, *rest = array("q", key)
    n = len(rest) // 3
    shape, to, of = (tuple(rest[i * n : i * n + n]) for i in range(3))
    return way_of(canonical(shape, to, of, size >> 1), bool(size & 1))


def copy_by_numpy(
    dst: int,
    src: int,
    shape: tuple[int, ...],
    dst_strides: tuple[int, ...],
    src_strides: tuple[int, ...],
    itemsize: int,
) -> None:
    """Copy as `copy` does, with ``numpy.copyto``; at most `MAX_NDIM` axes."""
    if 0 in shape:
        return  # NumPy 2.1 ignores an array interface with a null pointer
    opaque = f"|V{itemsize}"  # bytes without meaning or alignment, which NumPy moves unchanged
    np.copyto(
        np.asarray(Memory(dst, shape, dst_strides, opaque)),
        np.asarray(Memory(src, shape, src_strides, opaque)),
    )
