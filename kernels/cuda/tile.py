"""Transposes in tiles of 16 KB in shared memory: by vectors of 16 bytes, or item by item."""

from typing import Any

from arraybridge.kernels.cuda.indices import decode, divide, staged
from arraybridge.kernels.cuda.plan_types import THREADS

#: Bytes of a tile.
TILE_BYTES = 16384

#: Bytes of an item -> widths of a tile in items, along the source's run; preferred
#: shapes first. Both sides have at least 128 bytes, and at most 64 chunks down: 8 warps read 8
#: chunks of 4 columns each.
TILE: dict[int, tuple[int, ...]] = {
    1: (128,),
    2: (64, 128),
    4: (64, 32, 128),
    8: (32, 64, 16, 128),
    16: (32, 16, 64, 128),
}

#: The same for `plain`.
PLAIN: dict[int, tuple[int, ...]] = {4: (64, 32, 128), 8: (32, 64)}


def _column(ops: Any, width: int, row: int) -> Any:
    """Make ``column(sm, at)``: 16 bytes down a column of items of 4, 8 or 16 bytes."""
    i32, fetch = ops.i32, ops.lds[width]

    @ops.device
    def column(sm, at):
        if width == 16:
            return fetch(sm, at)
        if width == 8:
            a, b = fetch(sm, at)
            c, d = fetch(sm, i32(at + row))
            return (a, b, c, d)
        return (
            fetch(sm, at),
            fetch(sm, i32(at + row)),
            fetch(sm, i32(at + 2 * row)),
            fetch(sm, i32(at + 3 * row)),
        )

    return column


def _pair(ops: Any, row: int) -> Any:
    """Make ``pair(sm, at)``: two rows of two items of 2 bytes, transposed."""
    i32, u32, fetch, prmt = ops.i32, ops.u32, ops.lds[4], ops.prmt

    @ops.device
    def pair(sm, at):
        a = fetch(sm, at)
        b = fetch(sm, i32(at + row))
        return (prmt(a, b, u32(0x5410)), prmt(a, b, u32(0x7632)))

    return pair


def _quad(ops: Any, row: int) -> Any:
    """Make ``quad(sm, at)``: four rows of four bytes, transposed."""
    i32, u32, fetch, prmt = ops.i32, ops.u32, ops.lds[4], ops.prmt

    @ops.device
    def quad(sm, at):
        a = fetch(sm, at)
        b = fetch(sm, i32(at + row))
        c = fetch(sm, i32(at + 2 * row))
        d = fetch(sm, i32(at + 3 * row))
        x, y = prmt(a, b, u32(0x5140)), prmt(c, d, u32(0x5140))
        z, w = prmt(a, b, u32(0x7362)), prmt(c, d, u32(0x7362))
        return (
            prmt(x, y, u32(0x5410)),
            prmt(x, y, u32(0x7632)),
            prmt(z, w, u32(0x5410)),
            prmt(z, w, u32(0x7632)),
        )

    return quad


