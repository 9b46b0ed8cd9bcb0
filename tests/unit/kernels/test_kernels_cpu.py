"""The CPU kernels against NumPy, byte for byte: what must be written is, nothing else is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from ctypes import CFUNCTYPE, c_int64
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from arraybridge import layout
from arraybridge.kernels import cpu
from arraybridge.kernels.cpu import copying, loader
from arraybridge.kernels.cpu.plan import plan
from tests.support import guarded
from tests.support.processes import python
from tests.support.strategies import CANARY, Layout, layouts


def by_numpy(dst: int, src: int, given: Layout) -> None:
    np.copyto(view(dst, given, given.dst_strides), view(src, given, given.src_strides))


def view(address: int, given: Layout, strides: tuple[int, ...]) -> np.ndarray:
    interface = {
        "version": 3,
        "data": (address, False),
        "shape": given.shape,
        "strides": strides,
        "typestr": f"|V{given.itemsize}",
    }
    return np.asarray(SimpleNamespace(__array_interface__=interface))


def by_kernel(dst: int, src: int, *given) -> None:
    """Copy by a compiled kernel, however small it is."""
    form = layout.canonical(*given)
    if 0 not in form.shape:
        way = copying.way(plan(form), form.dst_offset, form.src_offset)
        assert way
        copying.run(way, dst, src)


def by_ranges(made, dst: int, src: int, *ranges: tuple[int, int]) -> None:
    """Copy ranges of a plan's blocks."""
    record = made.record(loader.address(made.kernel))
    before = record.tolist()
    nest = NEST(loader.nest(made.kernel))
    for part in ranges:
        nest(record.buffer_info()[0], dst + made.dst_offset, src + made.src_offset, *part)
    assert record.tolist() == before


NEST = CFUNCTYPE(None, *[c_int64] * 5)
WAYS = {"kernel": by_kernel, "numpy": copying.copy_by_numpy, "chosen": cpu.copy}


def check(given: Layout, dst_start: int = 0, src_start: int = 0, ways=WAYS) -> None:
    """Compare every way with NumPy: the destination's bytes, and 64 on either side of it.

    `dst_start` and `src_start` are bytes from a 64-byte boundary to the lowest byte touched.
    """
    low, high = layout.span(given.shape, given.src_strides, given.itemsize)
    source = np.random.default_rng(0).integers(0, 256, high - low + 256, np.uint8)
    src = source.ctypes.data + -source.ctypes.data % 64 + src_start - low
    low, high = layout.span(given.shape, given.dst_strides, given.itemsize)
    memory = np.empty(high - low + 256, np.uint8)
    dst = memory.ctypes.data + -memory.ctypes.data % 64 + 64 + dst_start - low

    memory[:] = CANARY
    by_numpy(dst, src, given)
    expected = memory.tobytes()
    before = source.tobytes()
    for way, copy in ways.items():
        memory[:] = CANARY
        copy(dst, src, *given)
        assert memory.tobytes() == expected, way
        assert source.tobytes() == before, way


class TestAgainstNumPy:
    @settings(max_examples=400, deadline=None)
    @given(layouts(), st.integers(0, 63), st.integers(0, 63))
    @example(Layout((), (), (), 5), 1, 1)
    @example(Layout((3, 0, 2), (1, 1, 1), (0, 0, 0), 5), 0, 0)
    def test_any_layout(self, given: Layout, dst_start: int, src_start: int) -> None:
        check(given, dst_start, src_start)

    @settings(max_examples=60, deadline=None)
    @given(layouts(max_dims=32, max_side=3, max_size=128), st.integers(0, 63))
    def test_many_axes(self, given: Layout, start: int) -> None:
        check(given, start, 63 - start)

    def test_destination_that_overlaps_itself(self) -> None:
        """Each cell ends with one of its sources."""
        source = np.arange(12, dtype=np.int32).reshape(3, 4)
        for copy in WAYS.values():
            memory = np.full(6, -1, np.int32)
            copy(memory.ctypes.data + 4, source.ctypes.data, (3, 4), (0, 4), (16, 4), 4)
            assert memory[0] == memory[5] == -1
            assert [value % 4 for value in memory[1:5]] == [0, 1, 2, 3]


def case(given: Layout, stream: str = "always") -> guarded.Case:
    return guarded.Case("", given, None, 0, guarded.HOST, stream, "", 1, 0)


