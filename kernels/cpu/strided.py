"""Plans of strided copies, cut into slices and run by compiled kernels on threads."""

from __future__ import annotations

from array import array
from functools import lru_cache

from arraybridge.kernels.cpu import loader, pool
from arraybridge.kernels.cpu.record import Plan
from arraybridge.kernels.cpu.slices import slices

__all__ = ["ALONE", "SLICE", "SLICES", "copy", "is_loaded"]

#: Bytes of a result up to which a second thread does not pay: it takes 5 to 50 µs to wake, and on
#: a machine with other work longer.
ALONE = 1 << 20

#: The least bytes of a slice.
SLICE = 256 * 1024

#: Slices a thread: one that is done takes the next, so that a late or slow thread costs little.
SLICES = 4


def is_loaded(made: Plan) -> bool:
    """Whether this process has the kernel of a plan ready to run."""
    return loader.is_loaded("nest", *made.kernel)


def copy(dst: int, src: int, made: Plan) -> bool:
    """Copy by a plan, on as many threads as its bytes are worth.

    Parameters
    ----------
    dst, src : int
        The addresses that the plan was made for.
    made : Plan

    Returns
    -------
    bool
        False where the kernel cannot be had: ``loader.unavailable`` says why.
    """
    kernel = loader.load("nest", *made.kernel)
    if kernel is None:
        return False
    count = 1
    if made.nbytes > ALONE:
        threads = pool.get_num_threads()
        if threads > 1:
            count = min(made.nbytes // SLICE, SLICES * threads)
    records, length, parts = _slices(made, count)
    records = records[:]  # a kernel counts in them: every call has its own
    for at in range(0, len(records), length):
        records[at] += dst
        records[at + 1] += src
    address = records.buffer_info()[0]
    if parts == 1:
        kernel.call(address)
    else:
        pool.run(kernel.address, address, 8 * length, parts)
    return True


@lru_cache(1024)
def _slices(made: Plan, count: int) -> tuple[array[int], int, int]:
    """The records of a plan's slices in a row, from the addresses 0; words of one; how many.

    Kept, since cutting costs 30 µs, and three times that where a large copy has just emptied the
    caches of all that Python needs for it.
    """
    parts = slices(made, 0, 0, count)
    records = array("q")
    for part in parts:
        records.extend(part)
    return records, len(parts[0]), len(parts)
