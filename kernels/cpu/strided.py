"""Any strided block to any other: fills in the record, loads the kernel once, calls it."""

from __future__ import annotations

import os
import sys
import threading
from array import array

__all__ = ["TILE", "copy", "is_loaded", "load", "record", "unavailable", "width_of"]

#: Rows and columns of a tile, where the two sides run along different axes: what a tile touches of
#: either side stays in the nearest cache. Best or near it of 18 shapes, for every width of item.
TILE = (128, 8)

_WHOLE = 2**62  # a tile that no axis is longer than
_EMPTY_AXIS = (1, 0, 0, 0)

_kernels: dict = {}  # width -> the ctypes function
_owners: list = []  # what keeps their code alive
_loading = threading.RLock()
_loader: int | None = None  # the thread that is at it
_unavailable: str | None = None


def width_of(itemsize: int) -> int:
    """Name the specialisation that moves items of `itemsize` bytes: its width, 0 for any size."""
    return itemsize if itemsize in (1, 2, 4, 8, 16) else 0


def is_loaded(itemsize: int) -> bool:
    """Whether this process has the kernel for items of `itemsize` bytes ready to run."""
    return width_of(itemsize) in _kernels


def unavailable() -> str | None:
    """Say why this process can load no kernel any more; None where it can, as far as is known.

    Kernels that are loaded already stay.
    """
    return _unavailable


def load(itemsize: int):
    """Return the kernel for items of `itemsize` bytes, compiled on the first call.

    Parameters
    ----------
    itemsize : int
        Bytes an item, any positive number.

    Returns
    -------
    ctypes function or None
        Takes the address of a record (``arraybridge.kernels.cpu.native.RECORD``); the call is made
        without the GIL. None where it cannot be had: `unavailable` says why.
    """
    width = width_of(itemsize)
    return _kernels.get(width) or _load(width)


def _load(width):
    global _loader, _unavailable
    with _loading:
        if width not in _kernels and _unavailable is None:  # no other thread was quicker
            _loader = threading.get_ident()
            try:
                from arraybridge.kernels.cpu import native
            except ImportError as error:  # Numba refuses a NumPy that is newer than itself
                _unavailable = f"Numba cannot be imported: {error}"
            else:
                owner = native.compiled(width)
                _owners.append(owner)
                _kernels[width] = owner.ctypes
            finally:
                _loader = None
    return _kernels.get(width)


def _after_fork_in_child():
    """Give up on the compiler if another thread, which is not in this child, was inside it.

    The locks that the thread held (Numba's, LLVM's, those of half-imported modules) stay locked for
    ever here. Waiting before the fork for it to finish is no way out: the forking thread
    then holds the locks of earlier hooks, logging's among them, and compiling may need those.
    """
    global _loading, _loader, _unavailable
    _loading = threading.RLock()
    compiler_lock = sys.modules.get("numba.core.compiler_lock")
    stranded = _loader not in (None, threading.get_ident())
    if compiler_lock is not None and not stranded:  # the thread may have compiled something else
        lock = getattr(compiler_lock.global_compiler_lock, "_lock", None)
        if lock is not None:
            stranded = not lock.acquire(blocking=False)
            if not stranded:
                lock.release()
    if stranded:
        _loader = None
        _unavailable = "the process was forked while another thread was compiling"


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


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

    Raises
    ------
    RuntimeError
        Where the kernel cannot be had: `unavailable` says why.
    """
    if 0 in shape:
        return
    words = record(dst, src, shape, dst_strides, src_strides, itemsize)
    kernel = load(itemsize)
    if kernel is None:
        raise RuntimeError(f"no compiled kernel for strided copies: {_unavailable}")
    kernel(words.buffer_info()[0])


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
    Where that is less than along the columns, the copy is a transpose, and walked in tiles. Where
    one of the two is short, it becomes the rows, and the tiles are wide.

    Parameters
    ----------
    dst, src, shape, dst_strides, src_strides, itemsize
        As for `copy`; no extent is 0.

    Returns
    -------
    array of int64
        The words of ``native.RECORD`` and the axes. The kernel counts in it: one call at a time.

    Raises
    ------
    OverflowError
        Where a number does not fit 64 bits.
    """
    axes = [
        (extent, dst_stride, src_stride, 0)
        for extent, dst_stride, src_stride in zip(shape, dst_strides, src_strides, strict=True)
        if extent != 1
    ]
    cols = _least(axes, 1)
    rows = _least(axes, 2)
    tile = (_WHOLE, _WHOLE)
    if abs(rows[2]) < abs(cols[2]):
        tile = TILE
        if min(rows[0], cols[0]) < TILE[1]:  # the channels of an image: the long axis innermost
            if cols[0] < rows[0]:
                rows, cols = cols, rows
            tile = (_WHOLE, TILE[0] * TILE[1])
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