def tile(ops: Any, width: int, columns: int, axes: int) -> Any:
    """Make the kernel that transposes tiles: 4 loads and 4 stores of 16 bytes per thread.

    The tile is in shared memory as in the source, its rows along the source's run. Chunk c (16
    bytes) of row r is at chunk ``c ^ (r // G % 8)``, G the items of a chunk: 32 threads that read
    down their columns, and 8 that write their chunks, always use 32 different banks. A thread reads
    the items of a chunk down one column; for small items one word of columns at once, transposed in
    registers. `width`: bytes per item, 1 to 16; `columns`: the width of a tile in items, see
    `TILE`; `axes`: of the nest of transposes.

    ``extents``: rows, columns, tiles down, tiles across, then the nest; the tiles are the first two
    `divisions`; ``steps``: from row to row in the source, from column to column in the destination,
    then the nest. Both extents and both sides are multiples of 16 bytes.
    """
    cuda, i32, i64, u32 = ops.cuda, ops.i32, ops.i64, ops.u32
    load, store, stage = ops.ld[16], ops.st[16], ops.sts[16]
    quotient, place = divide(ops), decode(ops, axes, extent=4, pair=4, step=2)
    rows = TILE_BYTES // width // columns
    words = TILE_BYTES // 4
    items = 16 // width  # of a chunk
    cell = max(width, 4)  # bytes that a thread reads of a row
    abreast = cell // width  # columns in them
    row = columns * width  # bytes
    chunks = row // 16  # of a row
    apart = THREADS // chunks  # rows between a thread's loads
    groups = rows // items  # chunks of a column
    high = groups // 8  # a warp has 8 groups of 4 adjacent cells
    further = THREADS // groups  # cells between those of a thread
    pieces = row // cell // further
    column: Any = _column(ops, width, row) if width >= 4 else None
    square = _pair(ops, row) if width == 2 else _quad(ops, row)
    # Shifts: Numba's // of a signed number is more than one instruction.
    chunk_bits, item_bits, high_bits = (n.bit_length() - 1 for n in (chunks, items, high))

    @ops.device
    def spot(r, c):
        return i32(r * row + (c ^ (r >> item_bits & 7)) * 16)

    def kernel(dst, src, extents, divisions, steps):
        sm = cuda.shared.array(words, u32, alignment=16)
        t = i32(cuda.threadIdx.x)
        block = i32(cuda.blockIdx.x)
        across = quotient(block, divisions[0], divisions[1])
        r0 = i32(i32(block - across * extents[2]) * rows)
        nest = quotient(across, divisions[2], divisions[3])
        c0 = i32(i32(across - nest * extents[3]) * columns)
        to, at = place(nest, extents, divisions, steps)
        live_rows = i32(extents[0] - r0)
        live_columns = i32(extents[1] - c0)

        r = i32(t >> chunk_bits)
        c = i32(t & (chunks - 1))
        a = src + at + i64(i32(r0 + r)) * steps[0] + i64(i32(c0 + c * items)) * width
        down = apart * steps[0]
        s = spot(r, c)
        s1 = spot(i32(r + apart), c)
        s2 = spot(i32(r + 2 * apart), c)
        s3 = spot(i32(r + 3 * apart), c)
        if (live_rows >= rows) & (live_columns >= columns):
            v0 = load(a)
            v1 = load(a + down)
            v2 = load(a + 2 * down)
            v3 = load(a + 3 * down)
            stage(sm, s, v0)
            stage(sm, s1, v1)
            stage(sm, s2, v2)
            stage(sm, s3, v3)
        elif i32(c * items) < live_columns:
            if r < live_rows:
                stage(sm, s, load(a))
            if i32(r + apart) < live_rows:
                stage(sm, s1, load(a + down))
            if i32(r + 2 * apart) < live_rows:
                stage(sm, s2, load(a + 2 * down))
            if i32(r + 3 * apart) < live_rows:
                stage(sm, s3, load(a + 3 * down))
        cuda.syncthreads()

        lane = i32(t & 31)
        warp = i32(t >> 5)
        g = i32((warp & (high - 1)) * 8 + (lane & 7))
        w0 = i32((warp >> high_bits) * 4 + (lane >> 3))
        if i32(g * items) < live_rows:
            b = dst + to + i64(i32(r0 + g * items)) * width
            b += i64(i32(c0 + w0 * abreast)) * steps[1]
            for k in range(pieces):
                w = i32(w0 + k * further)
                if i32(w * abreast) < live_columns:
                    x = i32(g * (items * row) + ((w * cell >> 4 ^ (g & 7)) << 4) + (w * cell & 15))
                    if width >= 4:
                        store(b, column(sm, x))
                    else:
                        q0 = square(sm, x)
                        q1 = square(sm, i32(x + abreast * row))
                        q2 = square(sm, i32(x + 2 * abreast * row))
                        q3 = square(sm, i32(x + 3 * abreast * row))
                        store(b, (q0[0], q1[0], q2[0], q3[0]))
                        store(b + steps[1], (q0[1], q1[1], q2[1], q3[1]))
                        if width == 1:
                            store(b + 2 * steps[1], (q0[2], q1[2], q2[2], q3[2]))
                            store(b + 3 * steps[1], (q0[3], q1[3], q2[3], q3[3]))
                b += (further * abreast) * steps[1]

    return kernel


def plain(ops: Any, width: int, columns: int, axes: int) -> Any:
    """Make the kernel for items of 4 and 8 bytes that are not aligned to vectors of 16 bytes.

    It transposes tiles item by item, 32 adjacent items on both sides.

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
