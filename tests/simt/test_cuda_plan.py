"""The numbers of plans of copies on CUDA devices; `test_kernels_cuda` runs whole plans."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from arraybridge.kernels.cuda.box_plan import short
from arraybridge.kernels.cuda.indices import divide
from arraybridge.kernels.cuda.network import network
from arraybridge.kernels.cuda.plan_types import division

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
