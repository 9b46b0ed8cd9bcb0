"""Runs of bytes wherever they start: whole vectors to the destination, its edges in pieces."""

from typing import Any

from arraybridge.kernels.cuda.indices import decode, divide
from arraybridge.kernels.cuda.plan_types import THREADS
from arraybridge.kernels.cuda.rows import filled

#: Vectors that a thread copies, all loaded before the first is stored.
PIECES = 2


def _funnel(ops: Any) -> Any:
    """Make ``funnel(words, by)``: 16 of 32 bytes, from byte `by` (0 to 15) on."""
    prmt, u32 = ops.prmt, ops.u32

    @ops.device
    def funnel(words, by):
        w0, w1, w2, w3, w4, w5, w6, w7 = words
        if by & 8:
            w0, w1, w2, w3, w4, w5 = w2, w3, w4, w5, w6, w7
        if by & 4:
            w0, w1, w2, w3, w4 = w1, w2, w3, w4, w5
        s = u32(0x3210 + (by & 3) * 0x1111)
        return (prmt(w0, w1, s), prmt(w1, w2, s), prmt(w2, w3, s), prmt(w3, w4, s))

    return funnel


def _reversed(ops: Any, item: int) -> Any:
    """Make the device function that reverses the items of 16 bytes."""
    prmt, u32 = ops.prmt, ops.u32

    @ops.device
    def turn(v):
        if item == 8:
            return (v[2], v[3], v[0], v[1])
        if item == 4:
            return (v[3], v[2], v[1], v[0])
        s = u32(0x1032 if item == 2 else 0x0123)
        return (prmt(v[3], v[3], s), prmt(v[2], v[2], s), prmt(v[1], v[1], s), prmt(v[0], v[0], s))

    return turn


def _edge(ops: Any, unit: int) -> Any:
    """Make ``edge(address, i, word, length)``: store the part of a word within the run.

    `i` is the word's index in the run, in bytes; everything is a multiple of `unit` bytes.
    """
    i32, u32, shr, whole, part = ops.i32, ops.u32, ops.shr, ops.st[4], ops.st[min(unit, 4)]

    @ops.device
    def edge(address, i, word, length):
        if (i >= 0) & (i32(i + 4) <= length):
            whole(address, word)
        elif unit < 4:
            for k in range(0, 4, unit):
                if (i32(i + k) >= 0) & (i32(i + k) < length):
                    part(address + k, shr(word, u32(8 * k)))

    return edge


def shift(ops: Any, unit: int, axes: int, mode: str = "copy", even: bool = False) -> Any:
    """Make the kernel that copies runs of bytes with any alignment of the two sides.

    A thread makes aligned vectors of 16 bytes of the destination, each from the two vectors of the
    source that contain it; the first and the last of a run are stored in pieces if they are
    incomplete. `unit`: bytes of which everything is a multiple, and (except for ``copy``) bytes per
    item: 1, 2, 4 or 8. ``fill``: a run repeats one item. ``reverse``: a run has the source's items,
    beginning with `src`, backwards. `even`: both vectors of every thread are in one run.

    ``extents``: the number of vectors, vectors per block (`THREADS` or `PIECES` times as many),
    vectors per run, bytes per run, then the nest of runs; vectors per run are the first of the
    `divisions`; ``steps`` are the nest's.
    """
    cuda, i32, i64, u32 = ops.cuda, ops.i32, ops.i64, ops.u32
    load, store = ops.ld[16], ops.st[16]
    quotient, place = divide(ops), decode(ops, axes, extent=4, pair=2)
    funnel, edge = _funnel(ops), _edge(ops, unit)

    further = 16 * THREADS if mode == "copy" else -16 * THREADS

    item, spread, turn = ops.ld[unit], filled(ops, unit), _reversed(ops, unit)

    @ops.device
    def where(e, end, extents, divisions, steps, dst, src):
        # The vector's address and its index in the run; the address in the source of its bytes, and
        # of the run's first byte. An index beyond the run means nothing to do.
        run = quotient(e, divisions[0], divisions[1])
        to, at = place(run, extents, divisions, steps)
        to += dst
        at += src
        i = i32(i32(e - run * extents[2]) * 16 - i32(to & 15))
        to += i64(i)
        if e >= end:
            i = extents[3]
        if mode == "reverse":
            return to, i, at + (unit - 16) - i64(i), at + unit - i64(extents[3])
        return to, i, at + i64(i), at

    @ops.device
    def words(i, at, low, length):
        # Only vectors of the source with bytes of the run are read.
        zero = u32(0)
        a = (zero, zero, zero, zero)
        b = (zero, zero, zero, zero)
        aligned = at & ~15
        if (i < length) & (aligned + 16 > low):
            a = load(aligned)
        if (aligned != at) & (i < length) & (aligned + 16 < low + i64(length)):
            b = load(aligned + 16)
        return (a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3])

    @ops.device
    def put(to, i, v, length):
        if (i >= 0) & (i32(i + 16) <= length):
            store(to, v)
        elif i < length:
            edge(to, i, v[0], length)
            edge(to + 4, i32(i + 4), v[1], length)
            edge(to + 8, i32(i + 8), v[2], length)
            edge(to + 12, i32(i + 12), v[3], length)

    @ops.device
    def made(words, at):
        v = funnel(words, i32(at & 15))
        if mode == "reverse":
            return turn(v)
        return v

    def kernel(dst, src, extents, divisions, steps):
        start = i32(i32(cuda.blockIdx.x) * extents[1])
        end = min(extents[0], i32(start + extents[1]))
        e = i32(start + i32(cuda.threadIdx.x))
        to, i, at, low = where(e, end, extents, divisions, steps, dst, src)
        if even:
            to1, i1, at1, low1 = to + 16 * THREADS, i32(i + 16 * THREADS), at + further, low
        else:
            f = i32(e + THREADS)
            to1, i1, at1, low1 = where(f, end, extents, divisions, steps, dst, src)
        length = extents[3]
        if mode == "fill":
            if i < length:
                put(to, i, spread(item(low)), length)
            if i1 < length:
                put(to1, i1, spread(item(low1)), length)
        else:
            w = words(i, at, low, length)
            w1 = words(i1, at1, low1, length)
            put(to, i, made(w, at), length)
            put(to1, i1, made(w1, at1), length)

    return kernel