class TestRanges:
    """Ranges of a plan's blocks, of which each thread takes some."""

    @settings(max_examples=300, deadline=None)
    @given(
        st.one_of(
            st.integers(0, guarded.BLOCK - 1).map(lambda number: guarded.draw("ranges", number)),
            layouts(max_side=70, max_size=4000, zero_size=False).map(case),
        ),
        st.integers(0, 63), st.lists(st.floats(0, 1), max_size=8),
    )  # fmt: skip
    @example(  # an axis of two is repeated, and the next is not, and so on
        case(Layout((2,) * 17, layout.c_strides((2,) * 17, 4), (0, 4) * 8 + (0,), 4)), 5, [0.3, 0.6]
    )
    @example(  # from the third block on, of 16 bytes in the middle of runs
        case(Layout((3, 70, 200), (28000, 400, 2), (2, 6, 420), 2)), 0, [2.5 / 210]
    )
    def test_each_byte_is_in_one(self, case: guarded.Case, start: int, cuts) -> None:
        found = guarded.planned(case)
        assume(found is not None and found[1].shape and not found[0].whole)
        made, form = found
        given = Layout(*form[:4])
        low, high = layout.span(given.shape, given.src_strides, given.itemsize)
        source = np.random.default_rng(0).integers(1, 256, high - low, np.uint8)
        high = layout.span(given.shape, given.dst_strides, given.itemsize)[1]
        expected, together, memory = np.zeros((3, high + 256), np.uint8)
        to = 64 + -memory.ctypes.data % 64 + start
        src = source.ctypes.data - low
        by_numpy(expected.ctypes.data + to, src, given)
        writes = np.zeros(len(memory), int)
        for part in pairwise([0, *sorted(int(cut * made.blocks) for cut in cuts), made.blocks]):
            memory[:] = 0
            by_ranges(made, memory.ctypes.data + to, src, part)
            together |= memory
            writes += memory != 0
        assert (together == expected).all()
        assert (writes == (expected != 0)).all()

    def test_one_record_on_several_threads(self) -> None:
        x = np.arange(700 * 900, dtype="f4").reshape(700, 900)
        y = np.zeros((4, 900, 700), "f4")
        made, _ = guarded.planned(case(Layout((900, 700), (2800, 4), (4, 3600), 4)))
        record, nest = made.record(loader.address(made.kernel)), NEST(loader.nest(made.kernel))

        def work(part: int) -> None:
            for z in y:
                cuts = made.blocks * part // 8, made.blocks * (part + 1) // 8
                nest(record.buffer_info()[0], z.ctypes.data, x.ctypes.data, *cuts)

        for _ in range(20):
            y[:] = 0
            with ThreadPoolExecutor(8) as executor:
                list(executor.map(work, range(8)))
            assert (y == x.T).all()

    @pytest.mark.parametrize("block", [0, 1, (1 << 62) - 1, 1 << 62, 3**39])
    def test_64_outer_axes(self, block: int) -> None:
        """All steps in the source are a byte: a block begins at the ones of its number."""
        source, memory = np.arange(70, dtype=np.uint8), np.full(3, CANARY, np.uint8)
        form = layout.canonical((2,) * 67, (0,) * 66 + (1,), (1,) * 67, 1)
        made = plan(form)
        assert len(made.outer) == 64
        by_ranges(made, memory.ctypes.data, source.ctypes.data, (block, block + 1))
        assert memory.tolist() == [block.bit_count() + 2 + i for i in (0, 1)] + [CANARY]

    def test_more_axes_are_refused(self) -> None:
        with pytest.raises(RuntimeError, match="65 outer loops are more than 64"):
            plan(layout.canonical((2,) * 68, (0,) * 67 + (1,), (1,) * 68, 1))


class TestFace:
    def test_streams_are_refused(self) -> None:
        with pytest.raises(ValueError, match=r"stream=0.*pass None"):
            cpu.copy(0, 0, (0,), (1,), (1,), 1, 0)

    def test_numbers_beyond_64_bits(self) -> None:
        with pytest.raises(OverflowError):
            by_kernel(0, 0, (2, 2), (2**63, 1), (1, 1), 1)


WORK = "from tests.support.transposes import *\n"


def test_eight_threads_from_the_first_call_on() -> None:
    python(WORK + "together(100, ['f4', 'f8', 'f4', 'c16', 'f4', 'f8', 'c16', 'i2'])")
