"""Transposes whose sides are not dense in vectors of 16 bytes.

`plain` is for items of 4 and 8 bytes, `narrow` for those of 1 and 2.
"""

from __future__ import annotations

from typing import Any

from arraybridge.kernels.cuda.indices import decode, divide
from arraybridge.kernels.cuda.plan_types import THREADS
from arraybridge.kernels.cuda.tile import SIZE

#: Bytes an item -> how many of them a tile may be wide, along the source's run; the shapes that are
#: liked best come first.
PLAIN: dict[int, tuple[int, ...]] = {4: (64, 32, 128), 8: (32, 64)}


def plain(ops: Any, width: int, columns: int, axes: int) -> Any:
    """Make the kernel that transposes tiles item by item, 32 of them side by side on both sides.

    The tile lies in shared memory as in the source, its rows one item longer than they need be: 32
    threads that read down a column meet 32 different banks. `width`: bytes an item, 4 or 8;
    `columns`: items that a tile is wide, see `PLAIN`; the rest as of `tile`.
    """
    cuda, i32, i64, u32 = ops.cuda, ops.i32, ops.i64, ops.u32
    load, store, fetch, stage = ops.ld[width], ops.st[width], ops.lds[width], ops.sts[width]
    quotient, place = divide(ops), decode(ops, axes, extent=4, pair=4, step=2)
    rows = SIZE // width // columns
    row = (columns + 1) * width  # bytes
    words = rows * row // 4
    warp = 32 * width  # bytes side by side

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
            cuda.syncthreads()
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
            cuda.syncthreads()
            for k in range(columns // 8):
                for h in range(rows // 32):
                    if (i32(first + 8 * k) < live_columns) & (i32(lane + 32 * h) < live_rows):
                        store(b + h * warp, fetch(sm, i32(x + (8 * k * width + h * 32 * row))))
                b += 8 * steps[1]

    return kernel


#: Bytes of a tile along the source's run, and items along the destination's.
WIDE, ROWS = 112, 128

_VECTORS = WIDE // 16 + 1  # that a row of the tile may lie in: 8, which as many threads load
#: Bytes from row to row in shared memory, at least; the planner adds up to 15.
LEAST_PITCH = 16 * _VECTORS + 15


def _gathered(ops: Any, width: int) -> Any:
    """Make ``gathered(sm, x, pitch)``: 16 bytes, items `pitch` bytes apart."""
    i32, u32, prmt, fetch = ops.i32, ops.u32, ops.prmt, ops.lds[width]

    @ops.device
    def word(sm, x, pitch):
        if width == 2:
            return prmt(fetch(sm, x), fetch(sm, i32(x + pitch)), u32(0x5410))
        low = prmt(fetch(sm, x), fetch(sm, i32(x + pitch)), u32(0x0040))
        x = i32(x + 2 * pitch)
        high = prmt(fetch(sm, x), fetch(sm, i32(x + pitch)), u32(0x0040))
        return prmt(low, high, u32(0x5410))

    @ops.device
    def gathered(sm, x, pitch):
        step = i32((4 // width) * pitch)
        a = word(sm, x, pitch)
        x = i32(x + step)
        b = word(sm, x, pitch)
        x = i32(x + step)
        c = word(sm, x, pitch)
        d = word(sm, i32(x + step), pitch)
        return (a, b, c, d)

    return gathered


def narrow(ops: Any, width: int, axes: int) -> Any:
    """Make the kernel that transposes tiles of items of 1 or 2 bytes, of any alignment of rows.

    Rows of the source are staged raw, as the aligned vectors that they lie in; in shared memory
    they keep their address modulo 16, so that where an item lies is linear in its indices. A column
    of the destination is written in whole aligned vectors: its tile begins up to 15 bytes before
    the grid's line, at a multiple of 16, and for that a tile has a few rows of the one above it.
    Only the ends of a column of the whole transpose are written item by item.

    ``extents``: rows, columns, tiles down, tiles across, **bytes** from row to row in shared memory
    (congruent to the source's, modulo 16), then the nest; `divisions` and ``steps`` are those of
    `tile`.
    """
    cuda, i32, i64, u32 = ops.cuda, ops.i32, ops.i64, ops.u32
    load, store, single = ops.ld[16], ops.st[16], ops.st[width]
    stage, fetch = ops.sts[16], ops.lds[width]
    quotient, place = divide(ops), decode(ops, axes, extent=5, pair=4, step=2)
    gathered = _gathered(ops, width)
    items = 16 // width  # of a vector
    above = items - 1  # rows of the tile before this one
    all_rows = ROWS + above
    columns = WIDE // width
    words = (all_rows * (LEAST_PITCH + 15) + 16 * _VECTORS) // 16 * 4
    at_once = THREADS // _VECTORS  # rows
    rounds = -(-all_rows // at_once)
    high = ROWS // items  # vectors of a column
    high_bits = high.bit_length() - 1
    abreast = THREADS // high  # columns
    item_bits = width - 1

    def kernel(dst, src, extents, divisions, steps):
        sm = cuda.shared.array(words, u32, alignment=16)
        t = i32(cuda.threadIdx.x)
        block = i32(cuda.blockIdx.x)
        across = quotient(block, divisions[0], divisions[1])
        r0 = i32(i32(block - across * extents[2]) * ROWS)
        nest = quotient(across, divisions[2], divisions[3])
        c0 = i32(i32(across - nest * extents[3]) * columns)
        to, at = place(nest, extents, divisions, steps)
        live_columns = min(i32(extents[1] - c0), i32(columns))
        pitch = extents[4]

        row = i32(t >> 3)
        r = i32(i32(r0 - above) + row)
        start = src + at + i64(i32(r0 - above)) * steps[0] + i64(c0) * width
        origin = i32(start & 15)
        a = start + i64(row) * steps[0]
        s = i32(origin + row * pitch)
        v = i32((t & 7) * 16)
        length = i32(live_columns * width)
        live = min(extents[0], i32(r0 + ROWS))
        for _ in range(rounds):
            j = i32(v - i32(a & 15))
            if (r >= 0) & (r < live) & (j < length):
                stage(sm, i32(s + j), load(a + i64(j)))
            r = i32(r + at_once)
            s = i32(s + at_once * pitch)
            a += at_once * steps[0]
        cuda.syncthreads()

        c = i32(t >> high_bits)
        v = i32((t & (high - 1)) * items)
        d = dst + to + i64(i32(c0 + c)) * steps[1] + i64(r0) * width
        s = i32(origin + i32(v + above) * pitch + c * width)
        while c < live_columns:
            skew = i32(i32(d & 15) >> item_bits)
            i = i32(v - skew)
            x = i32(s - skew * pitch)
            b = d + i64(i) * width
            r = i32(r0 + i)
            if (r >= 0) & (i32(r + items) <= extents[0]):
                store(b, gathered(sm, x, pitch))
            else:
                # The ends of the transpose's columns.
                last = min(extents[0], i32(r + items))
                while r < last:
                    if r >= 0:
                        single(b, fetch(sm, x))
                    r = i32(r + 1)
                    x = i32(x + pitch)
                    b += width
            c = i32(c + abreast)
            s = i32(s + abreast * width)
            d += abreast * steps[1]

    return kernel
