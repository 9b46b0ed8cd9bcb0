"""Any strided block to any other: fills in the record, loads the kernel once, calls it."""

from __future__ import annotations

from array import array

from arraybridge.kernels.cpu import loader

__all__ = ["TILE", "copy", "is_loaded", "load", "record", "width_of"]

#: Rows and columns of a tile, where the two sides run along different axes: what a tile touches of
#: either side stays in the nearest cache. Best or near it of 18 shapes, for every width of item.
TILE = (128, 8)

_WHOLE = 2**62  # a tile that no axis is longer than
_EMPTY_AXIS = (1, 0, 0, 0)


def width_of(itemsize: int) -> int:
    """Name the specialisation that moves items of `itemsize` bytes: its width, 0 for any size."""
    return itemsize if itemsize in (1, 2, 4, 8, 16) else 0


def is_loaded(itemsize: int) -> bool:
    """Whether this process has the kernel for items of `itemsize` bytes ready to run."""
    return loader.is_loaded("native", width_of(itemsize))


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
        without the GIL. None where it cannot be had: ``loader.unavailable`` says why.
    """
    kernel = loader.load("native", width_of(itemsize))
    return None if kernel is None else kernel.call


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
        Where the kernel cannot be had: ``loader.unavailable`` says why.
    """
    if 0 in shape:
        return
    words = record(dst, src, shape, dst_strides, src_strides, itemsize)
    kernel = load(itemsize)
    if kernel is None:
        raise RuntimeError(f"no compiled kernel for strided copies: {loader.unavailable()}")
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
