"""A copy between two layouts, in the fewest axes and the widest items.

The canonical form is the planning recipe that the transposition libraries share (HPTT, cuTENSOR,
Eigen, CCCL's ``copy``, NVIDIA/cccl#7823): drop unit axes, flip negatives, order by stride, fuse,
widen the item.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple


class Canonical(NamedTuple):
    """A copy between two layouts, in the fewest axes; made by `canonical`.

    The copy is: for every index ``i`` of `shape`, `itemsize` bytes from ``src + src_offset + i .
    src_strides`` to ``dst + dst_offset + i . dst_strides``.

    Attributes
    ----------
    shape : tuple of int
        Extents, all at least 2, outermost first. ``()`` is one run of bytes; ``(0,)`` is nothing to
        copy.
    dst_strides, src_strides : tuple of int
        In **bytes**. `dst_strides` are never negative, and fall from the first axis to the last; a
        stride of 0 (several elements into one cell) comes first.
    itemsize : int
        Bytes an item: the caller's, or a multiple of it where a run of bytes is contiguous on both
        sides.
    dst_offset, src_offset : int
        Bytes from the caller's pointers to the first item: not 0 where an axis was flipped.
    """

    shape: tuple[int, ...]
    dst_strides: tuple[int, ...]
    src_strides: tuple[int, ...]
    itemsize: int
    dst_offset: int = 0
    src_offset: int = 0


@lru_cache(1024)
def canonical(
    shape: tuple[int, ...],
    dst_strides: tuple[int, ...],
    src_strides: tuple[int, ...],
    itemsize: int,
) -> Canonical:
    """Restate a copy of one layout to another in the fewest axes and the widest items.

    Unit axes are dropped; axes along which the destination runs backwards are reversed; axes are
    put in the order of the destination's strides, so that it is written forwards; neighbors
    that step as one axis on both sides are fused; and the last axis becomes part of the item where
    it is contiguous on both sides. It is the same copy: every byte comes from where it came from,
    only the order of the moves differs, which matters only where the destination overlaps
    itself.

    Parameters
    ----------
    shape : tuple of int
        Extents, the same on both sides; any number of axes.
    dst_strides, src_strides : tuple of int
        In **bytes**, of any sign, zero included.
    itemsize : int
        Bytes an item, any positive number.

    Returns
    -------
    Canonical
        Contiguous to contiguous gives ``shape == ()``, whatever the order of the axes, so long as
        it is one order.

    Raises
    ------
    ValueError
        Where the three tuples differ in length.
    """
    if not len(shape) == len(dst_strides) == len(src_strides):
        raise ValueError(
            f"shape has {len(shape)} axes, dst_strides {len(dst_strides)}, "
            f"src_strides {len(src_strides)}: pass one stride an axis"
        )
    axes = []
    dst_offset = src_offset = 0
    for extent, dst, src in zip(shape, dst_strides, src_strides, strict=True):
        if extent == 1:
            continue
        if extent == 0:
            return Canonical((0,), (itemsize,), (itemsize,), itemsize)
        if dst < 0:
            dst_offset += (extent - 1) * dst
            src_offset += (extent - 1) * src
            dst, src = -dst, -src
        axes.append((dst, src, extent))
    if not axes:
        return Canonical((), (), (), itemsize)
    if len(axes) > 1:
        axes = _fused(axes)
    dst, src, extent = axes[-1]
    if dst == itemsize == src:
        itemsize *= extent
        axes.pop()
    return Canonical(
        tuple([axis[2] for axis in axes]),
        tuple([axis[0] for axis in axes]),
        tuple([axis[1] for axis in axes]),
        itemsize,
        dst_offset,
        src_offset,
    )


def _outermost_first(axis: tuple[int, int, int]) -> tuple[bool, int, int]:
    dst, src, _ = axis
    return dst != 0, -dst, -abs(src)


def _fused(axes: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Order ``(dst stride, src stride, extent)`` by stride, fuse what steps as one axis."""
    axes.sort(key=_outermost_first)
    fused = [axes[0]]
    for dst, src, extent in axes[1:]:
        outer_dst, outer_src, outer_extent = fused[-1]
        if outer_dst == dst * extent and outer_src == src * extent:
            fused[-1] = (dst, src, outer_extent * extent)
        else:
            fused.append((dst, src, extent))
    return fused
