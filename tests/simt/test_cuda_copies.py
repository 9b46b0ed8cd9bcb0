"""Whole copies through the driver's stub: planned, loaded, launched, interpreted, bit for bit."""

from __future__ import annotations

import pytest

from arraybridge.kernels import cuda
from arraybridge.layout import c_strides
from tests.simt.memory import Memory
from tests.support import stub_driver


@pytest.fixture
def stub(tmp_path):
    with stub_driver.emulated(tmp_path, (9, 0), (8, 0)) as stub:
        yield stub


def permuted(shape, axes, item):
    """A copy to C order of a block in C order whose axes are permuted."""
    strides = c_strides(shape, item)
    there = tuple(shape[axis] for axis in axes)
    return there, c_strides(there, item), tuple(strides[axis] for axis in axes), item


LAYOUTS = {
    "transpose of 1 byte": permuted((150, 260), (1, 0), 1),
    "transpose of 2 bytes, aligned": permuted((192, 128), (1, 0), 2),
    "transpose of 4 bytes": permuted((300, 400), (1, 0), 4),
    "transpose of 8 bytes, odd": permuted((61, 73), (1, 0), 8),
    "transpose of 3 bytes": permuted((50, 70), (1, 0), 3),
    "transpose of 32 bytes": permuted((33, 21), (1, 0), 32),
    "pixels to planes": permuted((40, 64, 3), (2, 0, 1), 1),
    "planes to pixels": permuted((3, 40, 64), (1, 2, 0), 1),
    "runs": permuted((5, 40, 1000), (1, 0, 2), 4),
    "reversed": ((30, 256), (1024, 4), (-1024, -4), 4),
    "destination backwards": ((30, 250), (-1000, -4), (1000, 4), 4),
    "one value a row": ((30, 256), (1024, 4), (4, 0), 4),
    "every third": ((50, 60), (240, 4), (720, 12), 4),
    "six axes": permuted((3, 4, 5, 2, 6, 7), (5, 3, 1, 4, 2, 0), 2),
    "contiguous": ((30, 40), (160, 4), (160, 4), 4),
}


@pytest.mark.parametrize("start", [(0, 0), (5, 3)], ids=["aligned", "not aligned"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_copies(stub, layout, start):
    shape, dst, src, item = LAYOUTS[layout]
    device = len(layout) % 2
    for _ in range(2):  # the first one, and one that is prepared
        stub.memory = memory = Memory(shape, dst, src, item, *start)
        stream = stub.stream(device)
        cuda.copy(memory.dst, memory.src, shape, dst, src, item, stream, device)
        memory.check()
    assert stub.stack == []


def test_in_parts(stub, monkeypatch):
    """More pieces than a launch can count: each part with offsets of its own."""
    from arraybridge.kernels.cuda import plan

    monkeypatch.setattr(plan, "MOST", 5000)
    plan.plan.cache_clear()
    shape, dst, src, item = permuted((90, 77), (1, 0), 4)
    try:
        stub.memory = memory = Memory(shape, dst, src, item)
        stub.calls.clear()
        cuda.copy(memory.dst, memory.src, shape, dst, src, item, 2)
        memory.check()
        launches = len(stub.called("cuLaunchKernel"))
        assert launches > 2
        assert cuda.describe(shape, dst, src, item).endswith(f", in {launches} parts")
    finally:
        plan.plan.cache_clear()


def test_a_part_that_fails(stub, monkeypatch):
    from arraybridge.kernels.cuda import plan

    monkeypatch.setattr(plan, "MOST", 5000)
    plan.plan.cache_clear()
    shape, dst, src, item = permuted((90, 78), (1, 0), 4)
    done = []

    def second_fails(*arguments):
        done.append(arguments)
        if len(done) == 2:
            raise stub_driver.Code(2)

    monkeypatch.setattr(stub, "cuLaunchKernel", second_fails, raising=False)
    try:
        with pytest.raises(cuda.CUDAMemoryError) as caught:
            cuda.copy(1 << 40, 1 << 41, shape, dst, src, item, 2)
        (note,) = caught.value.__notes__
        assert note.startswith("1 of the ")
        assert "written in part" in note
    finally:
        plan.plan.cache_clear()


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (((1 << 40, 1 << 40), (1 << 42, 4), (4, 1 << 42), 4), "no device has as many"),
        (((-1,), (4,), (4,), 4), "at least 0"),
        (((3,), (4,), (8,), 0), "at least one byte"),
        (((3,), (4,), (8,), -4), "at least one byte"),
        (((3,), (4, 4), (8,), 4), "one stride an axis"),
    ],
)
def test_layouts_that_cannot_be(layout, message) -> None:
    with pytest.raises(ValueError, match=message):
        cuda.describe(*layout)
