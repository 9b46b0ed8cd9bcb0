"""Boxes on CUDA devices: the planner's numbers, and the kernel interpreted."""

import numpy as np

from arraybridge.kernels.cuda import box_plan
from arraybridge.kernels.cuda.box_kernel import DIVISIONS, EXTENTS, STEPS
from arraybridge.kernels.cuda.box_plan import plan_box, short
from arraybridge.kernels.cuda.plan_types import Axis
from tests.simt.nest import always


def test_numbers_of_a_plan(monkeypatch):
    """Everything fits its type, for nests that no memory here would hold."""
    monkeypatch.setattr(box_plan, "otherwise", always)
    random = np.random.default_rng(1)
    found = 0
    for _ in range(500):
        width = int(random.choice([1, 2, 4, 8, 16]))
        extents = [int(n) for n in random.integers(2, [3, 40, 400, 6000])]
        random.shuffle(extents)
        dst, src, axes = width, width, []
        for n in extents:
            axes.append((n, dst))
            dst *= n
        order = random.permutation(len(extents))
        strides = {}
        for k in order:
            sign = int(random.choice([1, 1, 1, -1, 0]))
            strides[k] = sign * src
            src *= extents[k]
        axes = tuple(Axis(n, d, strides[k]) for k, (n, d) in enumerate(axes))
        plan = plan_box(axes, width, int(random.integers(16)) & -width, 0)
        if plan is None:
            continue
        found += 1
        assert plan.kernel == "box"
        assert 1 <= plan.grid < 2**31
        assert all(-(2**31) <= n < 2**31 for n in plan.extents)
        assert all(0 <= n < 2**32 for n in plan.divisions)
        assert all(-(2**63) <= n < 2**63 for n in plan.steps)
        outside = plan.constants[4]
        assert len(plan.extents) == EXTENTS + max(0, outside - 1)
        assert len(plan.divisions) == DIVISIONS + 2 * max(0, outside - 1)
        assert len(plan.steps) == STEPS + 2 * outside
    assert found > 300


def test_short_divisions():
    for divisor in (*range(1, 70), 257, 4095, 16384, 70000):
        for most in (1, 63, 2560, 16384, 32767):
            m, s = short(divisor, most)
            assert most * m < 2**32
            assert 0 <= s < 32
            n = np.arange(most + 1)
            assert (n * m >> s == n // divisor).all()
