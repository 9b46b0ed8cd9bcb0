"""Any strided block to any other: planned, cut into slices, run by compiled kernels on threads."""

from __future__ import annotations

from array import array

from arraybridge.kernels.cpu import loader, pool
from arraybridge.kernels.cpu.plan import Plan, plan

__all__ = ["ALONE", "SLICE", "SLICES", "copy", "is_loaded", "kernel_of"]

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
    """Copy one strided block to another with the compiled kernels.

    Parameters
    ----------
    dst, src, shape, dst_strides, src_strides, itemsize
        As for ``arraybridge.kernels.cpu.copy``. Where there is nothing to copy, nothing happens.

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
    count = 1
    if made.nbytes > ALONE:
        threads = pool.get_num_threads()
        if threads > 1:
            count = min(made.nbytes // SLICE, SLICES * threads)
    parts = made.slices(dst, src, count)
    if len(parts) == 1:
        kernel.call(parts[0].buffer_info()[0])
        return
    records = array("q")
    for part in parts:
        records.extend(part)
    pool.run(kernel.address, records.buffer_info()[0], 8 * len(parts[0]), len(parts))
