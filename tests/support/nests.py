"""Hypothesis strategies for copies on a device: nests that reach every kernel of its family.

Each draws a `Copy`: a layout whose destination nowhere overlaps itself, and where both sides start.
Sizes are those at which kernels differ: a bit over and under tiles, vectors and warps.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from hypothesis import strategies as st

from .strategies import Layout, layouts

__all__ = ["Copy", "channels", "copies", "nests", "runs", "transposes", "wild"]

WIDTHS = (1, 2, 4, 8, 16)
#: Bytes of a drawn nest, at most: 32 blocks of 256 threads with a byte each.
LIMIT = 8192


class Copy(NamedTuple):
    """A layout, and **bytes** from a multiple of 256 to the lowest byte of either side."""

    given: Layout
    dst_start: int = 0
    src_start: int = 0


def _starts(unit: int) -> st.SearchStrategy[int]:
    """Aligned to 16 bytes, or to an item, or not at all."""
    return st.one_of(
        st.sampled_from([0, 0, 0, 16]),
        st.integers(0, max(16 // unit - 1, 0)).map(lambda n: n * unit),
        st.integers(0, 15),
    )


def _fitted(shape: list[int], itemsize: int, limit: int = LIMIT) -> list[int]:
    """The shape, its longest axes halved until it is small enough."""
    while prod(shape) * itemsize > limit and max(shape, default=1) > 1:
        shape[shape.index(max(shape))] //= 2
    return shape


def _strides(
    draw: st.DrawFn, shape: list[int], order: list[int], itemsize: int, gaps: st.SearchStrategy[int]
) -> list[int]:
    """Steps of a block whose axes lie in this order, outermost first, with gaps of some bytes."""
    strides, step = [0] * len(shape), itemsize
    for axis in reversed(order):
        strides[axis] = step
        step = step * shape[axis] + draw(gaps)
    return strides


def _placed(draw: st.DrawFn, given: Layout) -> Copy:
    unit = given.itemsize & -given.itemsize
    return Copy(given, draw(_starts(unit)), draw(_starts(unit)))


@st.composite
def transposes(draw: st.DrawFn) -> Copy:
    """Matrices and batches of them, their runs across each other; large enough to be tiled."""
    width = draw(st.sampled_from(WIDTHS))
    tiled = draw(st.sampled_from([True, True, False]))
    unit = 16 // width if tiled else 1
    sides = {1: (65, 150), 2: (33, 140), 4: (33, 80), 8: (17, 70), 16: (17, 40)}[width]
    side = st.integers(-(-sides[0] // unit), sides[1] // unit).map(lambda n: n * unit)
    rows, columns = draw(side), draw(side)
    batch = draw(st.lists(st.integers(2, 3), max_size=2))
    shape = [*_fitted(batch, rows * columns * width, 3 * LIMIT), columns, rows]
    n = len(shape)
    gaps = st.sampled_from([0, 0, 16, 48] if tiled else [0, 0, width, 5 * width, 3])
    src = _strides(draw, shape, [*range(n - 2), n - 1, n - 2], width, gaps)
    for axis in range(n):
        src[axis] *= draw(st.sampled_from([1, 1, 1, 1, 1, -1]))
    flat = draw(st.booleans())
    dst = _strides(draw, shape, list(range(n)), width, st.just(0) if flat else gaps)
    given = Layout(tuple(shape), tuple(dst), tuple(src), width)
    if tiled:
        return Copy(given, *(draw(st.sampled_from([0, 0, 0, 16, width])) for _ in "ds"))
    return _placed(draw, given)


@st.composite
def runs(draw: st.DrawFn) -> Copy:
    """Rows that are read forwards, backwards, or one item again and again; at any byte."""
    width = draw(st.sampled_from([*WIDTHS, 1, 3, 12]))
    unit = draw(st.sampled_from([1, 16]))
    length = unit * draw(st.integers(1, max(1500 // unit // width, 1)))
    shape = [*draw(st.lists(st.integers(2, 6), max_size=3)), length]
    _fitted(shape, width, 2 * LIMIT)
    n = len(shape)
    gaps = st.sampled_from([0, 16, 16, width, 5, 100])
    order = draw(st.permutations(range(n - 1))) if n > 1 else []
    src = _strides(draw, shape, [*order, n - 1], width, gaps)
    src[-1] = draw(st.sampled_from([1, 1, 1, -1, -1, 0, 0, 2])) * width
    if src[-1] == 2 * width:
        src[:-1] = [2 * step for step in src[:-1]]
    for axis in range(n - 1):
        src[axis] *= draw(st.sampled_from([1, 1, 1, 1, 0, -1]))
    dst = _strides(draw, shape, list(range(n)), width, draw(st.sampled_from([st.just(0), gaps])))
    return _placed(draw, Layout(tuple(shape), tuple(dst), tuple(src), width))


@st.composite
def channels(draw: st.DrawFn) -> Copy:
    """A few channels taken apart or put together, or some of them alone."""
    width = draw(st.sampled_from([1, 1, 2, 4, 8]))
    count = draw(st.integers(2, 4))
    tidy = draw(st.sampled_from([True, True, True, False]))  # whole vectors
    unit = 16 // width if tidy else 1
    pixels = unit * draw(st.integers(64 // unit // width, 2500 // unit // width // count))
    batch = draw(st.lists(st.integers(2, 4), max_size=2))
    n = len(batch)
    gaps = st.sampled_from([0, 0, 16, 48] if tidy else [0, 0, 16, width, 3])
    shape = [*batch, count, pixels]
    apart = draw(st.booleans())
    first = 0
    if apart:  # the channels from the first on, some of them left out
        src = _strides(draw, shape, [*range(n), n + 1, n], width, gaps)
        shape[n] = draw(st.integers(1, count))
        first = draw(st.integers(0, count - shape[n])) * width
        if draw(st.sampled_from([False, False, True])):
            src[n] = -width
    else:
        shape[n:] = pixels, count
        src = _strides(draw, shape, [*range(n), n + 1, n], width, gaps)
    for axis in range(n + 2):
        src[axis] *= draw(st.sampled_from([1] * 15 + [-1]))
    dst = _strides(
        draw, shape, list(range(n + 2)), width, draw(st.sampled_from([st.just(0), gaps]))
    )
    given = Layout(tuple(shape), tuple(dst), tuple(src), width)
    if tidy:
        return Copy(given, draw(st.sampled_from([0, 0, 0, 16, 3])), first)
    return _placed(draw, given)


@st.composite
def nests(draw: st.DrawFn) -> Copy:
    """Axes of any extents, in any order in the source, with steps, gaps, and turned round."""
    width = draw(st.one_of(st.sampled_from(WIDTHS), st.integers(1, 16)))
    side = draw(
        st.sampled_from(
            [
                st.integers(2, 4),
                st.integers(2, 20),
                st.sampled_from([2, 3, 5, 8, 16, 17, 31, 33, 48, 64, 65, 100]),
            ]
        )
    )
    shape = _fitted(draw(st.lists(side, min_size=1, max_size=8)), width)
    n = len(shape)
    tidy = draw(st.booleans())
    gaps = st.just(0) if tidy else st.sampled_from([0, 0, 0, 1, 4, 16, width, 2 * width])
    src = _strides(draw, shape, draw(st.permutations(range(n))), width, gaps)
    if not tidy:
        step = draw(st.sampled_from([1, 1, 2, 3]))
        src = [step * stride for stride in src]
        for axis in range(n):
            src[axis] *= draw(st.sampled_from([1, 1, 1, 1, 1, 1, -1, -1, 0]))
    order = list(range(n)) if draw(st.booleans()) else draw(st.permutations(range(n)))
    dst = _strides(draw, shape, order, width, st.just(0) if draw(st.booleans()) else gaps)
    for axis in range(n):
        dst[axis] *= draw(st.sampled_from([1] * 9 + [-1]))
    return _placed(draw, Layout(tuple(shape), tuple(dst), tuple(src), width))


@st.composite
def wild(draw: st.DrawFn) -> Copy:
    """Items of any size, strides of any number of bytes."""
    given = draw(layouts(max_side=12, max_size=1024, max_dims=8))
    return Copy(given, draw(st.integers(0, 63)), draw(st.integers(0, 63)))


copies: st.SearchStrategy[Copy] = st.one_of(transposes(), runs(), channels(), nests(), wild())
