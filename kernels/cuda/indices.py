"""The position of a piece of work: division by multiplication, and decoding of indices.

Device functions that all kernels share; ``arraybridge.kernels.cuda.family`` describes how kernels
are written.
"""

from collections.abc import Sequence
from typing import Any

from arraybridge.kernels.cuda.plan_types import THREADS, Axis, division


def outer(axes: Sequence[Axis]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the extents, divisions and steps that `decode` reads, for axes innermost first.

    The outermost axis has neither extent nor division: it gets the rest of the index.
    """
    extents = tuple([axis.extent for axis in axes[:-1]])
    divisions = tuple([part for extent in extents for part in division(extent)])
    return extents, divisions, tuple([step for axis in axes for step in axis[1:]])


def even(axes: Sequence[Axis], pieces: int) -> tuple[int, int] | None:
    """Return the steps between the pieces of a thread, if they are along one axis for all threads.

    A block has `THREADS` times `pieces` of them; those of a thread are `THREADS` apart. Then only
    one index is decoded, and no block is partly beyond the end.
    """
    below = 1
    for extent, dst, src in axes:
        if THREADS % below == 0 and below * extent % (pieces * THREADS) == 0:
            return THREADS // below * dst, THREADS // below * src
        below *= extent
    return None


def staged(ops: Any, width: int) -> tuple[Any, Any, Any]:
    """Return the functions that move `width` bytes, 4 or 8, to shared memory.

    Call ``stage(sm, offset, load(address))``, and ``synchronize()`` before other threads read it.
    If the device copies asynchronously, ``load`` only returns the address, and ``stage`` copies
    from there, so that all loads are in flight at once.
    """
    barrier, wait = ops.cuda.syncthreads, ops.wait_async
    if wait is None:
        return ops.ld[width], ops.sts[width], barrier

    @ops.device
    def synchronize():
        wait()
        barrier()

    return ops.i64, ops.copy_async[width], synchronize


def divide(ops: Any) -> Any:
    """Make the device function ``divide(n, m, s)``: n // d for ``m, s = division(d)``."""
    mulhi, shr, i32, u32 = ops.mulhi, ops.shr, ops.i32, ops.u32

    @ops.device
    def divide(n, m, s):
        return i32(shr(u32(mulhi(u32(n), m) + u32(n)), s))

    return divide


def decode(ops: Any, axes: int, extent: int = 0, pair: int = 0, step: int = 0) -> Any:
    """Make the device function that decodes an index in a nest of any number of axes.

    There is one function per axis, which divides the index by its extent and calls the next:
    ``decode(index, extents, divisions, steps) -> (dst, src)``, in **bytes**. `extent`, `pair`,
    `step`: where the axes begin in the kernel's extents, divisions and steps; see `outer`.
    """
    i32, i64 = ops.i32, ops.i64

    if axes == 0:

        @ops.device
        def nowhere(index, extents, divisions, steps):
            return i64(0), i64(0)

        return nowhere

    if axes == 1:

        @ops.device
        def outermost(index, extents, divisions, steps):
            return i64(index) * steps[step], i64(index) * steps[step + 1]

        return outermost

    quotient = divide(ops)
    further = decode(ops, axes - 1, extent + 1, pair + 2, step + 2)

    @ops.device
    def place(index, extents, divisions, steps):
        rest = quotient(index, divisions[pair], divisions[pair + 1])
        digit = i64(i32(index - rest * extents[extent]))
        dst, src = further(rest, extents, divisions, steps)
        return dst + digit * steps[step], src + digit * steps[step + 1]

    return place
