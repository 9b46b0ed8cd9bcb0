"""The strided layouts that programs copy most, whose kernels are worth compiling beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any

import numpy as np

from arraybridge.kernels.cpu import plan as cpu
from arraybridge.kernels.cpu.plan_types import Plan as CPUPlan
from arraybridge.kernels.cuda import plan as cuda
from arraybridge.kernels.cuda.plan_types import Plan as CUDAPlan
from arraybridge.layout import Canonical, c_strides, canonical

Opaque = np.ndarray[Any, np.dtype[np.void]]
View = Callable[[int, int], Opaque]  # of the side of the square and the item size in bytes


def _of(*shape_and_item: int) -> Opaque:
    """Return an array that takes almost no memory, as its pages are never written."""
    *shape, item = shape_and_item
    return np.empty(shape, f"V{item}")


def _with(n: int, view: Callable[[int, int, int], Opaque]) -> View:
    return lambda side, item: view(side, item, n)


VIEWS: dict[str, View] = {
    "transpose": lambda side, item: _of(side, side, item).T,
    "inner slice": lambda side, item: _of(side, side, item)[:, 3:-5],
    "rows flipped": lambda side, item: _of(side, side, item)[::-1],
    "columns flipped": lambda side, item: _of(side, side, item)[:, ::-1],
    "every fifth column": lambda side, item: _of(side, side, item)[:, ::5],
    "columns broadcast": lambda side, item: np.broadcast_to(_of(side, 1, item), (side, side)),
}
for _n in (2, 3, 4):
    VIEWS |= {
        f"{_n} channels to planes": _with(
            _n, lambda s, item, n: np.moveaxis(_of(s, s, n, item), 2, 0)
        ),
        f"{_n} planes to channels": _with(
            _n, lambda s, item, n: np.moveaxis(_of(n, s, s, item), 0, 2)
        ),
        f"one channel of {_n}": _with(_n, lambda s, item, n: _of(s, s, n, item)[..., 0]),
    }
for _n in (2, 4, 8, 16, 32):
    VIEWS[f"{_n} innermost moved out"] = _with(_n, lambda s, item, n: _of(s, 11, n, item).T)
    VIEWS[f"{_n} outermost moved in"] = _with(_n, lambda s, item, n: _of(n, 11, s, item).T)
for _n in (6, 24, 100, 1000):
    VIEWS[f"runs of {_n} swapped"] = _with(
        _n, lambda s, item, n: np.moveaxis(_of(s, 9, n, item), 0, 1)
    )


def _forms(item_sizes: Iterable[int], sides: tuple[int, ...]) -> Iterator[tuple[str, Canonical]]:
    """Yield the name and the canonical form of each layout; `sides` are those of the squares."""
    for item, (name, view), side in product(item_sizes, VIEWS.items(), sides):
        x = view(side, item)
        form = canonical(x.shape, c_strides(x.shape, item), x.strides, item)
        yield f"{name}, {item} byte{'s' if item > 1 else ''}", form


def cpu_plans(item_sizes: Iterable[int]) -> Iterator[tuple[str, CPUPlan]]:
    """Yield the name and the plan of one layout for each kernel of the CPU."""
    seen = set()
    for name, form in _forms(item_sizes, (301, 2999)):  # smaller and larger than the cache
        made = cpu.plan(form)
        if made.kernel not in seen:
            seen.add(made.kernel)
            yield name, made


def cuda_plans(item_sizes: Iterable[int]) -> Iterator[tuple[str, CUDAPlan]]:
    """Yield the name and a launch of one layout for each CUDA kernel.

    Memory is assumed to start at a multiple of 16 bytes, as that of array libraries does.
    """
    seen: set[tuple[object, ...]] = {("memcpy", ())}
    # Sides with rows that start at multiples of 16 bytes, and without.
    for name, form in _forms(item_sizes, (1024, 301, 3001)):
        for made in cuda.plan(form, form.dst_offset % 16, form.src_offset % 16):
            if made[:2] not in seen:
                seen.add(made[:2])
                yield name, made
