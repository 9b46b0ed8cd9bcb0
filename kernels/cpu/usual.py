"""The CPU's kernels for the layouts that programs copy most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from arraybridge.kernels.cpu.plan import Plan, plan
from arraybridge.kernels.usual import layouts

__all__ = ["plans"]

SIDES = (301, 2999)  # within the cache and past it


def plans(item_sizes: Iterable[int]) -> Iterator[tuple[str, Plan]]:
    """Yield what is copied, by name, and its plan: one for each kernel."""
    seen = set()
    for name, form in layouts(item_sizes, SIDES):
        made = plan(form)
        if made.kernel not in seen:
            seen.add(made.kernel)
            yield name, made
