"""Matrices that are transposed by the compiled kernel, for scripts in processes of their own."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np

from arraybridge.kernels.cpu import copying, loader, plan, pool
from arraybridge.layout import canonical

__all__ = [
    "copying",
    "in_slices",
    "loader",
    "np",
    "os",
    "pool",
    "threading",
    "together",
    "transposes",
]


def _by_kernel(dst: int, src: int, *layout: Any) -> None:
    way = copying.way(plan.plan(canonical(*layout)))
    assert way, loader.unavailable()
    copying.run(way, dst, src)


def transposes(count: int, dtype: str = "f4", copy: Any = _by_kernel) -> int:
    """Copy so many matrices, and check them."""
    for i in range(count):
        a = np.arange(301 * 57, dtype=dtype).reshape(301, 57) + i
        b = np.zeros((57, 301), a.dtype)
        copy(b.ctypes.data, a.ctypes.data, b.shape, b.strides, a.T.strides, a.itemsize)
        assert (b == a.T).all()
    return count


def in_slices() -> None:
    """From now on copy on three threads: there shall be work for them."""
    pool.set_num_threads(3)
    copying.SINGLE_THREAD_MAX_BYTES = copying.MIN_SLICE_BYTES = 1024  # bytes
    copying.MIN_SLICE_BLOCKS = 1


def together(count: int, dtypes: list[str]) -> None:
    """Copy so many in each of some threads at once."""
    from concurrent.futures import ThreadPoolExecutor

    barrier = threading.Barrier(len(dtypes))

    def work(dtype: str) -> int:
        barrier.wait()
        return transposes(count, dtype)

    with ThreadPoolExecutor(len(dtypes)) as executor:
        assert sum(executor.map(work, dtypes)) == count * len(dtypes)
