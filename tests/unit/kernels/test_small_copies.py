"""Small copies, which NumPy makes for `contiguous`: arguments, what is registered, leaks."""

import gc
import sys
import tracemalloc

import numpy as np
import pytest

import arraybridge as ab
from arraybridge import copies
from arraybridge.kernels.cpu import SMALL


def of(dtype, *shape):
    size = int(np.prod(shape))
    return np.arange(size).astype(dtype).reshape(shape)


def test_what_is_small():
    small_one, large = of("u1", SMALL // 4, 4).T, of("u1", SMALL // 4 + 1, 4).T
    assert ab.contiguous(small_one).flags.owndata
    assert ab.contiguous(large).ctypes.data % 64 == 0
    assert not ab.contiguous(large).flags.owndata


def test_arguments():
    x = of("f4", 4, 4).T
    out = np.zeros((4, 4), "f4")
    assert ab.contiguous(x, out=out) is out
    np.testing.assert_array_equal(out, x)
    np.testing.assert_array_equal(ab.contiguous(x, out=None), x)
    for arguments, named in (((), {}), ((x, x), {}), ((), {"x": x}), ((x,), {"order": "C"})):
        with pytest.raises(TypeError, match="contiguous"):
            ab.contiguous(*arguments, **named)
    with pytest.raises(TypeError):
        ab.contiguous(3.5)


def test_a_registered_library_gets_its_arrays():
    class Mine(ab.Library):
        name = "mine"
        accepts = copies.library_of_type(np.ndarray).accepts

        def owns(self, array_type):
            return array_type is np.ndarray

        def describe(self, x):
            raise NotImplementedError("mine")

    x = of("f4", 40, 40).T
    ab.contiguous(x)
    ab.register_library(Mine())
    try:
        with pytest.raises(NotImplementedError, match="mine"):
            ab.contiguous(x)
    finally:
        ab.unregister_library("mine")
    np.testing.assert_array_equal(ab.contiguous(x), x)


def test_nothing_leaks():
    x = of("f4", 64, 64).T
    dense = of("f4", 64, 64)
    ab.contiguous(x), ab.contiguous(dense)
    gc.collect()  # what earlier tests left has the dtype too
    before = sys.getrefcount(x), sys.getrefcount(dense), sys.getrefcount(x.dtype)
    tracemalloc.start()
    for _ in range(1000):
        ab.contiguous(x), ab.contiguous(dense)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < 100_000
    after = sys.getrefcount(x), sys.getrefcount(dense), sys.getrefcount(x.dtype)
    assert before == after
    y = ab.contiguous(dense)
    assert sys.getrefcount(dense) == before[1] + 1
    assert y is dense
