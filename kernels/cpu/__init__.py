"""Copies in host memory: one run, few bytes, or any strides.

`copy` takes the first of three ways that serves:

===========  =================================================  ====================
way          taken for                                          loads
===========  =================================================  ====================
``memmove``  one run of bytes on both sides                     llvmlite, if large
``numpy``    at most `SMALL` items, or no kernel to be had      NumPy
``strided``  everything else                                    Numba, unless on disk
===========  =================================================  ====================

``strided`` and ``memmove`` (`flat`) run without the GIL, and on threads of their own where the
result is large (`pool`). None leaves behind what a forked child could trip over.
"""

from __future__ import annotations

from math import prod

from arraybridge.kernels.cpu import flat, loader, plain, plan, strided

__all__ = ["SMALL", "copy", "way"]

#: Items up to which NumPy, or the library that wants the copy, serves: no process waits for a
#: compiler, and a call costs what NumPy's does. Items and not bytes, since NumPy moves items one by
#: one; wider ones than 16 bytes count as several. Found by ``benchmarks/copy_sizes.py``: planning
#: and the call cost 6 µs, which is what NumPy takes for about so many.
SMALL = 32 * 1024


def way(
    shape: tuple[int, ...],
    dst_strides: tuple[int, ...],
    src_strides: tuple[int, ...],
    itemsize: int,
) -> str:
    """Name the way that `copy` takes now, for a layout as it is given to `copy`.

    Returns
    -------
    str
        ``memmove``, ``numpy``, ``strided``; ``nothing`` where there is nothing to move.

    Raises
    ------
    ValueError
        Where the tuples differ in length.
    """
    nbytes = itemsize
    run = True
    axes = zip(reversed(shape), reversed(dst_strides), reversed(src_strides), strict=True)
    for extent, dst, src in axes:
        if extent != 1:
            run = run and dst == nbytes == src
            nbytes *= extent
    if nbytes == 0:
        return "nothing"
    if run:
        return "memmove"
    if len(shape) > plain.MAX_NDIM:
        return "strided"
    if nbytes <= SMALL * min(itemsize, 16):
        return "numpy"
    if loader.unavailable():
        made = plan.plan(shape, dst_strides, src_strides, itemsize)
        return "strided" if strided.is_loaded(made) else "numpy"
    return "strided"


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
        Where an extent or a stride does not fit 64 bits.

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
    if taken == "strided" and len(shape) <= plain.MAX_NDIM:
        made = plan.plan(shape, dst_strides, src_strides, itemsize)
        kernel = strided.kernel_of(made)
        if kernel is not None:
            strided.run(made, kernel, dst, src)
            return
        taken = "numpy"
    if taken == "memmove":
        flat.copy(dst, src, itemsize * prod(shape))
    elif taken == "strided":
        strided.copy(dst, src, shape, dst_strides, src_strides, itemsize)
    elif taken == "numpy":
        plain.copy(dst, src, shape, dst_strides, src_strides, itemsize)
