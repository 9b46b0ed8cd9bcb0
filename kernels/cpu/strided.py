"""Any strided block to any other: fills in the record, loads the kernel once, calls it."""

from __future__ import annotations

import os
import threading
from array import array

__all__ = ["TILE", "copy", "is_loaded", "load", "width_of"]

#: Rows and columns of a tile, where the two sides run along different axes: the columns write an
#: eighth of a cache line or more, the rows read whole lines, and both stay in the nearest cache.
#: Best or near it of 18 shapes tried, for every width of item.
TILE = (128, 8)

_WHOLE = 2**62  # a tile that no axis is longer than
_EMPTY_AXIS = (1, 0, 0, 0)

_kernels: dict = {}  # width -> the ctypes function
_owners: list = []  # what keeps their code alive
# Held while a kernel is compiled, and across fork: a child forked in the middle of another thread's
# compilation would inherit Numba's and LLVM's locks as they are, held for ever.
_loading = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_loading.acquire,
        after_in_parent=_loading.release,
        after_in_child=_loading.release,
    )


def width_of(itemsize: int) -> int:
    """Name the specialisation that moves items of `itemsize` bytes: its width, 0 for any size."""
    return itemsize if itemsize in (1, 2, 4, 8, 16) else 0


def is_loaded(itemsize: int) -> bool:
    """Whether this process has the kernel for items of `itemsize` bytes ready to run."""
    return width_of(itemsize) in _kernels


def load(itemsize: int):
    """Return the kernel for items of `itemsize` bytes, compiled on the first call.

    Parameters
    ----------
    itemsize : int
        Bytes an item, any positive number.

    Returns
    -------
    ctypes function
        Takes the address of a record (``arraybridge.kernels.cpu.native.RECORD``); the call is made
        without the GIL.
    """
    width = width_of(itemsize)
    kernel = _kernels.get(width)
    if kernel is None:
        with _loading:
            kernel = _kernels.get(width)
            if kernel is None:
                from arraybridge.kernels.cpu import native  # imports Numba

                owner = native.compiled(width)
                _owners.append(owner)
                kernel = _kernels[width] = owner.ctypes
    return kernel


def copy(
    dst: int,
    src: int,
    shape: tuple[int, ...],
    dst_strides: tuple[int, ...],
    src_strides: tuple[int, ...],
    itemsize: int,
) -> None:
    """Copy one strided block to another with the compiled kernel.

    Parameters
    ----------
    dst, src, shape, dst_strides, src_strides, itemsize
        As for ``arraybridge.kernels.cpu.copy``. Where there is nothing to copy, nothing happens.
    """
    if 0 in shape:
        return
    words = record(dst, src, shape, dst_strides, src_strides, itemsize)
    load(itemsize)(words.buffer_info()[0])


def record(
    dst: int,
    src: int,
    shape: tuple[int, ...],
    dst_strides: tuple[int, ...],
    src_strides: tuple[int, ...],
    itemsize: int,
) -> array:
    """Fill in the kernel's record: which axes are the inner two, and how they are tiled.

    The columns are the axis along which the destination steps least, so that it is written forwards
    in whole cache lines. The rows are, of the others, the one along which the source steps least.
    Where that is less than along the columns, the copy is a transpose, and walked in tiles.

    Parameters
    ----------
    dst, src, shape, dst_strides, src_strides, itemsize
        As for `copy`; no extent is 0.

    Returns
    -------
    array of int64
        The words of ``native.RECORD`` and the axes. The kernel counts in it: one call at a time.
    """
    axes = [
        (extent, dst_stride, src_stride, 0)
        for extent, dst_stride, src_stride in zip(shape, dst_strides, src_strides, strict=True)
        if extent != 1
    ]
    cols = _least(axes, 1)
    rows = _least(axes, 2)
    tile = TILE if abs(rows[2]) < abs(cols[2]) else (_WHOLE, _WHOLE)
    words = array("q", (dst, src, itemsize, len(axes), *tile, *rows, *cols))
    for axis in axes:
        words.extend(axis)
    return words


def _least(axes: list[tuple[int, int, int, int]], side: int) -> tuple[int, int, int, int]:
    """Take out the axis with the smallest step on one side, the last one of equals."""
    if not axes:
        return _EMPTY_AXIS
    steps = [abs(axis[side]) for axis in reversed(axes)]
    return axes.pop(len(axes) - 1 - steps.index(min(steps)))
