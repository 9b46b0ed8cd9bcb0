"""Plans of strided copies, without a kernel: what is chosen, and what fits."""

from __future__ import annotations

from importlib import import_module
from math import prod

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from arraybridge import layout
from tests.support.strategies import Layout, layouts

plans = import_module("arraybridge.kernels.cpu.plan")


def planned(x: np.ndarray):
    strides = layout.c_strides(x.shape, x.itemsize)
    return plans.plan(layout.canonical(x.shape, strides, x.strides, x.itemsize))


def big(shape, dtype="f4"):
    """An array of any size, without the memory."""
    return np.lib.stride_tricks.as_strided(
        np.empty(1, dtype), shape, layout.c_strides(shape, np.dtype(dtype).itemsize)
    )


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """A machine with AVX-512 and a last cache of 32 MB."""
    monkeypatch.setattr(plans, "VECTOR", 64)
    monkeypatch.setattr(plans, "STREAM_MIN_BYTES", 1 << 24)
    plans.plan.cache_clear()
    yield
    plans.plan.cache_clear()


@st.composite
def nests(draw) -> Layout:
    """Draw axes that lie side by side in the destination, and in any order in the source."""
    side = draw(st.sampled_from([st.integers(2, 4), st.integers(2, 40), st.sampled_from(
        [2, 3, 17, 20, 48, 64, 70, 100, 128, 200])]))  # fmt: skip
    drawn = draw(st.lists(side, min_size=2, max_size=10))
    shape = tuple(extent for at, extent in enumerate(drawn) if prod(drawn[:at]) < 1 << 40)
    itemsize = draw(st.sampled_from([1, 2, 4, 8, 16, 3, 12, 100, 1000]))
    order = draw(st.permutations(range(len(shape))))
    dense = layout.c_strides(tuple(shape[axis] for axis in order), itemsize)
    src = [dense[order.index(axis)] for axis in range(len(shape))]
    for axis in range(len(shape)):
        src[axis] *= draw(st.sampled_from([1, 1, 1, 1, 1, -1, 0, 2, 3]))
    return Layout(shape, layout.c_strides(shape, itemsize), tuple(src), itemsize)


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        nests(),
        layouts(itemsizes=[1, 2, 3, 4, 8, 16, 100, 1000, 5000], max_side=3000, max_size=1 << 34,
                zero_size=False),
    ),
    st.sampled_from([16, 32, 64]), st.booleans(),
)  # fmt: skip
@example(  # the rows of the buffer would be 127 of 2176 bytes
    Layout((64, 16, 20, 100), (32000, 2000, 100, 1), (1, 128000, 64, 1280), 1), 64, True
)
@example(  # three channels, and nothing else that is as long
    Layout((2,) * 12 + (3, 48), layout.c_strides((2,) * 12 + (3, 48), 4),
           (*(576 << axis for axis in range(12)), 4, 12), 4), 64, False,
)  # fmt: skip
def test_no_plan_is_more_than_its_kernel_can_do(given: Layout, vector: int, streamed: bool) -> None:
    before = plans.STREAM_MIN_BYTES, plans.VECTOR
    plans.STREAM_MIN_BYTES, plans.VECTOR = 0 if streamed else before[0], vector
    try:
        form = layout.canonical(*given)
        made = plans.plan.__wrapped__(form)  # raises if not
    finally:
        plans.STREAM_MIN_BYTES, plans.VECTOR = before
    if form.shape and not made.whole:
        assert made.blocks >= made.nbytes >> 18  # enough for many threads


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda made: {"rows": made.rows._replace(extent=1, chunk=1)}, "less than 3 steps"),
        (lambda made: {"rows": made.rows._replace(extent=4, chunk=4)}, "not the rows"),
        (lambda made: {"cols": made.cols._replace(extent=15, chunk=15)}, "less than 16 steps"),
        (lambda made: {"cols": made.cols._replace(src=8)}, "a step is 8, not 12"),
        (lambda made: {"rows": made.rows._replace(src=-4)}, "a step is -4, not 4"),
    ],
)
def test_a_plan_that_its_kernel_cannot_do_is_refused(wrong, says: str) -> None:
    made = planned(big((5, 300, 3)).transpose(0, 2, 1))
    assert made.kernel[:3] == ("split", 4, 3)
    assert says in plans.check(made._replace(**wrong(made)))


def test_of_a_large_transpose() -> None:
    form = layout.canonical((4096, 4096), (16384, 4), (4, 16384), 4)
    made = plans.plan(form)
    assert made.stream
    assert made.staged
    assert plans.plan(form, True) == made._replace(stream=False)  # fresh memory
    assert plans.check(made) == ""
    assert "bytes of" in plans.check(made._replace(rows=made.rows._replace(chunk=4096)))


@pytest.mark.parametrize("dst_strides", [(4, 4), (252, 4), (0, 4), (8, 4)])
def test_a_destination_that_overlaps_itself_is_copied_item_by_item(dst_strides):
    """And in one order: it is not cut."""
    made = plans.plan(layout.canonical((64, 64), dst_strides, (4, 256), 4))
    assert made.kernel.kind == "items"
    assert made.whole
