"""Boxes: all layouts with a dense run in the destination that no other kernel copies.

A block copies a box of the nest. It reads a few *lines* of the source, each as the aligned vectors
of 16 bytes that contain it, without changes. It writes *runs* of the destination, each at one
*place*, item by item or, for small items, in words of 4 bytes: the items of a warp are adjacent. A
thread writes the same item of the run at all its places, so it computes the item's position in
shared memory once.
"""

from typing import Any

from arraybridge.kernels.cuda.indices import decode, divide
from arraybridge.kernels.cuda.plan_types import THREADS

#: Bytes of shared memory that a block has.
SHARED_BYTES = 24576

# A plan's extents. A and B are the outermost axes of the run and of the places: the grid cuts both
# into pieces. A line spans a window of the source. A pitch is a step in shared memory; pitches,
# strides and spans are in **bytes**. Names with a number are an excess: see `box`.
(
    ALL_A, PIECE_A, PIECES_A, ALL_B, PIECE_B, PIECES_B,
    LOW, SPAN,  # the window's lowest byte, and its bytes, if A and B have one item
    WINDOW_A, WINDOW_B,  # strides of A and B in the window
    LINES, LINES_OF_A,  # lines if A has one item, and for each further one
    LINE,  # bytes of the vectors of a line, negated
    PITCH, PITCH_2, PITCH_3,  # of the axes that make lines
    INNER,  # items of a run's axes except A
    CHUNK,  # items of a chunk of a run; with two place axes, the extent of the first
    LANES, ALIGNMENT,  # lanes of a run, and a mask of the address of the first one
    RUN, RUN_2, RUN_3,  # pitches of the run's axes
    PLACE, PLACE_2,  # of the places
    STEP, ASIDE,  # from one place of a thread to the next: places or items, and bytes
    EDGES,  # whether runs begin or end within a word
    EXTENTS,
) = range(29)  # fmt: skip

# The divisions, two numbers each: `indices.divide` for the first two, `short` for the others.
(
    BY_PIECES_A, BY_PIECES_B,
    BY_LINE,
    BY_LINES, BY_LINES_2,  # the extent of the first axis that makes lines, and of the first two
    BY_RUN, BY_RUN_2,  # of the run's axes
    BY_PLACE,
    BY_LANES,  # only a shift
    DIVISIONS,
) = range(0, 20, 2)  # fmt: skip

# The steps.
(
    A_DST, A_SRC, B_DST, B_SRC,
    PLACE_DST, PLACE_2_DST,
    LINE_SRC, LINE_2_SRC, LINE_3_SRC,
    STEP_DST,  # from one place of a thread to the next
    STEPS,
) = range(11)  # fmt: skip


