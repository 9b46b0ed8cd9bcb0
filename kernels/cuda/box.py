"""Boxes: whatever has a dense run in the destination and is no plain run, tile or interleaving.

A block copies a box of the nest. What it reads is a few *lines* of the source, each of which comes
as the aligned vectors of 16 bytes that it lies in, just as they are. What it writes are *runs* of
the destination, at one *place* each, item by item or, where items are smaller, in words of 4 bytes:
a warp's items lie side by side. Which item of a run a thread writes does not depend on the place;
so where that item waits in shared memory is found once, and serves all places of the thread.
"""

from __future__ import annotations

from typing import Any

from arraybridge.kernels.cuda.indices import decode, divide
from arraybridge.kernels.cuda.record import THREADS

__all__ = ["DIVISIONS", "EXTENTS", "SHARED", "STEPS", "box"]

#: Bytes of shared memory that a block has.
SHARED = 24576

#: What a plan's extents are, up to those of the axes that the grid walks over. A and B are the
#: outermost axis of a run and of the places, which the grid cuts in pieces; strides and pitches
#: are **bytes**, a pitch is a step in shared memory.
EXTENTS = (
    "all of A", "a piece of A", "pieces of A",
    "all of B", "a piece of B", "pieces of B",
    "lowest byte of the window", "bytes of the window", "stride of A in it", "stride of B in it",
    "lines", "lines that A makes", "vectors of a line",
    "pitch of lines", "excess of the second line axis", "excess of the third",
    "stride of lines", "excess of the second line axis, in the source", "excess of the third",
    "items of a run's whole axes", "items of a chunk", "lanes of a run", "alignment",
    "pitch of a run", "excess of its second axis", "excess of its third",
    "pitch of places", "excess of the second place axis",
    "step of a thread", "its step in shared memory",
)  # fmt: skip

#: Divisors, a multiplier and a shift each: `indices.divide` for the first two, `short` for others.
DIVISIONS = (
    "pieces of A", "pieces of B", "vectors of a line", "first line axis", "first two line axes",
    "first run axis", "first two run axes", "first place axis", "lanes of a run",
)  # fmt: skip

STEPS = (
    "A, destination", "A, source", "B, destination", "B, source",
    "places, destination", "excess of the second place axis",
    "lines", "excess of the second line axis", "excess of the third",
    "step of a thread, destination",
)  # fmt: skip


