"""The numbers of plans of copies on CUDA devices; `test_kernels_cuda` runs whole plans."""

from __future__ import annotations

from math import prod
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arraybridge.kernels.cuda.box_plan import short
from arraybridge.kernels.cuda.indices import divide
from arraybridge.kernels.cuda.network import network
from arraybridge.kernels.cuda.plan import plan
from arraybridge.kernels.cuda.plan_types import MAX_PIECES, division
from arraybridge.layout import c_strides, canonical

PLAIN = SimpleNamespace(
    i32=int, u32=lambda x: x & 0xFFFFFFFF, mulhi=lambda a, b: a * b >> 32,
    shr=lambda a, count: a >> count, device=lambda function: function,
)  # fmt: skip


@given(st.integers(1, 2**31 - 1), st.integers(0, 2**31 - 1))
def test_division(divisor, number):
    m, s = division(divisor)
    assert 0 <= m < 2**32
    for n in {number, number // divisor * divisor, max(0, number // divisor * divisor - 1)}:
        assert divide(PLAIN)(n, m, s) == n // divisor


def test_short_divisions():
    for divisor in (*range(1, 70), 257, 4095, 16384, 70000):
        for most in (1, 63, 2560, 16384, 32767):
            m, s = short(divisor, most)
            assert most * m < 2**32
            assert 0 <= s < 32
            n = np.arange(most + 1)
            assert (n * m >> s == n // divisor).all()


@given(st.lists(st.integers(0, 47), min_size=4, max_size=32).filter(lambda x: len(x) % 4 == 0))
def test_network(table):
    source = np.random.default_rng(0).permutation(48).tolist()
    result = []
    for first, steps in network(tuple(table)):
        value = source[4 * first : 4 * first + 4]
        for word, selector in steps:
            both = value + source[4 * word : 4 * word + 4]
            value = [both[selector >> 4 * n & 7] for n in range(4)]
        result += value
    assert result == [source[byte] for byte in table]


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
def test_more_than_two_gigabytes_are_several_launches(shape, strides, itemsize):
    """None of them counts past 32 bits."""
    form = canonical(shape, c_strides(shape, itemsize), strides, itemsize)
    made = plan(form, 0, 0)
    assert len(made) > 1
    assert len({one.dst_offset for one in made}) == len(made)
    for one in made:
        assert one.grid < 2**31
        assert all(extent <= MAX_PIECES for extent in one.extents)
    if {one.kernel for one in made} <= {"rows", "gather", "memcpy"} and 0 not in strides:
        written = [
            one.steps[0] if one.kernel == "memcpy" else one.extents[0] * one.constants[0]
            for one in made
        ]
        assert sum(written) == prod(shape) * itemsize
