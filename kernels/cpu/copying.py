"""The two functions of ``arraybridge.kernels.cpu``: which of its modules copies what."""

from __future__ import annotations

from math import prod

from arraybridge.kernels.cpu import SMALL, flat, loader, plain, plan, strided
from arraybridge.layout import Canonical, canonical

__all__ = ["copy", "describe"]


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
        Addresses of the item whose indices are all 0, of any alignment.
    shape : tuple of int
        Extents, the same on both sides: any number of axes, 0 and 1 included.
    dst_strides, src_strides : tuple of int
        In **bytes**, of any sign, zero included.
    itemsize : int
        Bytes an item, any positive number.
    stream : None
        Part of the signature that all kernels share; host memory has no streams.
    fresh : bool
        Whether the destination has no pages yet, for a choice that is quicker then.

    Raises
    ------
    ValueError
        Where the tuples differ in length, or `stream` is not None.
    OverflowError
        Where an extent or a stride does not fit 64 bits.

    Notes
    -----
    The caller answers for the addresses, which cannot be checked here. Source and destination must
    not overlap each other, except where both are one run. The source may overlap itself
    (broadcasts, windows); in a destination that does, each cell ends with one of its sources,
    unspecified which.
    """
    if stream is not None:
        raise ValueError(f"stream={stream!r} for a copy in host memory: pass None")
    form = canonical(shape, dst_strides, src_strides, itemsize)
    dst, src = dst + form.dst_offset, src + form.src_offset
    if not form.shape:
        flat.copy(dst, src, form.itemsize, fresh)
    elif _is_small(form) or not strided.copy(dst, src, plan.plan(form, fresh)):
        plain.copy(dst, src, *form[:4])


def describe(
    shape: tuple[int, ...],
    dst_strides: tuple[int, ...],
    src_strides: tuple[int, ...],
    itemsize: int,
) -> str:
    """Name what `copy` would do now with a layout, such as ``tile 4 bytes x 16``, ``numpy copy``.

    Raises
    ------
    ValueError
        Where the tuples differ in length.
    """
    form = canonical(shape, dst_strides, src_strides, itemsize)
    if not form.shape:
        return "memmove"
    if 0 in form.shape:
        return "nothing"
    if not _is_small(form):
        made = plan.plan(form)
        if strided.is_loaded(made) or not loader.unavailable():
            return made.name
    return "numpy copy"


def _is_small(form: Canonical) -> bool:
    items = prod(form.shape) * form.itemsize // min(form.itemsize, 16)
    return items <= SMALL and len(form.shape) <= plain.MAX_NDIM
