"""Transposes of items of 4 and 8 bytes that are not aligned to vectors of 16 bytes."""

from __future__ import annotations

from typing import Any

from arraybridge.kernels.cuda.indices import decode, divide, staged
from arraybridge.kernels.cuda.tile import TILE_BYTES

#: Bytes per item -> widths of a tile in items, along the source's run; preferred shapes first.
PLAIN: dict[int, tuple[int, ...]] = {4: (64, 32, 128), 8: (32, 64)}


def plain(ops: Any, width: int, columns: int, axes: int) -> Any:
    """Make the kernel that transposes tiles item by item, 32 adjacent items on both sides.

    The tile is in shared memory as in the source, with rows padded by one item: 32 threads that
    read down a column use 32 different banks. `width`: bytes per item, 4 or 8; `columns`: the width
    of a tile in items, see `PLAIN`; `axes` as for `tile`.
    """
    cuda, i32, i64, u32 = ops.cuda, ops.i32, ops.i64, ops.u32
    load, stage, synchronize = staged(ops, width)
    store, fetch = ops.st[width], ops.lds[width]
    quotient, place = divide(ops), decode(ops, axes, extent=4, pair=4, step=2)
    rows = TILE_BYTES // width // columns
    row = (columns + 1) * width  # bytes
    words = rows * row // 4
    warp = 32 * width  # adjacent bytes

    def kernel(dst, src, extents, divisions, steps):
        sm = cuda.shared.array(words, u32, alignment=16)
        t = i32(cuda.threadIdx.x)
        lane, first = i32(t & 31), i32(t >> 5)
        block = i32(cuda.blockIdx.x)
        across = quotient(block, divisions[0], divisions[1])
        r0 = i32(i32(block - across * extents[2]) * rows)
        nest = quotient(across, divisions[2], divisions[3])
        c0 = i32(i32(across - nest * extents[3]) * columns)
        to, at = place(nest, extents, divisions, steps)
        live_rows = i32(extents[0] - r0)
        live_columns = i32(extents[1] - c0)

        a = src + at + i64(i32(r0 + first)) * steps[0] + i64(i32(c0 + lane)) * width
        b = dst + to + i64(i32(c0 + first)) * steps[1] + i64(i32(r0 + lane)) * width
        s = i32(first * row + lane * width)
        x = i32(lane * row + first * width)
        if (live_rows >= rows) & (live_columns >= columns):
            for k in range(rows // 8):
                for h in range(columns // 32):
                    stage(sm, i32(s + (8 * k * row + h * warp)), load(a + h * warp))
                a += 8 * steps[0]
            synchronize()
            for k in range(columns // 8):
                for h in range(rows // 32):
                    store(b + h * warp, fetch(sm, i32(x + (8 * k * width + h * 32 * row))))
                b += 8 * steps[1]
        else:
            for k in range(rows // 8):
                for h in range(columns // 32):
                    if (i32(first + 8 * k) < live_rows) & (i32(lane + 32 * h) < live_columns):
                        stage(sm, i32(s + (8 * k * row + h * warp)), load(a + h * warp))
                a += 8 * steps[0]
            synchronize()
            for k in range(columns // 8):
                for h in range(rows // 32):
                    if (i32(first + 8 * k) < live_columns) & (i32(lane + 32 * h) < live_rows):
                        store(b + h * warp, fetch(sm, i32(x + (8 * k * width + h * 32 * row))))
                b += 8 * steps[1]

    return kernel
