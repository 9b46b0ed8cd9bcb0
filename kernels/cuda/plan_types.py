"""What a copy on a CUDA device is made of: one launch of one kernel, as data.

Made by `plan`, compiled for by `build`, launched by `launch`, interpreted by the tests. Everything
here is plain Python: no driver, no compiler.
"""

from __future__ import annotations

from typing import NamedTuple

#: Threads a block, of every kernel.
THREADS = 256

#: Pieces of work that one launch may count, so that an index past the end still fits 32 bits.
MOST = 2**31 - 4 * THREADS


class Axis(NamedTuple):
    """One axis of a nest: its extent, and its strides on both sides in **bytes**.

    Planners take axes innermost first, the reverse of `layout.Canonical`.
    """

    extent: int
    dst: int
    src: int


class Plan(NamedTuple):
    """One launch of one kernel. Offsets and strides in **bytes**.

    The kernel is called with the two addresses and three tuples: ``kernel(dst, src, extents,
    divisions, steps)``; their lengths follow from `kernel` and `constants`.
    """

    # Out of `family.FAMILY`; or ``"memcpy"``, which the driver does: ``steps`` is then the number
    # of bytes alone.
    kernel: str
    constants: tuple[object, ...]  # what the kernel is compiled for: the arguments of its factory
    grid: int  # blocks of `THREADS` threads, at most 2**31 - 1
    extents: tuple[int, ...] = ()  # int32
    # Of uint32: a multiplier and a shift for each divisor; see `division`.
    divisions: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()  # int64
    dst_offset: int = 0  # as the next: what is added to the caller's addresses
    src_offset: int = 0


def division(divisor: int) -> tuple[int, int]:
    """Return ``(m, s)`` such that ``n // divisor == (mulhi(n, m) + n) >> s`` for 0 <= n < 2**31.

    Granlund and Montgomery, "Division by invariant integers using multiplication" (1994).
    """
    shift = (divisor - 1).bit_length()
    return (1 << 32) * ((1 << shift) - divisor) // divisor + 1, shift
