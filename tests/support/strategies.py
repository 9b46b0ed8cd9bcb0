"""Hypothesis strategies for memory that is laid out awkwardly.

`strided_arrays` draws real NumPy views. Every value of a view is small, and different from its
neighbors' as far as the dtype allows, so that a wrong element shows. Behind each view stands a
larger block of bytes: the view starts at any byte of it, and holes are filled with `CANARY`.

`layouts` draws bare layouts, as a kernel sees them: an extent, a stride a side and an item size.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from arraybridge import layout

__all__ = ["CANARY", "STANDARD_DTYPES", "Layout", "layouts", "shapes", "strided_arrays"]

#: What the bytes around and between the elements hold.
CANARY = 0xA5

#: The dtypes of the array API standard.
STANDARD_DTYPES = tuple(
    np.dtype(name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float32", "float64", "complex64", "complex128"),
    )
)


def shapes(
    max_dims: int = 5, max_side: int = 6, max_size: int = 512, zero_size: bool = True
) -> st.SearchStrategy[tuple[int, ...]]:
    """Draw shapes of 0 to `max_dims` axes and at most `max_size` elements.

    Many axes are mostly axes of extent 1. With `zero_size`, one shape in ten or so is empty.
    """

    @st.composite
    def shape(draw):
        ndim = draw(st.integers(0, max_dims))
        extents = []
        left = max_size
        for _ in range(ndim):
            extents.append(draw(st.integers(1, min(max_side, left))))
            left //= extents[-1]
        if zero_size and ndim and draw(st.integers(0, 9)) == 9:
            extents[draw(st.integers(0, ndim - 1))] = 0
        return tuple(draw(st.permutations(extents)))

    return shape()


@st.composite
def strided_arrays(
    draw,
    dtypes=STANDARD_DTYPES,
    *,
    max_dims: int = 5,
    max_side: int = 6,
    max_size: int = 512,
    zero_size: bool = True,
    unaligned: bool = True,
    readonly: bool = True,
) -> np.ndarray:
    """Draw a NumPy view of any layout: its ``base`` is never None, its values small and whole.

    One of ``dtypes`` (a sequence, or a strategy) is drawn; structured, void and ml_dtypes' may be
    among them, object may not. The first element lies 0 to 63 bytes past a 64-byte boundary, or
    at a multiple of the item's alignment if not ``unaligned``. A broadcast view is read-only no
    more often than others.
    """
    dtype = np.dtype(draw(dtypes if isinstance(dtypes, st.SearchStrategy) else _one_of(dtypes)))
    shape = draw(shapes(max_dims, max_side, max_size, zero_size))
    ndim = len(shape)
    order = draw(st.permutations(range(ndim))) if ndim > 1 else list(range(ndim))
    plain = draw(st.integers(0, 3)) == 3  # the axes in another order, and nothing else

    extents = [0] * ndim  # of the block, in the view's order of axes
    index: list[slice] = [slice(None)] * ndim
    spread = []
    left = 4 * max_size + 64  # elements of the block
    for axis, extent in enumerate(shape):
        if extent > 1 and not plain and draw(st.integers(0, 7)) == 7:
            spread.append(axis)
            extents[axis] = 1
            continue
        step, before, after = 1, 0, 0
        if left > extent and not plain:  # keep the block small for many axes
            step = draw(st.integers(1, 3))
            before, after = (draw(st.integers(0, 2)) for _ in range(2))
        used = (extent - 1) * step + 1 if extent else 0
        extents[axis] = before + used + after
        index[axis] = slice(before, before + used, step)
        if used and not plain and draw(st.booleans()):
            stop = before - 1
            index[axis] = slice(before + used - 1, stop if stop >= 0 else None, -step)
        left //= max(extents[axis], 1)

    align = 1 if unaligned else dtype.alignment
    offset = draw(st.integers(0, 63 // align)) * align
    block = _block([extents[axis] for axis in order], dtype, offset)
    view = block.transpose(np.argsort(order)) if ndim else block
    view = view[tuple(index)] if ndim else view
    view[...] = _values(view.shape, dtype)
    if spread:
        strides = tuple(0 if a in spread else s for a, s in enumerate(view.strides))
        # As bytes: what ml_dtypes' float8_e5m2 calls itself, <f1, NumPy does not understand.
        raw = np.lib.stride_tricks.as_strided(view.view(f"V{dtype.itemsize}"), shape, strides)
        view = raw.view(dtype)
    assert view.shape == shape
    if readonly and draw(st.booleans()):
        view.flags.writeable = False
    return view


def _one_of(dtypes):
    return st.sampled_from([np.dtype(dtype) for dtype in dtypes])


def _block(shape, dtype, offset):
    """Return an array of canary bytes that starts `offset` bytes past a 64-byte boundary."""
    nbytes = prod(shape) * dtype.itemsize
    raw = np.full(nbytes + 128, CANARY, np.uint8)
    start = -raw.ctypes.data % 64 + offset
    return np.ndarray(shape, dtype, raw.data, start)


def _values(shape, dtype):
    """Count 0, 1, 2, ... as far as the dtype distinguishes the numbers, then again."""
    count = np.arange(prod(shape)).reshape(shape)
    if dtype.type is np.void:
        distinct = (count[..., None] * 7 + np.arange(dtype.itemsize)).astype(np.uint8)
        return distinct.view(np.dtype(f"V{dtype.itemsize}"))[..., 0].view(dtype)
    if dtype.kind == "b":
        return (count * 5 % 7 % 2).astype(bool)
    limit = {1: 120, 2: 2048}.get(dtype.itemsize, 1 << 20)
    if dtype.kind not in "iufcmM":  # ml_dtypes' floats and small integers
        limit = 7
    return (count % limit).astype(dtype)


class Layout(NamedTuple):
    """A copy between two layouts, as a kernel is asked for it. Strides in **bytes**."""

    shape: tuple[int, ...]
    dst_strides: tuple[int, ...]
    src_strides: tuple[int, ...]
    itemsize: int


@st.composite
def layouts(
    draw,
    *,
    itemsizes: Sequence[int] = range(1, 33),
    max_dims: int = 8,
    max_side: int = 5,
    max_size: int = 512,
    zero_size: bool = True,
) -> Layout:
    """Draw a copy from any layout into any layout that does not overlap itself.

    The source's strides are any numbers of bytes, of any sign, zero and smaller than an item
    included: its elements may overlap. The destination's are a nest with gaps of any number of
    bytes, its axes in any order, some of them backwards.
    """
    itemsize = draw(st.sampled_from(itemsizes))
    shape = draw(shapes(max_dims, max_side, max_size, zero_size))
    reach = itemsize * draw(st.sampled_from([1, 2, 3, 7]))
    src_strides = tuple(
        draw(
            st.one_of(
                st.sampled_from([0, itemsize, -itemsize, 2 * itemsize]),
                st.integers(-reach, reach),
            )
        )
        for _ in shape
    )
    if draw(st.booleans()):  # dense somewhere: what fuses and widens
        src_strides = layout.c_strides(shape, itemsize)
        if draw(st.booleans()) and shape:
            order = draw(st.permutations(range(len(shape))))
            dense = layout.c_strides(tuple(shape[axis] for axis in order), itemsize)
            src_strides = tuple(dense[order.index(axis)] for axis in range(len(shape)))
    dst_strides = [0] * len(shape)
    step = itemsize
    gaps = st.sampled_from([0, 0, 0, 1, 3, itemsize])
    for axis in draw(st.permutations(range(len(shape)))) if shape else ():
        step += draw(gaps)
        dst_strides[axis] = draw(st.sampled_from([step, step, -step]))
        step *= max(shape[axis], 1)
    return Layout(shape, tuple(dst_strides), src_strides, itemsize)
