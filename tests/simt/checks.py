"""What an access must be, in whatever memory; and bytes as vectors."""

from __future__ import annotations

import numpy as np

from .values import Fault

__all__ = ["WIDTHS", "WORD", "aligned", "inside", "vectors"]

#: Bytes of an access, and the words that it is seen as.
WIDTHS = (1, 2, 4, 8, 16)
WORD = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint32, 16: np.uint32}


def vectors(part: np.ndarray, width: int) -> np.ndarray:
    words = part.view(WORD[width])
    return words if width <= 4 else words.reshape(-1, width // 4)


def aligned(addresses: np.ndarray, width: int, what: str, where: str) -> None:
    if width > 1 and (addresses & (width - 1)).any():
        wrong = int(addresses[np.flatnonzero(addresses & (width - 1))[0]])
        raise Fault(f"{what} of {width} bytes is misaligned: {wrong:#x} at {where}")


def inside(good: np.ndarray, offsets: np.ndarray, width: int, what: str, where: str) -> None:
    if not good.all():
        wrong = int(offsets[np.flatnonzero(~good)[0]])
        raise Fault(f"{width} bytes at {wrong} {what} at {where}")
