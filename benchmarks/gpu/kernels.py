"""Compile the kernels of all parts ahead, in one process per core, and keep them on disk.

Numba takes a second for each, and the parts would compile them one after the other.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any

from . import rehearsal
from .bandwidth import layouts
from .sanitized import NESTS, of_layout
from .variants import contenders


def plans(capability: tuple[int, int] = (9, 0)) -> Iterator[Any]:
    """One plan per kernel: of the layouts, large and small, the sanitized nests, what tests copy, what `warmup` compiles.

    As a device of a capability is tuned; and of the layouts each variant, too.
    """
    from arraybridge.kernels.common_layouts import cuda_plans
    from arraybridge.kernels.cuda import tuning
    from tests.support.small_layouts import small_layouts

    from ..layouts import LAYOUTS

    nests = [*NESTS, *map(of_layout, LAYOUTS), *map(of_layout, small_layouts())]
    current = tuning.of(capability)
    found = [plan for nest in nests for plan in nest.tuned(current)]
    found += [plan for _, plan in cuda_plans((1, 2, 4, 8, 16), current)]
    for layout in layouts():
        for made in contenders(layout, current, capability).values():
            found += made
    seen = {("memcpy", ())}
    for plan in found:
        if plan[:2] not in seen:
            seen.add(plan[:2])
            yield plan


def compiled(plan: Any) -> float | None:
    """Put a kernel on disk; return the seconds, or None if it was there."""
    from arraybridge.kernels import disk
    from arraybridge.kernels.cuda import cache, context

    device, start = context.device(0), time.perf_counter()
    if cache.found(plan, device.capability) is not None:
        return None
    cache.compiled(plan, device)
    if cache.found(plan, device.capability) is None:
        raise OSError(f"not kept in {disk.folder()}: {disk.problem()}")
    return time.perf_counter() - start


def _start() -> None:
    if rehearsal.WANTED:
        rehearsal.install()


def run(record: Any) -> None:
    from arraybridge.kernels.cuda import context
    from arraybridge.kernels.cuda.plan import name

    processes = len(os.sched_getaffinity(0))
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _start)
    try:
        waited = {pool.submit(compiled, plan): plan for plan in plans(context.device(0).capability)}
        for done in as_completed(waited, record.left()):
            plan = waited[done]
            title = f"{name(plan)} {plan.constants}"
            record.attempt(
                title, lambda done=done: {"seconds": done.result(), "processes": processes}
            )
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
