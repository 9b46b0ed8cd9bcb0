"""The CUDA kernels for the layouts that programs copy most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from arraybridge.kernels.cuda.plan import plan
from arraybridge.kernels.cuda.record import Plan
from arraybridge.kernels.usual import layouts

__all__ = ["plans"]

SIDES = (1024, 301, 3001)  # rows that start at multiples of 16 bytes, and rows that do not


def plans(item_sizes: Iterable[int]) -> Iterator[tuple[str, Plan]]:
    """Yield what is copied, by name, and a launch of it: one for each kernel.

    Memory is taken to start at a multiple of 16 bytes, as what the array libraries allocate does.
    """
    seen: set[tuple[object, ...]] = {("memcpy", ())}
    for name, form in layouts(item_sizes, SIDES):
        for made in plan(form, form.dst_offset % 16, form.src_offset % 16):
            if (made.kernel, made.constants) not in seen:
                seen.add((made.kernel, made.constants))
                yield name, made
