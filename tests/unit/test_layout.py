"""Shapes and strides against NumPy's own opinion of the same memory."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings

from arraybridge import layout
from tests.support.strategies import Layout, layouts, strided_arrays

quick = settings(max_examples=150, deadline=None)

ARRAYS = strided_arrays(("int8", "float32", "complex128", "V3"))


def moves(given: Layout | layout.Canonical) -> dict[int, int]:
    """Every byte of a copy: destination offset to source offset, read off index by index."""
    dst_offset = getattr(given, "dst_offset", 0)
    src_offset = getattr(given, "src_offset", 0)
    moved = {}
    for index in product(*map(range, given.shape)):
        dst = dst_offset + sum(i * s for i, s in zip(index, given.dst_strides, strict=True))
        src = src_offset + sum(i * s for i, s in zip(index, given.src_strides, strict=True))
        for byte in range(given.itemsize):
            moved[dst + byte] = src + byte
    return moved


class TestStrides:
    def test_extent_0_counts_as_1(self) -> None:
        assert layout.c_strides((3, 0, 5), 2) == (10, 10, 2)
        assert layout.f_strides((3, 0, 5), 2) == (2, 6, 6)

    @quick
    @given(ARRAYS)
    def test_relaxed_is_the_same_layout(self, x: np.ndarray) -> None:
        strides = layout.relaxed(x.shape, x.strides, x.itemsize)
        assert [s for s, n in zip(strides, x.shape, strict=True) if n > 1] == [
            s for s, n in zip(x.strides, x.shape, strict=True) if n > 1
        ] or x.size == 0
        if x.flags.c_contiguous:
            assert strides == layout.c_strides(x.shape, x.itemsize)
        elif x.flags.f_contiguous:
            assert strides == layout.f_strides(x.shape, x.itemsize)


class TestPredicates:
    @quick
    @given(ARRAYS)
    def test_contiguity_as_numpy(self, x: np.ndarray) -> None:
        for shape, strides, size in (
            (x.shape, x.strides, x.itemsize),
            ((*x.shape, 1), (*x.strides, 12345), x.itemsize),
        ):
            assert layout.is_c_contiguous(shape, strides, size) == x.flags.c_contiguous
            assert layout.is_f_contiguous(shape, strides, size) == x.flags.f_contiguous

    @quick
    @given(ARRAYS)
    def test_elements_and_bytes_agree(self, x: np.ndarray) -> None:
        elements = tuple(s // x.itemsize for s in x.strides)
        for question in (
            layout.is_c_contiguous,
            layout.is_f_contiguous,
            layout.is_compact,
            layout.may_overlap_itself,
            layout.classify,
        ):
            assert question(x.shape, elements) == question(x.shape, x.strides, x.itemsize)

    @quick
    @given(ARRAYS)
    def test_compact_is_some_transpose_in_c_order(self, x: np.ndarray) -> None:
        order = np.argsort([-s for s in x.strides], kind="stable")
        # Where an axis of extent 1 lies does not matter: put such axes first.
        order = sorted(order, key=lambda axis: x.shape[axis] > 1)
        dense = x.transpose(order).flags.c_contiguous if x.ndim else True
        assert layout.is_compact(x.shape, x.strides, x.itemsize) == dense

    @quick
    @given(layouts(itemsizes=(1, 2, 3, 8), max_dims=4, max_size=64))
    def test_overlap_and_span_by_counting_bytes(self, given: Layout) -> None:
        shape, itemsize = given.shape, given.itemsize
        for strides in (given.src_strides, given.dst_strides):
            touched = [
                sum(i * s for i, s in zip(index, strides, strict=True)) + byte
                for index in product(*map(range, shape))
                for byte in range(itemsize)
            ]
            low, high = layout.span(shape, strides, itemsize)
            assert (low, high) == ((min(touched), max(touched) + 1) if touched else (0, 0))
            shared = len(set(touched)) < len(touched)
            assert layout.may_overlap_itself(shape, strides, itemsize) == shared
        assert not layout.may_overlap_itself(shape, given.dst_strides, itemsize)

    @pytest.mark.parametrize(
        ("shape", "strides", "shared"),
        [
            ((2, 2), (3, 2), False),  # 0 2 3 5
            ((3, 2), (2, 3), False),
            ((3, 3), (2, 3), False),
            ((3, 4), (2, 3), False),
            ((4, 2), (2, 6), True),
            ((1000, 1000), (1, 1), True),
            ((1000, 2), (1, 999), True),
            ((1000, 2), (1, 1000), False),
            ((10,) * 12, (1,) * 12, True),
            ((100, 100, 4), (7, 700, 2), False),
            ((2,) * 20, tuple(3**axis for axis in range(20)), False),
            ((3,) * 40, tuple((3**axis) // 2**axis * 2 + 1 for axis in range(40)), True),
        ],
    )
    def test_overlap_of_axes_that_are_no_nest(self, shape, strides, shared) -> None:
        assert layout.may_overlap_itself(shape, strides) == shared

    def test_none_is_c_order(self) -> None:
        assert layout.is_c_contiguous((2, 3), None)
        assert not layout.is_f_contiguous((2, 3), None)
        assert layout.is_f_contiguous((1, 3), None)
        assert layout.is_compact((2, 3), None)
        assert layout.is_non_negative((2, 3), None)
        assert not layout.is_broadcast((2, 3), None)
        assert not layout.may_overlap_itself((2, 3), None)
        assert layout.span((2, 3), None, 4) == (0, 24)

    def test_strides_of_unit_and_empty_axes_are_not_looked_at(self) -> None:
        assert layout.is_non_negative((1, 3), (-5, 1))
        assert layout.is_non_negative((0, 3), (-5, -1))
        assert not layout.is_broadcast((1, 3), (0, 1))
        assert not layout.is_broadcast((0, 3), (0, 0))
        assert layout.is_compact((3, 0), (0, 0))
        assert layout.is_c_contiguous((3, 0), (7, 7))

    @pytest.mark.parametrize(
        ("word", "shape", "strides"),
        [
            ("c", (), ()),
            ("c", (2, 3), (3, 1)),
            ("c", (2, 0), (-3, 0)),
            ("c", (3,), (1,)),
            ("fortran", (2, 3), (1, 2)),
            ("permuted", (2, 3, 4), (3, 1, 6)),
            ("broadcast", (2, 3), (0, 1)),
            ("broadcast", (2, 3), (0, -1)),
            ("negative", (2, 3), (-3, 1)),
            ("overlapping", (4, 3), (1, 1)),
            ("strided", (2, 3), (8, 1)),
            ("strided", (3,), (2,)),
        ],
    )
    def test_classify(self, word: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        assert word in layout.LAYOUTS
        assert layout.classify(shape, strides) == word
        assert layout.classify(shape, tuple(5 * s for s in strides), 5) == word


class TestCanonical:
    @quick
    @given(layouts(itemsizes=(1, 2, 3, 4), max_dims=5, max_side=4, max_size=100))
    def test_is_the_same_copy(self, given: Layout) -> None:
        form = layout.canonical(*given)
        assert moves(form) == moves(given)

    @quick
    @given(layouts(max_dims=8))
    def test_is_canonical(self, given: Layout) -> None:
        form = layout.canonical(*given)
        assume(0 not in given.shape)
        assert all(extent > 1 for extent in form.shape)
        assert all(stride > 0 for stride in form.dst_strides)
        assert list(form.dst_strides) == sorted(form.dst_strides, reverse=True)
        again = layout.canonical(*form[:4])
        assert again == form._replace(dst_offset=0, src_offset=0)

    def test_contiguous_is_one_run_in_any_one_order(self) -> None:
        for order in ("C", "F"):
            x = np.empty((3, 4, 5), "f4", order)
            assert layout.canonical(x.shape, x.strides, x.strides, 4) == ((), (), (), 240, 0, 0)
        x = np.empty((3, 4, 5), "f4").transpose(1, 2, 0)
        assert layout.canonical(x.shape, x.strides, x.strides, 4) == ((), (), (), 240, 0, 0)

    def test_inner_slice_widens(self) -> None:
        x = np.empty((10, 100), "f8")[:, 20:52]
        form = layout.canonical(x.shape, layout.c_strides(x.shape, 8), x.strides, 8)
        assert form == ((10,), (256,), (800,), 256, 0, 0)

    def test_flips(self) -> None:
        # Backwards on both sides is forwards; on one side it stays, with the destination forwards.
        assert layout.canonical((4,), (-2,), (-2,), 2) == ((), (), (), 8, -6, -6)
        assert layout.canonical((4,), (2,), (-2,), 2) == ((4,), (2,), (-2,), 2, 0, 0)
        assert layout.canonical((4,), (-2,), (2,), 2) == ((4,), (2,), (-2,), 2, -6, 6)

    def test_destination_that_overlaps_itself(self) -> None:
        # The axis of stride 0 goes outermost, out of the way of what fuses and widens.
        assert layout.canonical((4, 3, 5), (5, 0, 1), (15, 5, 1), 1) == (
            (3, 4), (0, 5), (5, 15), 5, 0, 0
        )  # fmt: skip

    def test_64_axes(self) -> None:
        shape = (2, *[1] * 30, 3, *[1] * 30, 2, 2)
        strides = layout.c_strides(shape, 2)
        assert layout.canonical(shape, strides, strides, 2) == ((), (), (), 48, 0, 0)
        turned = layout.f_strides(shape, 2)
        form = layout.canonical(shape, strides, turned, 2)
        assert form.shape == (2, 3, 2, 2)
        assert moves(form) == moves(Layout(shape, strides, turned, 2))

    def test_lengths_must_agree(self) -> None:
        with pytest.raises(ValueError, match="pass one stride per axis"):
            layout.canonical((2, 3), (3, 1), (1,), 1)
