"""Operations of the interpreter on words, and what accesses of warps become."""

from __future__ import annotations

import numpy as np
import pytest

from arraybridge.kernels.cuda.plan_types import Plan
from tests.simt import Fault, launch
from tests.simt.machine import Machine
from tests.simt.test_simt import THREADS, straight
from tests.simt.transactions import traffic


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

    def test_words(self):

        ops = Machine(None, [0]).ops
        a = np.array([0, 1, 2**31, 2**32 - 1] * 64)
        assert ops.mulhi.apply(None, "", a, np.int64(2**32 - 1)).tolist()[:4] == [
            0,
            0,
            2**31 - 1,
            2**32 - 2,
        ]
        assert ops.mulhi.apply(None, "", 2**31, 6) == 3
        assert ops.shr.apply(None, "", a, 31).tolist()[:4] == [0, 0, 1, 1]
        assert ops.funnel.apply(None, "", a, a, 8).tolist()[:4] == [0, 1 << 24, 1 << 23, 2**32 - 1]
        assert ops.funnel.apply(None, "", a, a * 0, 32).tolist()[:4] == a.tolist()[:4]
        table = [3, 4, 8, 0, 1, 1, 1, 1]
        got = ops.permute(table, 3).apply(
            None, "", (a * 0 + 0x03020100, a * 0 + 0x07060504, 0x0B0A0908)
        )
        assert [word[0] for word in got] == [0x00080403, 0x01010101]


def counted(factory, plan):
    requests: list = []
    launch(plan, factory, 1 << 41, 1 << 40, requests=requests)
    return traffic(requests)


class TestTransactions:
    def test_items_side_by_side(self):
        got = counted(straight, Plan("", (), 80, (80 * THREADS,)))
        assert (got.loads, got.load_sectors, got.bytes_loaded) == (640, 2560, 80 * 1024)
        assert got.load_block == got.store_block == got.load_once == got.store_sectors == 2560
        assert got.lines == 1280
        assert got.conflicts == 0

    def test_items_far_apart(self):
        def far(ops, STEP):
            load, store = ops.ld[1], ops.st[1]

            def kernel(dst, src, extents, divisions, steps):
                t = ops.i64(ops.cuda.threadIdx.x)
                x = load(src + t * STEP)
                store(dst + (t & 31) * STEP, x)

            return kernel

        got = counted(far, Plan("", (33,), 2))
        assert (got.load_sectors, got.load_block, got.load_once) == (512, 512, 256)
        assert (got.store_sectors, got.store_block, got.store_once) == (512, 64, 32)
        loaded = sum(len({t * 33 // 128 for t in range(w, w + 32)}) for w in range(0, 256, 32))
        assert got.lines == 2 * (loaded + 8 * len({t * 33 // 128 for t in range(32)}))

    @pytest.mark.parametrize(
        ("width", "step", "passes", "least"),
        [(4, 4, 1, 1), (4, 8, 2, 1), (4, 128, 32, 1), (4, 0, 1, 1), (1, 1, 1, 1), (1, 128, 32, 1),
         (8, 8, 2, 2), (8, 16, 4, 2), (16, 16, 4, 4), (16, 32, 8, 4), (16, 144, 4, 4)],
    )  # fmt: skip
    def test_shared_memory(self, width, step, passes, least):
        def some(ops):
            fetch, stage = ops.lds[width], ops.sts[width]

            def kernel(dst, src, extents, divisions, steps):
                sm = ops.cuda.shared.array(12288, ops.u32, alignment=16)
                t = ops.i32(ops.cuda.threadIdx.x)
                x = fetch(sm, (t & 31) * step)
                ops.cuda.syncthreads()
                if t < (32 if step else 1):
                    stage(sm, (t & 31) * step, x)

            return kernel

        got = counted(some, Plan("", (), 3))
        assert (got.shared_reads, got.least_reads) == (24 * passes, 24 * least)
        assert (got.shared_writes, got.least_writes) == (3 * passes, 3 * least)
        assert got.conflicts == passes / least
