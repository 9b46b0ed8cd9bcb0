"""Shared memory: random bytes at first; races between two barriers are found.

What is copied asynchronously is written when its thread has waited for it; until then nobody may
touch its place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from arraybridge.kernels.cuda.plan_types import THREADS

from .values import WIDTHS, WORD, Fault, aligned, inside, vectors

__all__ = ["Shared"]


def vectors_of(content: np.ndarray) -> dict[int, np.ndarray]:
    """Bytes as vectors of each width."""
    return {width: vectors(content, width) for width in WIDTHS}


class Shared:
    """An array of `size` bytes in the shared memory of each block that runs, one after the other.

    `accesses` are what was done since the last barrier: (where, writes, width in bytes, threads,
    offsets).
    """

    def __init__(self, size: int, blocks: int, alignment: int, random: np.random.Generator) -> None:
        self.size = size
        self.stride = size + -size % 16  # bytes from a block's to the next one's
        self.alignment = alignment
        content = np.frombuffer(random.bytes(self.stride * blocks), np.uint8).copy()
        self.bytes = vectors_of(content)
        self.accesses: list[tuple[str, bool, int, np.ndarray, np.ndarray]] = []
        # Copies under way, (where, width, threads, offsets, words), and 255 for each byte of them.
        self.copies: list[tuple[str, int, np.ndarray, np.ndarray, np.ndarray]] = []
        self.awaited = vectors_of(np.zeros(content.size, np.uint8))

    def phase_ends(self, threads: Any) -> None:
        """Find races since the last barrier; of some threads' blocks, if there is a mask."""
        chosen, later = self.accesses, []
        if threads is not None:
            chosen = []
            for where, writes, width, lanes, offsets in self.accesses:
                ends = threads[lanes]
                chosen.append((where, writes, width, lanes[ends], offsets[ends]))
                later.append((where, writes, width, lanes[~ends], offsets[~ends]))
        self.accesses = [access for access in later if access[3].size]
        if any(access[1] for access in chosen):
            self._races(chosen)

    def _races(self, accesses: list[tuple[str, bool, int, np.ndarray, np.ndarray]]) -> None:
        unit = min(access[2] for access in accesses)
        writer = np.full(self.bytes[unit].shape[0], -1, np.int32)
        for _, writes, width, lanes, offsets in accesses:
            if writes:
                writer.reshape(-1, width // unit)[offsets // width] = lanes[:, None]
        for where, writes, width, lanes, offsets in accesses:
            wrote = writer.reshape(-1, width // unit)[offsets // width]
            other = wrote != lanes[:, None]
            if not writes:
                other &= wrote >= 0
            if other.any():
                at = int(np.flatnonzero(other.any(1))[0])
                raise Fault(
                    f"a race: thread {lanes[at] % THREADS} {'writes' if writes else 'reads'} "
                    f"{width} bytes at {offsets[at] % self.stride} of shared memory at {where}, "
                    f"where thread {wrote[at][other[at]][0] % THREADS} writes in the same phase"
                )

    def _reach(self, width: int, lanes: np.ndarray, offsets: np.ndarray, where: str) -> np.ndarray:
        """Check offsets of a block's memory; give those of all blocks' memory."""
        if width > self.alignment:
            raise Fault(f"{width} bytes of shared memory aligned to {self.alignment} at {where}")
        aligned(offsets, width, "an offset", where)
        inside((offsets >= 0) & (offsets + width <= self.size), offsets, width,
               f"of {self.size} of shared memory are accessed", where)  # fmt: skip
        offsets = offsets + lanes // THREADS * self.stride
        if self.copies:
            inside(~self.awaited[width][offsets // width].reshape(lanes.size, -1).any(1),
                   offsets % self.stride, width,
                   "of shared memory are touched while they are copied to", where)  # fmt: skip
        return offsets

    def load(self, width: int, lanes: np.ndarray, offsets: np.ndarray, where: str) -> np.ndarray:
        offsets = self._reach(width, lanes, offsets, where)
        self.accesses.append((where, False, width, lanes, offsets))
        return self.bytes[width][offsets // width]

    def store(
        self, width: int, lanes: np.ndarray, offsets: np.ndarray, words: np.ndarray, where: str
    ) -> None:
        offsets = self._reach(width, lanes, offsets, where)
        self.accesses.append((where, True, width, lanes, offsets))
        self.bytes[width][offsets // width] = words

    def copy_async(
        self, width: int, lanes: np.ndarray, offsets: np.ndarray, words: np.ndarray, where: str
    ) -> None:
        offsets = self._reach(width, lanes, offsets, where)
        self.accesses.append((where, True, width, lanes, offsets))
        self.copies.append((where, width, lanes, offsets, words))
        self.awaited[width][offsets // width] = ~WORD[width](0)

    def wait_async(self, threads: Any) -> None:
        """Complete the copies of all threads, or of those of a mask."""
        copies, self.copies = self.copies, []
        for where, width, lanes, offsets, words in copies:
            ends = slice(None) if threads is None else threads[lanes]
            self.bytes[width][offsets[ends] // width] = words[ends]
            self.awaited[width][offsets[ends] // width] = 0
            self.accesses.append((where, True, width, lanes[ends], offsets[ends]))
            if threads is not None and not ends.all():
                self.copies.append((where, width, lanes[~ends], offsets[~ends], words[~ends]))

    def ends(self) -> None:
        """The end of the kernel."""
        if self.copies:
            raise Fault(f"nobody waits for what is copied at {self.copies[0][0]}")
