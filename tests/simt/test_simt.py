"""The interpreter of CUDA kernels: what the bytes alone do not show is caught."""

import pytest

from arraybridge.kernels.cuda.plan_types import Plan
from tests.simt import Memory, launch


def straight(ops, what):
    """One item of 4 bytes per thread, but for one mistake."""
    cuda, i32, i64 = ops.cuda, ops.i32, ops.i64
    load, store, stage, fetch = ops.ld[4], ops.st[4], ops.sts[4], ops.lds[4]

    def kernel(dst, src, extents, divisions, steps):
        t = i32(cuda.threadIdx.x)
        at = i64(t) * 4
        if what == "reads the next":
            store(dst + at, load(src + at + 4))
        elif what == "writes twice":
            store(dst + at, load(src + at))
            store(dst + at, load(src + at))
        elif what == "two write one":
            store(dst + (i64(t) >> 1) * 4, load(src))
        elif what == "misses some":
            if t < 255:
                store(dst + at, load(src + at))
        elif what == "is misaligned":
            store(dst + at + 2, load(src + at))
        elif what == "overflows":
            i32(t * 8421505)
        elif what == "races":
            sm = cuda.shared.array(256, ops.u32, alignment=16)
            stage(sm, i32(t * 4), load(src + at))
            store(dst + at, fetch(sm, i32((255 - t) * 4)))
        elif what == "leaves a barrier":
            if t < 8:
                cuda.syncthreads()
        elif what == "does not wait":
            sm = cuda.shared.array(256, ops.u32, alignment=16)
            ops.copy_async[4](sm, i32(t * 4), src + at)
            cuda.syncthreads()
            store(dst + at, fetch(sm, i32(t * 4)))
        else:
            store(dst + at, load(src + at))

    return kernel


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("reads the next", r"4 bytes at 1024 of the source's 1024 .*test_simt.py:\d+"),
        ("writes twice", "or written before"),
        ("two write one", "two threads"),
        ("misses some", "4 bytes of the destination were never written"),
        ("is misaligned", "misaligned"),
        ("overflows", "2147483775 is no int32"),
        ("races", "a race: thread 0 reads"),
        ("leaves a barrier", "do not reach the barrier"),
        ("does not wait", "touched while they are copied to"),
    ],
)
def test_mistakes(what, says):
    copied("none")
    with pytest.raises(AssertionError, match=says):
        copied(what)


def copied(what):
    memory = Memory((256,), (4,), (4,), 4)
    launch(Plan("of this test", (what,), 1), straight, memory.dst, memory.src, memory)
    memory.check()
