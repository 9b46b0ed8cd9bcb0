"""Rows in vectors, copied or with one item repeated; and pieces of any nest."""

from typing import Any

from arraybridge.kernels.cuda.indices import decode
from arraybridge.kernels.cuda.plan_types import THREADS

#: Pieces per thread, all loaded before the first is stored.
PIECES = 4


def filled(ops: Any, item: int) -> Any:
    """Make the device function that repeats an item of `item` bytes over 16 bytes."""
    prmt, u32 = ops.prmt, ops.u32

    @ops.device
    def fill(v):
        if item == 16:
            return v
        if item == 8:
            return (v[0], v[1], v[0], v[1])
        if item == 4:
            return (v, v, v, v)
        word = prmt(v, v, u32(0x1010 if item == 2 else 0x0000))
        return (word, word, word, word)

    return fill


def rows(
    ops: Any, width: int, axes: int, mode: str = "copy", item: int = 16, even: bool = False
) -> Any:
    """Make the kernel that moves a nest piece by piece, in the order of the destination.

    The pieces of a block are adjacent, so that those of a warp are as dense as the nest allows, and
    those of a thread are `THREADS` apart. A piece has `width` bytes: 1, 2, 4, 8 or 16; the nest has
    at least one of the `axes`. ``copy``: unchanged pieces. ``fill``: an item of `item` bytes,
    repeated over 16 bytes. `even`: the pieces of every thread are along one axis, see
    ``indices.even``.

    ``extents``: the number of pieces, pieces per block (`THREADS` or `PIECES` times as many), then
    the nest, as `divisions` and `steps`: see ``indices.outer``. If `even`, ``steps`` begin with
    those between the pieces of a thread.
    """
    cuda, i32 = ops.cuda, ops.i32
    load, store = ops.ld[item if mode == "fill" else width], ops.st[width]
    place = decode(ops, axes, extent=2, step=2 if even else 0)

    spread: Any = filled(ops, item if mode == "fill" else 16)

    def kernel(dst, src, extents, divisions, steps):
        start = i32(i32(cuda.blockIdx.x) * extents[1])
        end = min(extents[0], i32(start + extents[1]))
        e = i32(start + i32(cuda.threadIdx.x))
        if even:
            to, at = place(e, extents, divisions, steps)
            to += dst
            at += src
            for k in range(PIECES):
                store(to + k * steps[0], spread(load(at + k * steps[1])))
        elif i32(e + 3 * THREADS) < end:
            for k in range(PIECES):
                to, at = place(i32(e + k * THREADS), extents, divisions, steps)
                store(dst + to, spread(load(src + at)))
        else:
            while e < end:
                to, at = place(e, extents, divisions, steps)
                store(dst + to, spread(load(src + at)))
                e = i32(e + THREADS)

    return kernel