def box(ops: Any, width: int, run: int, places: int, lines: int, axes: int) -> Any:
    """Make the kernel for items of `width` bytes.

    `run`: axes that make a run, 1 to 3, all whole except the last, A. `places`: axes that make the
    places, 0 to 2, all whole except the last, B; without them the places are chunks of the run.
    `lines`: axes of the run that are not dense in the source, 0 to 3; all others are within a line.
    `axes`: other axes that the grid covers.

    In shared memory a line keeps its address modulo 16, so that the position of an item is linear
    in its indices: a pitch is congruent to the stride, modulo 16. With ``x = digit0 * p0 + digit1 *
    p1``, ``digit0 = i - digit1 * n0``: ``x = i * p0 + digit1 * (p1 - n0 * p0)``; the expression in
    parentheses is called the excess of the axis.
    """
    cuda, i32, i64, u32 = ops.cuda, ops.i32, ops.i64, ops.u32
    shr, prmt = ops.shr, ops.prmt
    load, stage = ops.ld[16], ops.sts[16]
    fetch, single = ops.lds[width], ops.st[width]
    items = max(4 // width, 1)  # items of a unit, which a lane writes at once
    unit = items * width
    bits = width.bit_length() - 1
    AT_ONCE = THREADS // (2 * items)  # places whose edges are written at once
    store, words = ops.st[unit], SHARED_BYTES // 4
    quotient = divide(ops)
    outside = decode(ops, axes, EXTENTS, DIVISIONS, STEPS)

    @ops.device
    def wide(n):
        # n >= 0: unsigned makes a 64-bit product shorter
        return i64(u32(n))

    @ops.device
    def short(n, m, s):
        # n // d for 0 <= n < 2**15, and n * m below 2**32
        return i32(shr(u32(u32(n) * m), s))

    @ops.device
    def vector(q, start, origin, total, length, extents, divisions, steps):
        # The vector at byte q of all lines: its address, its offset in shared memory, and whether
        # it is needed.
        x = origin
        d = q  # bytes from the line's first vector
        if lines > 0:
            line = short(q, divisions[BY_LINE], divisions[BY_LINE + 1])
            d = i32(d + line * extents[LINE])
            x = i32(x + line * extents[PITCH])
            start += wide(line) * steps[LINE_SRC]
            if lines > 1:
                up = short(line, divisions[BY_LINES], divisions[BY_LINES + 1])
                x = i32(x + up * extents[PITCH_2])
                start += wide(up) * steps[LINE_2_SRC]
            if lines > 2:
                up = short(line, divisions[BY_LINES_2], divisions[BY_LINES_2 + 1])
                x = i32(x + up * extents[PITCH_3])
                start += wide(up) * steps[LINE_3_SRC]
        d = i32(d - (x & 15))
        return start + i64(d), i32(x + d), (d < length) & (q < total)

    @ops.device
    def maybe(address, there):
        zero = u32(0)
        v = (zero, zero, zero, zero)
        if there:
            v = load(address)
        return v

    @ops.device
    def spot(i, x, extents, divisions):
        # the offset of item i of a run whose first item is at x
        x = i32(x + i * extents[RUN])
        if run > 1:
            x = i32(x + short(i, divisions[BY_RUN], divisions[BY_RUN + 1]) * extents[RUN_2])
        if run > 2:
            x = i32(x + short(i, divisions[BY_RUN_2], divisions[BY_RUN_2 + 1]) * extents[RUN_3])
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
    def gathered(sm, x, shift):
        if items == 4:
            a, b = fetch(sm, i32(x[0] + shift)), fetch(sm, i32(x[1] + shift))
            c, d = fetch(sm, i32(x[2] + shift)), fetch(sm, i32(x[3] + shift))
            return prmt(prmt(a, b, u32(0x0040)), prmt(c, d, u32(0x0040)), u32(0x5410))
        if items == 2:
            a, b = fetch(sm, i32(x[0] + shift)), fetch(sm, i32(x[1] + shift))
            return prmt(a, b, u32(0x5410))
        return fetch(sm, i32(x[0] + shift))

    @ops.device
    def placed(p, divisions, extents, steps):
        # the offsets of place p from place 0
        up = short(p, divisions[BY_PLACE], divisions[BY_PLACE + 1])
        shift = i32(p * extents[PLACE] + up * extents[PLACE_2])
        return wide(p) * steps[PLACE_DST] + wide(up) * steps[PLACE_2_DST], shift

    @ops.device
    def write(sm, b, x, p, stop, extents, divisions, steps):
        # Write a unit of the run at all places of the thread, four per iteration.
        shift = i32(0)
        step, aside, along = extents[STEP], extents[ASIDE], steps[STEP_DST]
        while i32(p + 3 * step) < stop:
            for _ in range(2):
                c, y = i64(0), shift
                d, z = along, i32(shift + aside)
                if places == 2:
                    c, y = placed(p, divisions, extents, steps)
                    d, z = placed(i32(p + step), divisions, extents, steps)
                v, w = gathered(sm, x, y), gathered(sm, x, z)
                store(b + c, v)
                store(b + d, w)
                if places < 2:
                    shift = i32(z + aside)
                    b += 2 * along
                p = i32(p + 2 * step)
        while p < stop:
            if places == 2:
                c, y = placed(p, divisions, extents, steps)
                store(b + c, gathered(sm, x, y))
            else:
                store(b, gathered(sm, x, shift))
                b += along
                shift = i32(shift + aside)
            p = i32(p + step)

    @ops.device
    def write_edges(sm, t, dst, origin, run_items, stop, extents, divisions, steps):
        # The rest of runs that do not begin or end with a unit: a few items at either end, each
        # written by one lane.
        p = i32(shr(u32(t), u32(items // 2 + 1)))
        e = i32(t & (2 * items - 1))
        b = dst
        shift = i32(0)
        along, aside = i64(0), i32(0)
        if places == 1:
            b += wide(p) * steps[PLACE_DST]
            shift = i32(p * extents[PLACE])
            along, aside = AT_ONCE * steps[PLACE_DST], i32(AT_ONCE * extents[PLACE])
        head = min(i32(shr(u32(i32((0 - b) & 3)), u32(bits))), run_items)
        there = e < head
        j = e
        if e >= items:
            j = i32(i32(head + (i32(run_items - head) & i32(-items))) + i32(e - items))
            there = j < run_items
        if there:
            x = spot(j, origin, extents, divisions)
            b += wide(j) * width
            while p < stop:
                if places == 2:
                    c, y = placed(p, divisions, extents, steps)
                    single(b + c, fetch(sm, i32(x + y)))
                else:
                    single(b, fetch(sm, i32(x + shift)))
                    b += along
                    shift = i32(shift + aside)
                p = i32(p + AT_ONCE)

    def kernel(dst, src, extents, divisions, steps):
        sm = cuda.shared.array(words, u32, alignment=16)
        t = i32(cuda.threadIdx.x)
        block = i32(cuda.blockIdx.x)
        rest = quotient(block, divisions[BY_PIECES_A], divisions[BY_PIECES_A + 1])
        first = i32(i32(block - rest * extents[PIECES_A]) * extents[PIECE_A])
        live_a = min(extents[PIECE_A], i32(extents[ALL_A] - first))
        live_b = i32(1)
        dst += wide(first) * steps[A_DST]
        src += wide(first) * steps[A_SRC]
        if places > 0:
            index = quotient(rest, divisions[BY_PIECES_B], divisions[BY_PIECES_B + 1])
            first = i32(i32(rest - index * extents[PIECES_B]) * extents[PIECE_B])
            live_b = min(extents[PIECE_B], i32(extents[ALL_B] - first))
            dst += wide(first) * steps[B_DST]
            src += wide(first) * steps[B_SRC]
            rest = index
        to, fro = outside(rest, extents, divisions, steps)
        dst += to
        src += fro
        # The window that one line spans, for the part of the box within the nest.
        more_a = i32(i32(live_a - 1) * extents[WINDOW_A])
        more_b = i32(i32(live_b - 1) * extents[WINDOW_B])
        low = i32(extents[LOW] + min(more_a, i32(0)) + min(more_b, i32(0)))
        length = i32(extents[SPAN] + abs(more_a) + abs(more_b))
        start = src + low
        origin = i32(start & 15)
        count = i32(extents[LINES] + i32(live_a - 1) * extents[LINES_OF_A])
        total = i32(0 - count * extents[LINE])
        q = i32(16 * t)
        more = True
        while more:
            a0, x0, there0 = vector(q, start, origin, total, length, extents, divisions, steps)
            q = i32(q + 16 * THREADS)
            a1, x1, there1 = vector(q, start, origin, total, length, extents, divisions, steps)
            q = i32(q + 16 * THREADS)
            a2, x2, there2 = vector(q, start, origin, total, length, extents, divisions, steps)
            q = i32(q + 16 * THREADS)
            a3, x3, there3 = vector(q, start, origin, total, length, extents, divisions, steps)
            q = i32(q + 16 * THREADS)
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
            more = q < total
        cuda.syncthreads()
        # A row of lanes writes at one place, the next row at the next.
        row = i32(shr(u32(t), divisions[BY_LANES + 1]))
        lanes = extents[LANES]
        run_items = i32(live_a * extents[INNER])
        origin = i32(origin - low)
        stop = live_b
        if places == 2:
            stop = i32(live_b * extents[CHUNK])
        p = row
        last = i32(run_items - items)  # the last item at which a unit may begin
        if places == 0:
            # Places are counted in items of the run. A unit may extend into the next chunk.
            p = i32(row * extents[CHUNK])
            to = dst + wide(p) * width
            at = i32(origin + row * extents[PLACE])
            end = i32(last + 1)
            last = i32(extents[CHUNK] - 1)
        elif places == 1:
            to = dst + wide(row) * steps[PLACE_DST]
            at = i32(origin + row * extents[PLACE])
            end = stop
        else:
            to = dst
            at = origin
            end = stop
        skew = i32(shr(u32(i32(to & 31) & extents[ALIGNMENT]), u32(bits)))
        i = i32(i32(t & i32(lanes - 1)) * items - skew)
        while i <= last:
            if i >= 0:
                x = spots(i, at, extents, divisions)
                b = to + wide(i) * width
                r = p
                if places == 0:
                    r = i32(p + i)
                write(sm, b, x, r, end, extents, divisions, steps)
            i = i32(i + lanes * items)
        if items > 1:
            edges = extents[EDGES]
            if edges != 0:
                write_edges(sm, t, dst, origin, run_items, stop, extents, divisions, steps)

    return kernel
