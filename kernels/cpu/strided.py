"""Any strided block to any other: planned, cut into slices, run by compiled kernels on threads."""

from __future__ import annotations

from array import array
from functools import lru_cache

from arraybridge.kernels.cpu import loader, pool
from arraybridge.kernels.cpu.plan import Plan, plan
from arraybridge.kernels.cpu.slices import slices

__all__ = ["ALONE", "SLICE", "SLICES", "copy", "is_loaded", "kernel_of", "run"]

#: Bytes of a result up to which a second thread does not pay: it takes 5 to 50 µs to wake, and on
#: a machine with other work longer.
ALONE = 1 << 20

#: The least bytes of a slice.
SLICE = 256 * 1024

#: Slices a thread: whoever is done first takes more, so that a late or slow thread costs little.
SLICES = 4


def kernel_of(made: Plan):
    """Return the compiled kernel of a plan; None where ``loader.unavailable`` says why."""
    return loader.load("nest", *made.kernel)


def is_loaded(made: Plan) -> bool:
    """Whether this process has the kernel of a plan ready to run."""
    return loader.is_loaded("nest", *made.kernel)


def copy(
    dst: int,
    src: int,
    shape: tuple[int, ...],
    dst_strides: tuple[int, ...],
    src_strides: tuple[int, ...],
    itemsize: int,
) -> None:
    """As ``arraybridge.kernels.cpu.copy``, with the compiled kernels alone.

    Raises
    ------
    RuntimeError
        Where the kernel cannot be had: ``loader.unavailable`` says why.
    OverflowError
        Where a number does not fit 64 bits.
    """
    if 0 in shape:
        return
    made = plan(shape, dst_strides, src_strides, itemsize)
    kernel = kernel_of(made)
    if kernel is None:
        raise RuntimeError(f"no compiled kernel for strided copies: {loader.unavailable()}")
    run(made, kernel, dst, src)


def run(made: Plan, kernel, dst: int, src: int) -> None:
    """Copy by a plan and its kernel, on as many threads as its bytes are worth.

    Parameters
    ----------
    made : Plan
    kernel
        Of `kernel_of`.
    dst, src : int
        The addresses that the plan was made for.
    """
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


@lru_cache(1024)
def _slices(made: Plan, count: int) -> tuple[array, int, int]:
    """The records of a plan's slices in a row, from the addresses 0; words of one; how many.

    Kept, since cutting costs 30 µs, and three times that where a large copy has just emptied the
    caches of all that Python needs for it.
    """
    parts = slices(made, 0, 0, count)
    records = array("q")
    for part in parts:
        records.extend(part)
    return records, len(parts[0]), len(parts)
