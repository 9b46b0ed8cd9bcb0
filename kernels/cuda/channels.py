"""Splitting and merging two to four interleaved channels."""

from typing import Any

from arraybridge.kernels.cuda.indices import decode, divide
from arraybridge.kernels.cuda.network import join_table, split_table
from arraybridge.kernels.cuda.plan_types import THREADS


def _vectors(ops: Any, channels: int) -> Any:
    """Make ``vectors(at, step)``: the words of one vector per channel."""
    load = ops.ld[16]

    @ops.device
    def vectors(at, step):
        a = load(at)
        b = load(at + step)
        if channels == 2:
            return (a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3])
        c = load(at + 2 * step)
        if channels == 3:
            return (a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3], c[0], c[1], c[2], c[3])
        d = load(at + 3 * step)
        return (
            a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3],
            c[0], c[1], c[2], c[3], d[0], d[1], d[2], d[3],
        )  # fmt: skip

    return vectors


def split(ops: Any, width: int, channels: int, kept: tuple[int, ...], axes: int) -> Any:
    """Make the kernel that splits channels (HWC to CHW), or some of them if items are bytes.

    A thread loads one vector per channel, and stores one per kept channel, whose bytes it selects
    in registers. The vectors of a thread are adjacent, so that the first request of a warp brings
    the data of the second into L1.

    `width`: bytes per item, 1, 2, 4 or 8. `channels`: 2, 3 or 4; `kept`: the wanted ones, in the
    destination's order. `axes`: of the nest of pieces, at least 1.

    ``extents``: the number of pieces, then their nest, as `divisions`; ``steps``: from channel to
    channel in the destination, then the nest. Everything is a multiple of 16 bytes.
    """
    cuda, i32, store = ops.cuda, ops.i32, ops.st[16]
    place, vectors = decode(ops, axes, extent=1, step=1), _vectors(ops, channels)
    apart = ops.permute(split_table(width, channels, kept), 4 * channels)
    count = len(kept)

    def kernel(dst, src, extents, divisions, steps):
        e = i32(i32(cuda.blockIdx.x) * THREADS + i32(cuda.threadIdx.x))
        if e < extents[0]:
            to, at = place(e, extents, divisions, steps)
            to += dst
            v = apart(vectors(src + at, 16))
            store(to, (v[0], v[1], v[2], v[3]))
            if count > 1:
                store(to + steps[0], (v[4], v[5], v[6], v[7]))
            if count > 2:
                store(to + 2 * steps[0], (v[8], v[9], v[10], v[11]))
            if count > 3:
                store(to + 3 * steps[0], (v[12], v[13], v[14], v[15]))

    return kernel


def merge(ops: Any, width: int, channels: int, axes: int, dense: bool = False) -> Any:
    """Make the kernel that merges channels (CHW to HWC); width and channels as for `split`.

    A thread loads one vector of each channel and interleaves them in registers; the results of a
    block go through shared memory, so that the stores of a warp are dense. `axes`: of the nest of a
    channel's vectors, at least 1. `dense`: the whole destination is one run.

    ``extents``: the number of pieces, vectors per row of the destination, then the nest, whose
    innermost axis is a row of pieces; vectors per row are the first of the `divisions`; ``steps``:
    from channel to channel in the source, then the nest.
    Everything is a multiple of 16 bytes.
    """
    cuda, i32, i64, u32 = ops.cuda, ops.i32, ops.i64, ops.u32
    store, fetch, stage = ops.st[16], ops.lds[16], ops.sts[16]
    quotient, vectors = divide(ops), _vectors(ops, channels)
    place = decode(ops, axes, extent=2, pair=2, step=1)
    outer: Any = decode(ops, axes - 1, extent=3, pair=4, step=3) if axes > 1 else None
    together = ops.permute(join_table(width, channels), 4 * channels)
    words = THREADS * channels * 4
    # Vectors are swapped within 128 bytes, so that 8 staging threads use 32 banks: with 2 channels
    # they would use every second vector of 16, with 4 every fourth of 32.
    turn = {2: 1, 3: 0, 4: 3}[channels]

    @ops.device
    def spot(slot):
        return i32((slot ^ (slot >> 3 & turn)) * 16)

    @ops.device
    def staged(sm, e, words):
        v = together(words)
        slot = i32(e * channels)
        stage(sm, spot(slot), (v[0], v[1], v[2], v[3]))
        stage(sm, spot(i32(slot + 1)), (v[4], v[5], v[6], v[7]))
        if channels > 2:
            stage(sm, spot(i32(slot + 2)), (v[8], v[9], v[10], v[11]))
        if channels > 3:
            stage(sm, spot(i32(slot + 3)), (v[12], v[13], v[14], v[15]))

    def kernel(dst, src, extents, divisions, steps):
        sm = cuda.shared.array(words, u32, alignment=16)
        t = i32(cuda.threadIdx.x)
        start = i32(i32(cuda.blockIdx.x) * THREADS)
        e = i32(start + t)
        if e < extents[0]:
            _, at = place(e, extents, divisions, steps)
            at += src
            staged(sm, t, vectors(at, steps[0]))
        cuda.syncthreads()
        for k in range(channels):
            n = i32(start * channels + k * THREADS + t)
            if n < i32(extents[0] * channels):
                vector = fetch(sm, spot(i32(k * THREADS + t)))
                if dense:
                    store(dst + i64(n) * 16, vector)
                else:
                    row = quotient(n, divisions[0], divisions[1])
                    to, _ = outer(row, extents, divisions, steps)
                    store(dst + to + i64(i32(n - row * extents[1])) * 16, vector)

    return kernel
