"""Copies in host memory: one run, few bytes, or any strides.

`copy` takes the cheapest of three ways that is right:

=========  ===============================================  ==================
way        taken for                                        loads
=========  ===============================================  ==================
``run``    one run of bytes on both sides                   nothing (memmove)
``small``  at most `SMALL` bytes, the kernel not loaded     NumPy
``any``    everything else                                  Numba, once
=========  ===============================================  ==================

No way keeps the GIL while it moves many bytes, none starts a thread, and none leaves anything in
a state that a forked child could trip over.
"""

from __future__ import annotations

from ctypes import memmove
from math import prod

from arraybridge.kernels.cpu import small, strided

__all__ = ["SMALL", "copy", "way"]

#: Bytes up to which a strided copy does not wait for Numba. Loading the kernel costs a process
#: 0.4 s (from the disk cache); NumPy moves this much in 0.1 ms at its slowest (measured).
SMALL = 64 * 1024


def way(
    shape: tuple[int, ...],
    dst_strides: tuple[int, ...],
    src_strides: tuple[int, ...],
    itemsize: int,
) -> str:
    """Name the way that `copy` takes for this layout: ``none``, ``run``, ``small`` or ``any``.

    Parameters
    ----------
    shape, dst_strides, src_strides, itemsize
        As for `copy`.

    Returns
    -------
    str
        ``none`` where there is nothing to move.

    Raises
    ------
    ValueError
        Where the tuples differ in length.
    """
    nbytes = expected = itemsize
    run = True
    axes = zip(reversed(shape), reversed(dst_strides), reversed(src_strides), strict=True)
    for extent, dst, src in axes:
        if extent != 1:
            run = run and dst == expected == src
            expected *= extent
            nbytes *= extent
    if nbytes == 0:
        return "none"
    if run:
        return "run"
    if nbytes <= SMALL and len(shape) <= small.MAX_NDIM and not strided.is_loaded(itemsize):
        return "small"
    return "any"


def copy(
    dst: int,
    src: int,
    shape: tuple[int, ...],
    dst_strides: tuple[int, ...],
    src_strides: tuple[int, ...],
    itemsize: int,
    stream: int | None = None,
) -> None:
    """Copy one strided block of host memory to another.

    Parameters
    ----------
    dst, src : int
        Addresses of the item whose indices are all 0; no alignment is asked for.
    shape : tuple of int
        Extents, the same on both sides: any number of axes, 0 and 1 included. The fewer axes and
        the wider items, the quicker: hand in ``arraybridge.layout.canonical``'s.
    dst_strides, src_strides : tuple of int
        In **bytes**, of any sign, zero included.
    itemsize : int
        Bytes an item, any positive number.
    stream : None
        Part of the face that the kernels share; host memory has no streams.

    Raises
    ------
    ValueError
        Where the tuples differ in length, or `stream` is not None.
    OverflowError
        Where a number does not fit 64 bits.

    Notes
    -----
    The caller answers for the addresses: nothing here can check them. Source and destination must
    not overlap each other, save where both are one run. The source may overlap itself
    (broadcasts, windows); a destination that does ends with one of its sources in each cell,
    which one is not said.
    """
    if stream is not None:
        raise ValueError(f"stream={stream!r} for a copy in host memory: pass None")
    taken = way(shape, dst_strides, src_strides, itemsize)
    if taken == "run":
        memmove(dst, src, itemsize * prod(shape))
    elif taken == "any":
        strided.copy(dst, src, shape, dst_strides, src_strides, itemsize)
    elif taken == "small":
        small.copy(dst, src, shape, dst_strides, src_strides, itemsize)
