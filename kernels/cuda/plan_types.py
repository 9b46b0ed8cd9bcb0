"""One launch of one kernel, as data: what a copy on a CUDA device consists of.

`plan` makes it, `build` compiles for it, `launch` launches it, and the tests interpret it. Plain
Python, without a driver or a compiler.
"""

from typing import NamedTuple

#: Threads per block, of every kernel.
THREADS = 256

#: The most pieces of work of one launch, so that an index past the end still fits in 32 bits.
MAX_PIECES = 2**31 - 4 * THREADS


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

    # A name of `family.FAMILY`, or ``"memcpy"`` for a copy by the driver, with ``steps=(nbytes,)``.
    kernel: str
    constants: tuple[object, ...]  # compile-time constants: the arguments of its factory
    grid: int  # blocks of `THREADS` threads, at most 2**31 - 1
    extents: tuple[int, ...] = ()  # int32
    divisions: tuple[int, ...] = ()  # uint32: a multiplier and a shift per divisor; see `division`
    steps: tuple[int, ...] = ()  # int64
    dst_offset: int = 0  # like the next, added to the caller's address
    src_offset: int = 0


def division(divisor: int) -> tuple[int, int]:
    """Return ``(m, s)`` such that ``n // divisor == (mulhi(n, m) + n) >> s`` for 0 <= n < 2**31.

    Granlund and Montgomery, "Division by invariant integers using multiplication" (1994).
    """
    shift = (divisor - 1).bit_length()
    return (1 << 32) * ((1 << shift) - divisor) // divisor + 1, shift
