"""The kernels: their factories, by name. Does not import Numba.

How a kernel is written
-----------------------
A factory takes the operations (``ops.OPS``, or the interpreter's) and the constants of a plan, and
returns ``kernel(dst, src, extents, divisions, steps)``: two addresses (int64) and three tuples
(int32, uint32, int64), each of whose items becomes a parameter.

* Index arithmetic is 32-bit (every sum is wrapped in ``i32``: Numba would widen it), addresses are
  64-bit, divisions are multiplications (``indices.divide``).
* A grid is one-dimensional, in the order of the destination; a block does one piece of work and
  ends: grid-stride loops cost 10 to 48 % on Hopper (pytorch/pytorch#194310).
* Loads of 16 bytes always contain bytes of the source, and only elements are written.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from arraybridge.kernels.cuda.box_kernel import box
from arraybridge.kernels.cuda.channels import merge, split
from arraybridge.kernels.cuda.rows import rows
from arraybridge.kernels.cuda.shift import shift
from arraybridge.kernels.cuda.tile import plain, tile


class Member(NamedTuple):
    """A kernel of the family."""

    factory: Callable[..., Any]  # ``factory(ops, *plan.constants)`` returns the kernel
    # Blocks that must fit on a multiprocessor at once, the second launch bound. It limits registers
    # so that some blocks can load while others store.
    blocks: int


FAMILY: dict[str, Member] = {
    "rows": Member(rows, 4),
    "gather": Member(rows, 4),  # for any nest
    "shift": Member(shift, 6),
    "tile": Member(tile, 6),
    "plain": Member(plain, 6),
    "split": Member(split, 6),
    "merge": Member(merge, 6),
    "box": Member(box, 5),
}
