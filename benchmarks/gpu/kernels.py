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

from ..layouts import LAYOUTS
from .sanitized import NESTS, of_layout


def plans() -> Iterator[Any]:
    """One plan per kernel: of the layouts, large and small, and of the sanitized nests."""
    from tests.support.small_layouts import small_layouts

    nests = [*NESTS, *map(of_layout, LAYOUTS), *map(of_layout, small_layouts())]
    seen = {("memcpy", ())}
    for plan in (plan for nest in nests for plan in nest.plans):
        if plan[:2] not in seen:
            seen.add(plan[:2])
            yield plan


def compiled(plan: Any) -> float | None:
    """Put a kernel on disk; return the seconds, or None if it was there."""
    from arraybridge.kernels import disk
    from arraybridge.kernels.cuda import build, context

    device, start = context.device(0), time.perf_counter()
    if build.stored(plan, device.capability) is not None:
        return None
    build.compiled(plan, device)
    if build.stored(plan, device.capability) is None:
        raise OSError(f"not kept in {disk.folder()}: {disk.problem()}")
    return time.perf_counter() - start


def run(record: Any) -> None:
    processes = len(os.sched_getaffinity(0))
    pool = ProcessPoolExecutor(processes, get_context("spawn"))
    try:
        waited = {pool.submit(compiled, plan): plan for plan in plans()}
        for done in as_completed(waited, record.left()):
            plan = waited[done]
            title = f"{plan.kernel} {plan.constants}"
            record.attempt(
                title, lambda done=done: {"seconds": done.result(), "processes": processes}
            )
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
