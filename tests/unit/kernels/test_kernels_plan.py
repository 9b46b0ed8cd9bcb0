"""Plans of strided copies, without a kernel: what is chosen, what fits, how it is cut."""

from __future__ import annotations

from importlib import import_module
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from arraybridge import layout
from arraybridge.kernels.cpu.plan_types import NEST
from tests.support.strategies import Layout, layouts

plans = import_module("arraybridge.kernels.cpu.plan")
cuts = import_module("arraybridge.kernels.cpu.slices")


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
    st.sampled_from([16, 32, 64]), st.integers(2, 70), st.booleans(),
)  # fmt: skip
@example(  # the rows of the buffer would be 127 of 2176 bytes
    Layout((64, 16, 20, 100), (32000, 2000, 100, 1), (1, 128000, 64, 1280), 1), 64, 8, True
)
@example(  # three channels, and nothing else that is as long
    Layout((2,) * 12 + (3, 48), layout.c_strides((2,) * 12 + (3, 48), 4),
           (*(576 << axis for axis in range(12)), 4, 12), 4), 64, 8, False,
)  # fmt: skip
def test_no_part_is_more_than_its_kernel_can_do(
    given: Layout, vector: int, parts: int, streamed: bool
) -> None:
    before = plans.STREAM_MIN_BYTES, plans.VECTOR
    plans.STREAM_MIN_BYTES, plans.VECTOR = 0 if streamed else before[0], vector
    try:
        made = plans.plan.__wrapped__(layout.canonical(*given))
    finally:
        plans.STREAM_MIN_BYTES, plans.VECTOR = before
    cuts.slices(made, 0, 0)
    cuts.slices(made, 0, 0, parts)


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
def test_a_part_that_its_kernel_cannot_do_is_refused(wrong, says: str) -> None:
    made = planned(big((5, 300, 3)).transpose(0, 2, 1))
    assert made.kernel[:3] == ("split", 4, 3)
    cuts.slices(made, 0, 0, 9)
    with pytest.raises(RuntimeError, match=says):
        cuts.slices(made._replace(**wrong(made)), 0, 0)


def test_of_a_large_transpose() -> None:
    form = layout.canonical((4096, 4096), (16384, 4), (4, 16384), 4)
    made = plans.plan(form)
    assert made.stream
    assert made.staged
    assert plans.plan(form, True) == made._replace(stream=False)  # fresh memory
    assert cuts.check(made) == ""
    assert "bytes of" in cuts.check(made._replace(rows=made.rows._replace(chunk=4096)))


@settings(max_examples=100, deadline=None)
@given(layouts(max_side=70, max_size=4000, zero_size=False), st.integers(1, 9), st.booleans())
def test_slices_cover_everything_once(given: Layout, parts: int, streamed: bool) -> None:
    before = plans.STREAM_MIN_BYTES
    plans.STREAM_MIN_BYTES = 0 if streamed else before
    try:
        form = layout.canonical(*given)
        made = plans.plan.__wrapped__(form)
    finally:
        plans.STREAM_MIN_BYTES = before
    whole = cells(cuts.slices(made, 0, 0)[0])
    cut = [cells(record) for record in cuts.slices(made, 0, 0, parts)]
    assert 1 <= len(cut) <= parts
    assert sum(map(len, cut)) == len(whole)
    assert set().union(*cut) == whole


def cells(record) -> set[tuple[int, int]]:
    """Pairs of addresses of the columns that a record copies."""
    word = dict(zip(NEST, record, strict=False))
    axes = [
        (word["rows"], word["rows_dst"], word["rows_src"]),
        (word["planes"], word["planes_dst"], word["planes_src"]),
        (word["leaves"], word["leaves_dst"], word["leaves_src"]),
        (word["cols"], word["cols_dst"], word["cols_src"]),
    ]
    rest = record[len(NEST) :]
    axes += [tuple(rest[at : at + 3]) for at in range(0, len(rest), 4)]
    moves = product(*[[(i * dst, i * src) for i in range(extent)] for extent, dst, src in axes])
    return {
        (word["dst"] + sum(m[0] for m in move), word["src"] + sum(m[1] for m in move))
        for move in moves
    }


@pytest.mark.parametrize("dst_strides", [(4, 4), (252, 4), (0, 4), (8, 4)])
def test_a_destination_that_overlaps_itself_is_copied_item_by_item(dst_strides):
    """And in one order: no loop is cut."""
    made = plans.plan(layout.canonical((64, 64), dst_strides, (4, 256), 4))
    assert made.kernel.kind == "items"
    assert all(axis.grain == axis.extent for axis in (made.rows, made.cols, *made.outer))
