"""The global memory of a launch: a source and a destination at made-up addresses, real bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from arraybridge import layout

__all__ = ["DST", "SRC", "Memory", "view"]

#: Addresses that no int32 holds.
SRC, DST = 1 << 40, 1 << 41
MARGIN = 256  # bytes on either side that nobody may touch


def view(memory: np.ndarray, at: int, shape: Any, strides: Any, itemsize: int) -> np.ndarray:
    """Items of bytes, the one with indices 0 at an offset of a block. Strides in **bytes**."""
    return np.ndarray(shape, f"V{itemsize}", memory, at, strides)


class Memory:
    """The bytes of one copy, with those around them.

    Parameters
    ----------
    shape, dst_strides, src_strides, itemsize
        The copy, as a kernel is asked for it; in **bytes**. Nothing of the destination is written
        twice.
    dst_start, src_start : int
        Bytes from a multiple of 256 to the lowest byte of either side.
    seed : int
        Of the bytes.

    Attributes
    ----------
    dst, src : int
        The addresses of the items with indices 0.
    source, target : numpy.ndarray
        All bytes from the addresses `SRC` and `DST` on.
    readable : tuple of int
        Offsets in `source` of the first byte of an item, and past the last.
    pending : numpy.ndarray
        1 for each byte of `target` that is still to be written.
    expected : numpy.ndarray
        What NumPy makes of `target`.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        dst_strides: tuple[int, ...],
        src_strides: tuple[int, ...],
        itemsize: int,
        dst_start: int = 0,
        src_start: int = 0,
        seed: int = 0,
    ) -> None:
        random = np.random.default_rng(seed)
        low, high = layout.span(shape, src_strides, itemsize)
        at = MARGIN + src_start - low
        self.source = _random(random, at + high + MARGIN)
        self.src, self.readable = SRC + at, (at + low, at + high)
        low, high = layout.span(shape, dst_strides, itemsize)
        there = MARGIN + dst_start - low
        self.target = _random(random, there + high + MARGIN)
        self.dst = DST + there
        self.expected = self.target.copy()
        self.pending = np.zeros(self.target.size, np.uint8)
        if 0 not in shape:
            items = view(self.source, at, shape, src_strides, itemsize)
            view(self.expected, there, shape, dst_strides, itemsize)[...] = items
            ones = np.ones(itemsize, np.uint8).view(f"V{itemsize}")[0]
            view(self.pending, there, shape, dst_strides, itemsize)[...] = ones

    def check(self) -> None:
        """Raise AssertionError unless the destination is what NumPy makes of it."""
        left = np.flatnonzero(self.pending)
        assert not left.size, (
            f"{left.size} bytes of the destination were never written, the first of them "
            f"{left[0] + DST - self.dst} bytes from the item with indices 0"
        )
        wrong = np.flatnonzero(self.target != self.expected)
        assert not wrong.size, (
            f"{wrong.size} bytes of the destination are wrong, the first of them "
            f"{wrong[0] + DST - self.dst} bytes from the item with indices 0"
        )


def _random(random: np.random.Generator, count: int) -> np.ndarray:
    """So many bytes and up to 15 more, so that they can be seen as vectors."""
    return np.frombuffer(random.bytes(count + -count % 16), np.uint8).copy()
