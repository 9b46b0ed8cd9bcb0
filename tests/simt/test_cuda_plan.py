"""Plans of copies on CUDA devices: what kernels are chosen, what numbers they are given."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arraybridge.kernels.cuda.family import FAMILY
from arraybridge.kernels.cuda.indices import decode, divide, outer
from arraybridge.kernels.cuda.network import join_table, network, split_table
from arraybridge.kernels.cuda.plan import plan
from arraybridge.kernels.cuda.plan_types import MAX_PIECES, Axis, Plan, division
from arraybridge.layout import c_strides, canonical
from benchmarks.layouts import LAYOUTS
from tests.support.small_layouts import small_layouts


class Plain:
    """The operations of device functions, on Python's numbers."""

    i32 = i64 = staticmethod(int)

    @staticmethod
    def u32(x):
        return x & 0xFFFFFFFF

    @staticmethod
    def mulhi(a, b):
        return a * b >> 32

    @staticmethod
    def shr(a, count):
        return a >> count

    @staticmethod
    def device(function):
        return function


def planned(shape, src_strides, itemsize, dst=0, src=0, small=0) -> tuple[Plan, ...]:
    """Plan making a view C-contiguous; `src` is the address of its first item."""
    form = canonical(shape, c_strides(shape, itemsize), src_strides, itemsize)
    return plan(form, (dst + form.dst_offset) % 16, (src + form.src_offset) % 16, small)


class TestIndices:
    @given(st.integers(1, 2**31 - 1), st.integers(0, 2**31 - 1))
    def test_division(self, divisor, number):
        m, s = division(divisor)
        assert 0 <= m < 2**32
        for n in {number, number // divisor * divisor, max(0, number // divisor * divisor - 1)}:
            assert divide(Plain)(n, m, s) == n // divisor

    @pytest.mark.parametrize("axes", range(12))
    def test_decode(self, axes):
        random = np.random.default_rng(axes)
        nest = [
            Axis(int(random.integers(2, 5)), int(random.integers(-99, 99)), int(random.integers(9)))
            for _ in range(axes)
        ]
        before = ((7,), (7, 7), (7, 7, 7))
        numbers = [a + b for a, b in zip(before, outer(nest), strict=True)]
        place = decode(Plain, axes, extent=1, pair=2, step=3)
        shape = [axis.extent for axis in nest]
        for index in random.integers(0, prod(shape), 50):
            digits = np.unravel_index(index, shape, order="F") if axes else ()
            wanted = tuple(
                sum(int(d) * axis[side] for d, axis in zip(digits, nest, strict=True))
                for side in (1, 2)
            )
            assert place(int(index), *numbers) == wanted


class TestNetwork:
    @given(st.lists(st.integers(0, 47), min_size=4, max_size=32).filter(lambda x: len(x) % 4 == 0))
    def test_any_bytes(self, table):
        source = np.random.default_rng(0).permutation(48).tolist()
        result = []
        for first, steps in network(tuple(table)):
            value = source[4 * first : 4 * first + 4]
            for word, selector in steps:
                both = value + source[4 * word : 4 * word + 4]
                value = [both[selector >> 4 * n & 7] for n in range(4)]
            result += value
        assert result == [source[byte] for byte in table]

    @pytest.mark.parametrize("width", [1, 2, 4, 8])
    @pytest.mark.parametrize("channels", [2, 3, 4])
    def test_channels(self, width, channels):
        bytes_ = np.arange(16 * channels, dtype=np.uint8)
        apart = bytes_.reshape(-1, channels, width).transpose(1, 0, 2).ravel()
        everything = split_table(width, channels, tuple(range(channels)))
        assert bytes_[list(everything)].tolist() == apart.tolist()
        assert apart[list(join_table(width, channels))].tolist() == bytes_.tolist()
        last = split_table(width, channels, (channels - 1,))
        assert bytes_[list(last)].tolist() == apart[-16:].tolist()


@pytest.mark.parametrize("case", [*LAYOUTS, *small_layouts()], ids=lambda case: case.name)
def test_numbers(case):
    """They fit, and are plain: a plan is a key, in a cache on disk too."""
    view = case.view(np.empty(case.shape, case.dtype))
    (made,) = planned(view.shape, view.strides, view.itemsize)
    assert 1 <= made.grid < 2**31
    assert all(0 <= n < 2**32 for n in made.divisions)
    assert all(-(2**31) <= n < 2**31 for n in made.extents)
    assert len(made.divisions) % 2 == 0
    assert len(made.constants) == len(FAMILY[made.kernel].constants)
    assert eval(repr(made)) == made
    hash(made)


def bytes_written(made: Plan) -> int:
    """Of a plan of rows or single items, or of the driver's."""
    if made.kernel == "memcpy":
        return made.steps[0]
    assert made.kernel in ("rows", "gather")
    return made.extents[0] * int(str(made.constants[0]))


class TestLarge:
    """More than 2**31 bytes: several launches, none of which counts past 32 bits."""

    @pytest.mark.parametrize(
        ("shape", "strides", "itemsize"),
        [
            ((2**17, 2**16, 3), (2**18, 7, 2), 1),
            ((2**16, 2**17), (2**20, 4), 4),
            ((3, 2**33), (2**34, 1), 1),
            ((2**40,), (2,), 1),
            ((2**33 + 5,), (0,), 16),
        ],
    )
    def test_every_byte_once(self, shape, strides, itemsize):
        made = planned(shape, strides, itemsize)
        assert len(made) > 1
        for one in made:
            assert one.grid < 2**31
            assert all(extent <= MAX_PIECES for extent in one.extents)
        if {one.kernel for one in made} <= {"rows", "gather", "memcpy"} and 0 not in strides:
            assert sum(map(bytes_written, made)) == prod(shape) * itemsize
        assert len({one.dst_offset for one in made}) == len(made)
