"""The interpreter of CUDA kernels: what is right passes, and each kind of mistake is caught."""

import numpy as np
import pytest

from arraybridge.kernels.cuda.plan_types import Plan, division
from tests.simt import Fault, Memory, launch
from tests.simt.machine import Machine

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


def odd(ops):
    """Loops with bounds by thread, returns in the midst, device functions, tuples."""
    cuda, i32, i64, u32 = ops.cuda, ops.i32, ops.i64, ops.u32
    load, store = ops.ld[1], ops.st[1]

    @ops.device
    def divide(n, m, s):
        return i32(ops.shr(u32(ops.mulhi(u32(n), m) + u32(n)), s))

    @ops.device
    def place(e, extents, divisions):
        if e < 0:
            return i64(-1), False
        if e >= extents[0] * extents[1]:
            return i64(0), False
        row = divide(e, divisions[0], divisions[1])
        return i64(row) * extents[1] + i64(i32(e - row * extents[1])), True

    @ops.device
    def wanted(k, x):
        while k < 7:
            k += 1
            if k > x:
                return k - 1
        return k

    def kernel(dst, src, extents, divisions, steps):
        t = i32(cuda.threadIdx.x)
        if wanted(i32(0), t & 3) != (t & 3):
            return
        for e in range(t - 1, extents[2] - (t & 1), THREADS):
            at, good = place(i32(e), extents, divisions)
            if good:
                if t > 7:
                    x = load(src + at)
                else:
                    x = load(src + (at & ~i64(0)))
                store(dst + at, x)

    return kernel


def vectors(ops):
    """Bytes of 16 are reversed, in registers."""
    cuda, i32, i64, u32 = ops.cuda, ops.i32, ops.i64, ops.u32
    load, store, prmt = ops.ld[16], ops.st[16], ops.prmt
    mirror = ops.permute(tuple(range(15, -1, -1)), 4)

    def kernel(dst, src, extents, divisions, steps):
        t = i64(i32(cuda.threadIdx.x))
        v = load(src + steps[0] - t * 16)
        if t & 1:
            s = u32(0x0123)
            v = prmt(v[3], v[3], s), prmt(v[2], v[2], s), prmt(v[1], v[1], s), prmt(v[0], v[0], s)
        else:
            v = mirror(v)
        store(dst + t * 16, v)

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


class TestWhatIsRight:
    @pytest.mark.parametrize("count", [1, 255, 256, 257, 20000])
    def test_straight(self, count):
        memory = line(count, dst_start=4, src_start=12)
        run(straight, memory, grid=-(-count // THREADS), extents=(count,))
        memory.check()

    @pytest.mark.parametrize("W", [1, 2, 4, 8, 16])
    def test_turned(self, W):
        memory = Memory((70, 16, 16), (256 * W, 16 * W, W), (256 * W, W, 16 * W), W)
        run(turned, memory, grid=70, constants=(W,))
        memory.check()

    def test_masks(self):
        memory = line(33 * 20, 1)
        run(odd, memory, extents=(33, 20, 661), divisions=division(20))
        memory.check()

    def test_vectors(self):
        memory = Memory((4096,), (1,), (-1,), 1)
        memory.src -= 4095
        run(vectors, memory, steps=(4096 - 16,))
        memory.check()

    @pytest.mark.parametrize("W", [4, 8])
    def test_asynchronous(self, W):
        memory = reversed_blocks(W)
        run(asynchronous, memory, grid=7, constants=(W,))
        memory.check()


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


class TestOperations:
    def test_prmt(self):

        ops = Machine(None, [0]).ops
        rng = np.random.default_rng(0)
        a, b = rng.integers(0, 2**32, (2, 256))
        selectors = rng.integers(0, 8, (256, 4)) @ [1, 16, 256, 4096]
        by_array = ops.prmt.apply(None, "", a, b, selectors)
        for t in range(256):
            both = (int(a[t]) | int(b[t]) << 32).to_bytes(8, "little")
            chosen = bytes(both[int(selectors[t]) >> 4 * n & 7] for n in range(4))
            want = int.from_bytes(chosen, "little")
            assert want == by_array[t] == ops.prmt.apply(None, "", a, b, selectors[t])[t]
            assert want == ops.prmt.apply(None, "", np.int64(a[t]), np.int64(b[t]), selectors[t])[t]
        with pytest.raises(Fault, match="a sign"):
            ops.prmt.apply(None, "", a, b, 0x8000)
