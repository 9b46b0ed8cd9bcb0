"""The global memory of a launch: a source and a destination at made-up addresses.

Loads read the source alone; a vector of it may reach past its bytes where it holds one of them at
least, since it lies within 16 aligned bytes and no GPU faults on that. A store writes bytes of the
destination's items alone, each once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from arraybridge import layout

from .values import WIDTHS, inside, vectors

__all__ = ["DST", "SRC", "Endless", "Memory", "view"]

#: Addresses that no int32 holds.
SRC, DST = 1 << 40, 1 << 41
MARGIN = 256  # bytes on either side that nobody may touch


def view(memory: np.ndarray, at: int, shape: Any, strides: Any, itemsize: int) -> np.ndarray:
    """Items of bytes, the one with indices 0 at an offset of a block. Strides in **bytes**."""
    return np.ndarray(shape, f"V{itemsize}", memory, at, strides)


class Memory:
    """The bytes of one copy in **bytes**, with those around them; nothing is written twice.

    The lowest byte of either side is `dst_start` and `src_start` bytes past a multiple of 256.
    `dst` and `src` are the addresses of the items with indices 0, `source` and `target` all bytes
    from `SRC` and `DST` on; the items of the source lie between the offsets `readable`, `pending`
    has a 1 for each byte of the target that is still to be written, and `expected` is what NumPy
    makes of it.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        dst_strides: tuple[int, ...],
        src_strides: tuple[int, ...],
        itemsize: int,
        dst_start: int = 0,
        src_start: int = 0,
    ) -> None:
        random = np.random.default_rng(0)
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

        self._source, self._target, self._pending = (
            {width: vectors(part, width) for width in WIDTHS}
            for part in (self.source, self.target, self.pending)
        )
        self._once = {width: vectors(np.ones(16, np.uint8), width)[0] for width in WIDTHS}

    def load(self, width: int, addresses: np.ndarray, where: str) -> np.ndarray:
        offsets = addresses - SRC
        low, high = self.readable
        inside((offsets > low - width) & (offsets < high), offsets - low, width,
               f"of the source's {high - low} are read", where)  # fmt: skip
        return self._source[width][offsets // width]

    def store(self, width: int, addresses: np.ndarray, words: np.ndarray, where: str) -> None:
        offsets, there = addresses - DST, addresses - self.dst
        inside((offsets >= 0) & (offsets + width <= self.target.size), there, width,
               "far from the destination are written", where)  # fmt: skip
        at, pending = offsets // width, self._pending[width]
        ready = pending[at] == self._once[width]
        inside(ready if width <= 4 else ready.all(1), there, width,
               "of no item of the destination, or written before, are written", where)  # fmt: skip
        pending[at] = 0
        order = np.empty(len(pending), np.int32)
        order[at] = np.arange(at.size)
        inside(order[at] == np.arange(at.size), there, width,
               "of the destination are written by two threads", where)  # fmt: skip
        self._target[width][at] = words

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


class Endless:
    """A copy of any size into a dense destination, without its bytes, for some of its blocks.

    A byte of the source follows from its address, so that each store shows where its bytes come
    from; `check` finds bytes that are stored twice.
    """

    def __init__(self, shape: tuple[int, ...], src_strides: tuple[int, ...], itemsize: int) -> None:
        self.shape, self.src_strides, self.itemsize = shape, src_strides, itemsize
        low, self.high = layout.span(shape, src_strides, itemsize)
        self.src, self.dst = SRC - low, DST
        self.readable = SRC, self.src + self.high
        self.size = layout.span(shape, None, itemsize)[1]
        self.stored: list[np.ndarray] = []

    def load(self, width: int, addresses: np.ndarray, where: str) -> np.ndarray:
        low, high = self.readable
        inside((addresses > low - width) & (addresses < high), addresses - low, width,
               f"of the source's {high - low} are read", where)  # fmt: skip
        return vectors(_hashed(addresses, width), width)

    def store(self, width: int, addresses: np.ndarray, words: np.ndarray, where: str) -> None:
        offsets = addresses - self.dst
        inside((offsets >= 0) & (offsets + width <= self.size), offsets, width,
               f"of the destination's {self.size} are written", where)  # fmt: skip
        offsets = (offsets[:, None] + np.arange(width)).ravel()
        index, byte = np.divmod(offsets, self.itemsize)
        origin = self.src + byte
        for extent, stride in zip(self.shape[::-1], self.src_strides[::-1], strict=True):
            index, digit = np.divmod(index, extent)
            origin += digit * stride
        bytes_ = np.ascontiguousarray(words).view(np.uint8).ravel()
        inside(bytes_ == _hashed(origin, 1), offsets, 1, "of the destination are wrong", where)
        self.stored.append(offsets)

    def check(self) -> None:
        """Raise AssertionError where a byte was stored twice."""
        stored = np.concatenate(self.stored)
        assert np.unique(stored).size == stored.size, "a byte is stored twice"


def _hashed(addresses: np.ndarray, count: int) -> np.ndarray:
    """The bytes of the source from each address on."""
    places = (addresses[:, None] + np.arange(count)).ravel().astype(np.uint64)
    return (places * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(56)).astype(np.uint8)
