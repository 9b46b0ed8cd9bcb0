"""Copies in host memory, by one of three functions.

===============  ==============================================
function         used for
===============  ==============================================
`copy_run`       one run of bytes on both sides
`copy_by_numpy`  at most `SMALL` items, or without a kernel
`copy_planned`   everything else
===============  ==============================================

The first and the last run without the GIL, and on several threads (`pool`) for large results. All
are safe in a forked child.
"""

from __future__ import annotations

from array import array
from ctypes import memmove
from functools import lru_cache
from math import prod

import numpy as np

from arraybridge.kernels.cpu import SMALL, loader, plan, pool
from arraybridge.kernels.cpu.plan_types import STREAM_MIN_BYTES, Plan
from arraybridge.layout import Canonical, Memory, canonical

#: The least bytes of a run that several threads copy, past the cache like every streamed result. A
#: smaller result stays in the cache, as it is probably used soon.
PARALLEL_MIN_BYTES = STREAM_MIN_BYTES

#: The most bytes of a result that one thread copies alone: a second one takes 5 to 50 µs to wake,
#: and longer on a busy machine.
SINGLE_THREAD_MAX_BYTES = 1 << 20

#: The least bytes and blocks of a slice, whose first block is not prefetched.
MIN_SLICE_BYTES, MIN_SLICE_BLOCKS = 256 * 1024, 8

#: Slices per thread: a free thread takes the next one, so that a late or slow thread costs little.
SLICES_PER_THREAD = 4

#: The most axes of an array in NumPy 2.
MAX_NDIM = 64


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
    dst, src = dst + form.dst_offset, src + form.src_offset
    if not form.shape:
        copy_run(dst, src, form.itemsize, fresh)
    elif _is_small(form) or not copy_planned(dst, src, plan.plan(form, fresh)):
        copy_by_numpy(dst, src, *form[:4])


def _is_small(form: Canonical) -> bool:
    items = prod(form.shape) * form.itemsize // min(form.itemsize, 16)
    return items <= SMALL and len(form.shape) <= MAX_NDIM


def copy_run(dst: int, src: int, nbytes: int, fresh: bool = False) -> None:
    """Copy ``nbytes`` bytes from the address ``src`` to ``dst``; the two runs may overlap.

    Slices are written past the cache, so that memory is not read before it is overwritten;
    ``memmove`` does so only for runs much longer than a slice. ``fresh`` memory, without pages yet,
    is in the cache after the system has cleared it, and is written there.
    """
    parted = nbytes >= PARALLEL_MIN_BYTES and abs(dst - src) >= nbytes and not loader.SWITCHED_OFF
    threads = pool.get_num_threads() if parted else 1
    if threads == 1:
        memmove(dst, src, nbytes)
    else:
        pool.copy_run(dst, src, nbytes, SLICES_PER_THREAD * threads, past_cache=not fresh)


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


def copy_planned(dst: int, src: int, made: Plan) -> bool:
    """Copy by a plan, on as many threads as its bytes are worth.

    The addresses must be those that the plan was made for. False if the kernel is unavailable; see
    ``loader.unavailable``.
    """
    inner, nest = loader.address(made.kernel), loader.nest(made.kernel)
    if inner is None or nest is None:
        return False
    record, blocks = _record(made, inner)
    count = 1
    if made.nbytes > SINGLE_THREAD_MAX_BYTES and not made.whole:
        threads = pool.get_num_threads()
        if threads > 1:
            most = made.nbytes // MIN_SLICE_BYTES, blocks // MIN_SLICE_BLOCKS
            count = max(min(*most, SLICES_PER_THREAD * threads), 1)
    dst, src = dst + made.dst_offset, src + made.src_offset
    pool.run(nest, record.buffer_info()[0], dst, src, blocks, count)
    return True


@lru_cache(1024)
def _record(made: Plan, inner: int) -> tuple[array[int], int]:
    return made.record(inner), made.blocks