def box(ops: Any, width: int, run: int, places: int, lines: int, far: int, axes: int) -> Any:
    """Make the kernel.

    Parameters
    ----------
    ops : object
        The operations.
    width : int
        Bytes of an item.
    run : int
        Axes that make a run, 1 to 3: all but the last, A, whole.
    places : int
        Axes that make the places, 0 to 2: all but the last, B, whole. With 0 the run itself is cut
        in chunks, which are the places.
    lines : int
        Axes of the run over which the source jumps, 0 to 3; all others lie within a line.
    far : int
        1 where the lines of a box lie so far apart that 32 bits do not hold the distance.
    axes : int
        Axes that the grid walks over beside the pieces of A and B.

    Notes
    -----
    In shared memory a line keeps its address modulo 16, so that where an item lies is linear in
    its indices: a pitch is congruent to the stride, modulo 16. With ``x = digit0 * p0 + digit1 *
    p1``, ``digit0 = i - digit1 * n0``: ``x = i * p0 + digit1 * (p1 - n0 * p0)``; what is in
    brackets is called the excess of the axis.
    """
    cuda, i32, i64, u32 = ops.cuda, ops.i32, ops.i64, ops.u32
    shr, prmt = ops.shr, ops.prmt
    load, stage = ops.ld[16], ops.sts[16]
    fetch, single = ops.lds[width], ops.st[width]
    items = max(4 // width, 1)  # items of a unit, which is what a lane writes
    unit = items * width
    store, words = ops.st[unit], SHARED // 4
    quotient = divide(ops)
    outside = decode(ops, axes, len(EXTENTS), 2 * len(DIVISIONS), len(STEPS))

    @ops.device
    def short(n, m, s):
        # n // d for 0 <= n < 2**15, and n * m below 2**32
        return i32(shr(u32(u32(n) * m), s))

    @ops.device
    def vector(q, start, origin, total, length, extents, divisions, steps):
        # Vector q of the box: its address, its place in shared memory, whether it is needed.
        x = origin
        j = q
        far_off = i64(0)
        off = i32(0)
        if lines > 0:
            line = short(q, divisions[4], divisions[5])
            j = i32(q - line * extents[12])
            x = i32(x + line * extents[13])
            if far:
                far_off += i64(line) * steps[6]
            else:
                off = i32(line * extents[16])
            if lines > 1:
                up = short(line, divisions[6], divisions[7])
                x = i32(x + up * extents[14])
                if far:
                    far_off += i64(up) * steps[7]
                else:
                    off = i32(off + up * extents[17])
            if lines > 2:
                up = short(line, divisions[8], divisions[9])
                x = i32(x + up * extents[15])
                if far:
                    far_off += i64(up) * steps[8]
                else:
                    off = i32(off + up * extents[18])
        d = i32(16 * j - (x & 15))
        return start + far_off + i64(i32(off + d)), i32(x + d), (d < length) & (q < total)

    @ops.device
    def maybe(address, there):
        zero = u32(0)
        v = (zero, zero, zero, zero)
        if there:
            v = load(address)
        return v

    @ops.device
    def spot(i, x, extents, divisions):
        # where item i of a run lies, of which the first is at x
        x = i32(x + i * extents[23])
        if run > 1:
            x = i32(x + short(i, divisions[10], divisions[11]) * extents[24])
        if run > 2:
            x = i32(x + short(i, divisions[12], divisions[13]) * extents[25])
        return x

    @ops.device
    def spots(i, x, extents, divisions):
        if items == 4:
            return (
                spot(i, x, extents, divisions),
                spot(i32(i + 1), x, extents, divisions),
                spot(i32(i + 2), x, extents, divisions),
                spot(i32(i + 3), x, extents, divisions),
            )
        if items == 2:
            return (spot(i, x, extents, divisions), spot(i32(i + 1), x, extents, divisions))
        return (spot(i, x, extents, divisions),)

    @ops.device
    def moved(x, step):
        if items == 4:
            return (i32(x[0] + step), i32(x[1] + step), i32(x[2] + step), i32(x[3] + step))
        if items == 2:
            return (i32(x[0] + step), i32(x[1] + step))
        return (i32(x[0] + step),)

    @ops.device
    def gathered(sm, x):
        if items == 4:
            low = prmt(fetch(sm, x[0]), fetch(sm, x[1]), u32(0x0040))
            high = prmt(fetch(sm, x[2]), fetch(sm, x[3]), u32(0x0040))
            return prmt(low, high, u32(0x5410))
        if items == 2:
            return prmt(fetch(sm, x[0]), fetch(sm, x[1]), u32(0x5410))
        return fetch(sm, x[0])

    @ops.device
    def placed(p, b, x, extents, divisions, steps):
        # the same of a run for place p, from those of place 0
        up = short(p, divisions[14], divisions[15])
        shift = i32(p * extents[26] + up * extents[27])
        return b + (i64(p) * steps[4] + i64(up) * steps[5]), moved(x, shift)

    @ops.device
    def write(sm, b, x, p, stop, step, along, aside, extents, divisions, steps):
        # one unit of the run, at all places of the thread, two of them a turn
        while i32(p + step) < stop:
            if places == 2:
                c, y = placed(p, b, x, extents, divisions, steps)
                d, z = placed(i32(p + step), b, x, extents, divisions, steps)
                v, w = gathered(sm, y), gathered(sm, z)
                store(c, v)
                store(d, w)
            else:
                y = moved(x, aside)
                v, w = gathered(sm, x), gathered(sm, y)
                store(b, v)
                b += along
                store(b, w)
                b += along
                x = moved(y, aside)
            p = i32(i32(p + step) + step)
        if p < stop:
            if places == 2:
                c, y = placed(p, b, x, extents, divisions, steps)
                store(c, gathered(sm, y))
            else:
                store(b, gathered(sm, x))
                b += along
                x = moved(x, aside)
            p = i32(p + step)
        return b, x, p

    @ops.device
    def write_item(sm, b, x, p, stop, step, along, aside, extents, divisions, steps):
        while p < stop:
            if places == 2:
                up = short(p, divisions[14], divisions[15])
                shift = i32(p * extents[26] + up * extents[27])
                single(b + (i64(p) * steps[4] + i64(up) * steps[5]), fetch(sm, i32(x + shift)))
            else:
                single(b, fetch(sm, x))
                b += along
                x = i32(x + aside)
            p = i32(p + step)

    @ops.device
    def part(sm, b, x, left):
        # the last unit of a run that is cut in chunks: it may be a part of one
        single(b, fetch(sm, x[0]))
        if items == 4:
            if left > 1:
                single(b + width, fetch(sm, x[1]))
            if left > 2:
                single(b + 2 * width, fetch(sm, x[2]))

    def kernel(dst, src, extents, divisions, steps):
        sm = cuda.shared.array(words, u32, alignment=16)
        t = i32(cuda.threadIdx.x)
        block = i32(cuda.blockIdx.x)
        rest = quotient(block, divisions[0], divisions[1])
        first = i32(i32(block - rest * extents[2]) * extents[1])
        live_a = min(extents[1], i32(extents[0] - first))
        live_b = i32(1)
        dst += i64(first) * steps[0]
        src += i64(first) * steps[1]
        if places > 0:
            index = quotient(rest, divisions[2], divisions[3])
            first = i32(i32(rest - index * extents[5]) * extents[4])
            live_b = min(extents[4], i32(extents[3] - first))
            dst += i64(first) * steps[2]
            src += i64(first) * steps[3]
            rest = index
        to, at = outside(rest, extents, divisions, steps)
        dst += to
        src += at
        # The window: what one line spans, as far as the box is within the nest.
        more_a = i32(i32(live_a - 1) * extents[8])
        more_b = i32(i32(live_b - 1) * extents[9])
        low = i32(extents[6] + min(more_a, i32(0)) + min(more_b, i32(0)))
        length = i32(extents[7] + abs(more_a) + abs(more_b))
        start = src + low
        origin = i32(start & 15)
        count = i32(extents[10] + i32(live_a - 1) * extents[11])
        total = i32(count * extents[12])
        q = t
        while q < total:
            a0, x0, there0 = vector(q, start, origin, total, length, extents, divisions, steps)
            q = i32(q + THREADS)
            a1, x1, there1 = vector(q, start, origin, total, length, extents, divisions, steps)
            q = i32(q + THREADS)
            a2, x2, there2 = vector(q, start, origin, total, length, extents, divisions, steps)
            q = i32(q + THREADS)
            a3, x3, there3 = vector(q, start, origin, total, length, extents, divisions, steps)
            q = i32(q + THREADS)
            v0 = maybe(a0, there0)
            v1 = maybe(a1, there1)
            v2 = maybe(a2, there2)
            v3 = maybe(a3, there3)
            if there0:
                stage(sm, x0, v0)
            if there1:
                stage(sm, x1, v1)
            if there2:
                stage(sm, x2, v2)
            if there3:
                stage(sm, x3, v3)
        cuda.syncthreads()
        # A row of lanes writes at a place, the next row at the next.
        row = i32(shr(u32(t), divisions[17]))
        lanes = extents[21]
        length = i32(live_a * extents[19])
        origin = i32(origin - low)
        step = extents[28]
        aside = extents[29]
        along = steps[9]
        if places == 0:
            # Places are counted in items of the run.
            p = i32(row * extents[20])
            dst += i64(p) * width
            origin = i32(origin + row * extents[26])
            stop = length
            length = min(length, extents[20])
        elif places == 1:
            p = row
            dst += i64(row) * steps[4]
            origin = i32(origin + row * extents[26])
            stop = live_b
        else:
            p = row
            stop = i32(live_b * extents[20])
        i = i32(i32(t & i32(lanes - 1)) * items - (i32(dst & 31) & extents[22]) // width)
        while i < length:
            if (i >= 0) & (i32(i + items) <= length):
                x = spots(i, origin, extents, divisions)
                b = dst + i64(i) * width
                if places > 0:
                    write(sm, b, x, p, stop, step, along, aside, extents, divisions, steps)
                else:
                    r, last = i32(p + i), i32(stop - (items - 1))
                    b, x, r = write(
                        sm, b, x, r, last, step, along, aside, extents, divisions, steps
                    )
                    if items > 1:
                        left = i32(stop - r)
                        if left > 0:
                            part(sm, b, x, left)
            elif items > 1:
                for k in range(items):
                    j = i32(i + k)
                    if (j >= 0) & (j < length):
                        one = spot(j, origin, extents, divisions)
                        b = dst + i64(j) * width
                        r = p
                        if places == 0:
                            r = i32(p + j)
                        write_item(
                            sm, b, one, r, stop, step, along, aside, extents, divisions, steps
                        )
            i = i32(i + lanes * items)

    return kernel
