"""The layouts of the copy benchmarks, as models, images and numerical code have them.

A layout is a contiguous array of random bytes and a function that makes the view to be copied. If
the view is a permutation, TensorFlow's transpose takes part. If PyTorch has no such view (negative
strides), its own function takes part instead.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

import numpy as np


class Layout(NamedTuple):
    """One view of one contiguous array.

    Attributes
    ----------
    name : str
    shape : tuple of int
        Of the contiguous array.
    dtype : str
    view : callable
        The array to be copied, from the contiguous one; works on NumPy's arrays and, where `torch`
        is None, on PyTorch's.
    axes : tuple of int or None
        The permutation, where the view is one of the array reshaped to `grid`.
    torch : callable or None
        ``torch(module, tensor)``: what stands for `view` in PyTorch where it has no such view.
    grid : tuple of int or None
        The shape that is permuted, where that is not `shape`.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    view: Callable
    axes: tuple[int, ...] | None = None
    torch: Callable | None = None
    grid: tuple[int, ...] | None = None

    def base(self) -> np.ndarray:
        """The contiguous array, its bytes random and its first byte at a multiple of 64."""
        count = prod(self.shape) * np.dtype(self.dtype).itemsize
        block = aligned(count)
        words = np.random.default_rng(0).integers(0, 2**63, 1 << 16, np.int64).view(np.uint8)
        for start in range(0, count, words.size):
            block[start : start + words.size] = words[: count - start]
        return block.view(self.dtype).reshape(self.shape)


def aligned(count: int, offset: int = 0) -> np.ndarray:
    """``count`` bytes that start `offset` bytes after a multiple of 64, all written once."""
    block = np.empty(count + 128, np.uint8)
    start = -block.ctypes.data % 64 + offset
    block[:] = 1
    return block[start : start + count]


def permuted(name, shape, dtype, axes, grid=None) -> Layout:
    def view(x):
        if grid is not None:
            x = x.reshape(grid)
        return x.permute(axes) if hasattr(x, "permute") else x.transpose(axes)

    return Layout(name, shape, dtype, view, axes, grid=grid)


def broadcast(name, shape, to, dtype) -> Layout:
    def view(x):
        return x.expand(to) if hasattr(x, "expand") else np.broadcast_to(x, to)

    return Layout(name, shape, dtype, view)


LAYOUTS = [
    permuted("transpose, 1-byte items", (8192, 8192), "uint8", (1, 0)),
    permuted("transpose, 2-byte items", (5760, 5824), "float16", (1, 0)),
    permuted("transpose, 4-byte items", (4096, 4096), "float32", (1, 0)),
    permuted("transpose, 8-byte items", (2880, 2912), "float64", (1, 0)),
    permuted("transpose, 16-byte items", (2048, 2048), "complex128", (1, 0)),
    permuted("transpose, odd sizes", (4099, 4093), "float32", (1, 0)),
    permuted("transpose, tall", (262144, 64), "float32", (1, 0)),
    permuted("transpose, wide", (64, 262144), "float32", (1, 0)),
    permuted("NCHW to NHWC", (16, 64, 128, 128), "float32", (0, 2, 3, 1)),
    permuted("NHWC to NCHW", (16, 128, 128, 64), "float32", (0, 3, 1, 2)),
    permuted("HWC to CHW, bytes", (4096, 5456, 3), "uint8", (2, 0, 1)),
    permuted("CHW to HWC, bytes", (3, 4096, 5456), "uint8", (1, 2, 0)),
    permuted("three axes reversed", (250, 260, 256), "float32", (2, 1, 0)),
    permuted("first two axes swapped", (512, 500, 65), "float32", (1, 0, 2)),
    permuted("attention heads", (8, 2048, 32, 64), "float16", (0, 2, 1, 3)),
    permuted("pixel shuffle", (16, 256, 64, 64), "float32", (0, 1, 4, 2, 5, 3), (16, 64, 2, 2, 64, 64)),
    permuted("six axes, odd", (7, 13, 11, 17, 19, 53), "float32", (4, 2, 5, 0, 3, 1)),
    Layout("inner slice", (4096, 5000), "float32", lambda x: x[:, 451:-453]),
    Layout("every other row", (8192, 4096), "float32", lambda x: x[::2]),
    Layout("every other column", (4096, 8192), "float32", lambda x: x[:, ::2]),
    Layout("one channel of three, bytes", (5792, 5792, 3), "uint8", lambda x: x[..., 1]),
    Layout("rows flipped", (4096, 4096), "float32", lambda x: x[::-1], None, lambda t, x: t.flip(x, (0,))),
    Layout("columns flipped", (4096, 4096), "float32", lambda x: x[:, ::-1], None, lambda t, x: t.flip(x, (1,))),
    Layout("both flipped, transposed", (4096, 4096), "float32", lambda x: x[::-1, ::-1].T, None, lambda t, x: t.flip(x, (0, 1)).T),
    broadcast("rows broadcast", (4096,), (4096, 4096), "float32"),
    broadcast("columns broadcast", (4096, 1), (4096, 4096), "float32"),
]  # fmt: skip


def lines_read(view: np.ndarray) -> int:
    """Bytes of the cache lines that hold the elements of a view: the least that must be read.

    Exact if the axes nest, as in every layout here; each line counts once.
    """
    axes = sorted(
        (abs(stride), extent)
        for extent, stride in zip(view.shape, view.strides, strict=True)
        if extent > 1 and stride
    )
    run, count = view.itemsize, 1  # bytes of one dense run; how many runs there are
    for stride, extent in axes:
        if stride - run < 64 and count == 1:
            run += stride * (extent - 1)
        else:
            count *= extent
    return count * run
