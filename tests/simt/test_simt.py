"""The interpreter of CUDA kernels: what is right passes, and each kind of mistake is caught."""

import pytest

from arraybridge.kernels.cuda.plan_types import Plan
from tests.simt import Memory, launch

THREADS = 256


def run(factory, memory, plan=None, **changes):
    plan = Plan("of this test", (), 1) if plan is None else plan
    launch(plan._replace(**changes), factory, memory.dst, memory.src, memory)


def line(count=THREADS, itemsize=4, **where):
    """`count` items side by side on both sides."""
    return Memory((count,), (itemsize,), (itemsize,), itemsize, **where)


# -- kernels that are right


def straight(ops):
    """One item of 4 bytes per thread."""
    cuda, i32, i64, load, store = ops.cuda, ops.i32, ops.i64, ops.ld[4], ops.st[4]

    def kernel(dst, src, extents, divisions, steps):
        e = i32(i32(cuda.blockIdx.x) * THREADS + i32(cuda.threadIdx.x))
        if e < extents[0]:
            store(dst + i64(e) * 4, load(src + i64(e) * 4))

    return kernel


def turned(ops, W, LATE=True, ROW=17):
    """A square of 16 rows of 16 items through shared memory."""
    cuda, i32, i64, u32 = ops.cuda, ops.i32, ops.i64, ops.u32
    load, store, stage, fetch = ops.ld[W], ops.st[W], ops.sts[W], ops.lds[W]

    def kernel(dst, src, extents, divisions, steps):
        sm = cuda.shared.array(16 * 17 * 4, u32, alignment=16)
        t = i32(cuda.threadIdx.x)
        r, c = i32(t // 16), i32(t & 15)
        square = i64(i32(cuda.blockIdx.x)) * (256 * W)
        stage(sm, i32(i32(r * ROW + c) * W), load(src + square + i64(t) * W))
        if LATE:
            cuda.syncthreads()
        store(dst + square + i64(t) * W, fetch(sm, i32(i32(c * ROW + r) * W)))

    return kernel


def asynchronous(ops, W, WAITS="", SYNCHRONIZES=True, BEFORE=False):
    """Items are reversed in a block, past the registers."""
    cuda, i32, i64 = ops.cuda, ops.i32, ops.i64
    copy, wait, fetch, store = ops.copy_async[W], ops.wait_async, ops.lds[W], ops.st[W]

    def kernel(dst, src, extents, divisions, steps):
        sm = cuda.shared.array(64 * W, ops.u32, alignment=16)
        t = i32(cuda.threadIdx.x)
        at = i64(i32(cuda.blockIdx.x)) * (THREADS * W) + i64(t) * W
        copy(sm, i32(t * W), src + at)
        if BEFORE:
            cuda.syncthreads()
        if WAITS == "some":
            if t < 255:
                wait()
        elif WAITS != "none":
            wait()
        if SYNCHRONIZES:
            cuda.syncthreads()
        store(dst + at, fetch(sm, i32((255 - t) * W)))

    return kernel


def reversed_blocks(W):
    memory = Memory((7, THREADS), (THREADS * W, W), (THREADS * W, -W), W)
    memory.src -= (THREADS - 1) * W
    return memory


# -- and each mistake


def fails(says, factory, memory, **changes):
    def both():
        run(factory, memory, **changes)
        memory.check()

    with pytest.raises(AssertionError, match=says):
        both()


def wrong(ops, WHAT):
    """One item of 4 bytes per thread, but for one mistake."""
    cuda, i32, i64, u32 = ops.cuda, ops.i32, ops.i64, ops.u32
    load, store, stage, fetch = ops.ld[4], ops.st[4], ops.sts[4], ops.lds[4]

    @ops.device
    def inner(x):
        return i32(x)

    def kernel(dst, src, extents, divisions, steps):
        t = i32(cuda.threadIdx.x)
        at = i64(t) * 4
        if WHAT == "the next":
            store(dst + at, load(src + at + 4))
        elif WHAT == "two to one place":
            store(dst + (i64(t) >> 1) * 4, load(src))
        elif WHAT == "again":
            store(dst + at, load(src + at))
            store(dst + at, load(src + at))
        elif WHAT == "neighbours":
            store(dst + at, load(src + (at ^ 4)))
        elif WHAT == "overflow":
            i32(t * 8421505)
        elif WHAT == "overflow of one that takes no part":
            if t < 255:
                i32(t * 8421505)
        elif WHAT == "negative":
            u32(t - extents[0])
        elif WHAT == "called":
            inner(1 << 40)
        elif WHAT == "a race":
            sm = cuda.shared.array(257, u32, alignment=16)
            fetch(sm, i32(t * 4 + 4))
            stage(sm, i32(t * 4), t)
        elif WHAT == "never staged":
            sm = cuda.shared.array(256, u32)
            store(dst + at, fetch(sm, t * 4))
        elif WHAT == "barrier":
            if t >= extents[0]:
                return
            cuda.syncthreads()
        elif WHAT == "shift":
            ops.shr(extents[0], extents[1])
        elif WHAT == "divide":
            i32(t // extents[0])
        elif WHAT == "index":
            for k in range(2):
                i32(extents[k])
        elif WHAT == "unset":
            i32(late)  # noqa: F821
            late = i32(1)
            i32(late)

    return kernel


WRONG = {
    "the next": r"4 bytes at 1024 of the source's 1024 .*test_simt.py:\d+",
    "two to one place": "two threads",
    "again": "or written before",
    "neighbours": "1024 bytes of the destination are wrong",
    "overflow": "2147483775 is no int32",
    "negative": "-8 is no uint32",
    "called": r"at test_simt.py:\d+, called at test_simt.py:\d+",
    "a race": "a race: thread 0 reads 4 bytes at 4 ",
    "barrier": "do not reach the barrier",
    "shift": "32 or more",
    "divide": "power of two",
    "index": "index of a tuple",
    "unset": "nothing yet",
}


class TestMistakes:
    @pytest.mark.parametrize("what", WRONG)
    def test_of_a_kernel(self, what):
        fails(WRONG[what], wrong, line(), constants=(what,), extents=(8, 32))

    @pytest.mark.parametrize(
        ("says", "factory", "where", "changes"),
        [
            ("4 bytes at -8 of the source's 1024", wrong, {},
             {"src_offset": -12, "constants": ("the next",)}),
            ("far from the destination", straight, {}, {"extents": (256,), "dst_offset": 1 << 20}),
            ("misaligned", straight, {"src_start": 2}, {"extents": (256,)}),
            ("misaligned", straight, {"dst_start": 2}, {"extents": (256,)}),
            ("4 bytes of the destination were never written", straight, {}, {"extents": (255,)}),
        ],
    )  # fmt: skip
    def test_of_an_address(self, says, factory, where, changes):
        fails(says, factory, line(**where), **changes)

    @pytest.mark.parametrize(
        ("says", "constants"),
        [*(("a race: thread", (W, False)) for W in (1, 4, 16)), ("writes", (1, True, 15))],
    )
    def test_races(self, says, constants):
        """Without a barrier; two threads that write one place."""
        W = constants[0]
        memory = Memory((16, 16), (16 * W, W), (W, 16 * W), W)
        fails(f"a race: thread .*{says}" if says == "writes" else says, turned, memory,
              constants=constants)  # fmt: skip

    @pytest.mark.parametrize("W", [4, 8])
    @pytest.mark.parametrize(
        ("says", "constants"),
        [
            ("touched while they are copied to", ("none",)),
            ("1020 of shared memory are touched while they are copied to", ("some",)),
            ("a race", ("", False)),
            ("a race", ("", False, True)),  # a barrier, but before it has waited
        ],
    )
    def test_of_asynchronous_copies(self, says, constants, W):
        says = says.replace("1020", str(255 * W))
        fails(says, asynchronous, reversed_blocks(W), grid=7, constants=(W, *constants))

    def test_only_of_those_that_take_part(self):
        run(wrong, line(), constants=("overflow of one that takes no part",))
        run(wrong, line(), constants=("barrier",), extents=(256,))
