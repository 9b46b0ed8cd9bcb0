"""Boxes on CUDA devices: the planner's numbers, and the kernel interpreted."""

import numpy as np
import pytest

from arraybridge.kernels.cuda import boxes
from arraybridge.kernels.cuda.box import DIVISIONS, EXTENTS, SHARED, STEPS, box
from arraybridge.kernels.cuda.boxes import plan_box, short
from arraybridge.kernels.cuda.plan_types import Axis
from tests.simt import launch
from tests.simt.nest import always, copied
from tests.simt.transactions import traffic


def boxed(name, *starts, **settings):
    """Run the kernel on a nest, and compare with NumPy; the plan."""
    (plan,) = copied(*NESTS[name], *starts, otherwise=always, **settings)
    assert plan.kernel == "box"
    return plan


#: What boxes are for: shape, the destination's strides, the source's, bytes of an item.
NESTS = {
    "CHW to HWC, bytes": ((90, 70, 3), (210, 3, 1), (70, 1, 6300), 1),
    "first two axes swapped": ((30, 20, 65), (5200, 260, 4), (260, 7800, 4), 4),
    "pixel shuffle": ((4, 16, 2, 16, 2), (2048, 128, 64, 4, 2), (2048, 32, 1024, 2, 512), 2),
    "six axes, odd": (
        (3, 3, 11, 5, 5, 4), (13200, 4400, 400, 80, 16, 4), (44, 2904, 4, 43560, 528, 8712), 4,
    ),
    "odd transpose, bytes": ((131, 67), (67, 1), (1, 131), 1),
    "odd transpose, 2 bytes": ((93, 131), (262, 2), (2, 186), 2),
    "odd transpose, 16 bytes": ((33, 35), (560, 16), (16, 528), 16),
    "windows": ((40, 30, 9), (270, 9, 1), (38, 1, 38), 1),
    "odd items backwards": ((50, 7, 6), (126, 18, 3), (3, -900, -150), 3),
    "rows with gaps": ((61, 50), (57, 1), (1, 61), 1),
    "one item for many": ((20, 12, 30), (1440, 120, 4), (4, 0, 80), 4),
    "transpose of bytes, aligned on one side": ((160, 141), (141, 1), (1, 160), 1),
    "transpose of 2 bytes, aligned on one side": ((160, 141), (282, 2), (2, 320), 2),
    "16 channels of bytes": ((16, 250), (250, 1), (1, 16), 1),
    "backwards along the source": ((40, 90), (180, 2), (-2, 80), 2),
}  # fmt: skip


@pytest.mark.parametrize("name", NESTS)
def test_layouts(name):
    itemsize = NESTS[name][3]
    for starts in ((0, 0), (itemsize, 0), (0, 5 * itemsize), (3, 7)):
        boxed(name, *starts)


def test_numbers_of_a_plan(monkeypatch):
    """Everything fits its type, for nests that no memory here would hold."""
    monkeypatch.setattr(boxes, "otherwise", always)
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
        outside = plan.constants[-1]
        assert len(plan.extents) == EXTENTS + max(0, outside - 1)
        assert len(plan.divisions) == DIVISIONS + 2 * max(0, outside - 1)
        assert len(plan.steps) == STEPS + 2 * outside
    assert found > 300


def test_lines_further_apart_than_32_bits(monkeypatch):
    monkeypatch.setattr(boxes, "otherwise", always)
    axes = Axis(3, 4, 3 << 30), Axis(1 << 20, 12, 4)
    plan = plan_box(axes, 4, 0, 0)
    assert plan is not None
    far = plan.constants[4]
    assert far == 1
    assert 3 << 30 in plan.steps


@pytest.mark.parametrize("name", NESTS)
def test_distances_of_64_bits(name):
    """What is planned for distances that no memory here would hold, on those that it does."""
    plan = boxed(name, _FAR=0)
    assert plan.constants[4] == (plan.constants[3] > 0)


def test_short_divisions():
    for divisor in (*range(1, 70), 257, 4095, 16384, 70000):
        for most in (1, 63, 2560, 16384, 32767):
            m, s = short(divisor, most)
            assert most * m < 2**32
            assert 0 <= s < 32
            n = np.arange(most + 1)
            assert (n * m >> s == n // divisor).all()


def test_shared_memory_lets_blocks_share_a_multiprocessor():
    assert SHARED <= 24576


def test_words_of_bytes_meet_in_few_banks():
    """Sides of odd transposes that are multiples of 16: whatever the pitch, lanes meet in two."""
    random = np.random.default_rng(0)
    for item, outer in ((1, 2000), (1, 4096), (2, 2000)):
        axes = Axis(1020, item, outer * item), Axis(outer, 1020 * item, item)
        plan = plan_box(axes, item, 0, 0)
        blocks = [int(n) for n in random.integers(0, plan.grid, 4)]
        requests = []
        launch(plan, box, 2**41, 2**40, None, blocks=blocks, requests=requests)
        assert traffic(requests).conflicts <= 2.7


def test_what_boxes_do_not_pay_for():
    """Items far apart on both sides; every other item; runs in the same order, or aligned."""
    assert plan_box((Axis(50, 4, 4096), Axis(50, 4096, 1 << 20)), 4, 0, 0) is None
    assert plan_box((Axis(4096, 4, 8),), 4, 0, 0) is None
    assert plan_box((Axis(50, 4, 4), Axis(500, 256, 512)), 4, 0, 0) is None
    assert plan_box((Axis(4096, 4, 4), Axis(4096, 16384, 20000)), 4, 0, 0) is None
    heads = Axis(8, 16, 16), Axis(2048, 128, 4096), Axis(32, 262144, 128)
    assert plan_box(heads, 16, 0, 0) is None


def test_what_boxes_pay_for():
    rows = Axis(65, 4, 4), Axis(512, 260, 130000), Axis(500, 133120, 260)
    assert plan_box(rows, 4, 0, 0) is not None
    odd = Axis(999, 1, 1001), Axis(1001, 999, 1)
    assert plan_box(odd, 1, 0, 0) is not None
