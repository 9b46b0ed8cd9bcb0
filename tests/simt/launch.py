"""One launch of one kernel, interpreted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from arraybridge.kernels.cuda.plan_types import Plan

from .interpreter import call
from .machine import Machine
from .memory import Memory

__all__ = ["launch"]

#: Blocks that run side by side.
CHUNK = 64


def launch(
    plan: Plan,
    factory: Callable[..., Any],
    dst: int,
    src: int,
    memory: Memory,
    *,
    blocks: Iterable[int] | None = None,
    asynchronous: bool = True,
) -> None:
    """Run blocks of a kernel (by default all), and check each access: a Fault otherwise.

    `dst` and `src` are the caller's addresses, before the plan's offsets. `asynchronous`: whether
    the device copies to shared memory asynchronously.
    """
    _fits(plan)
    numbers = [tuple(np.int64(n) for n in part) for part in plan[3:6]]
    chosen = range(plan.grid) if blocks is None else list(blocks)
    for start in range(0, len(chosen), CHUNK):
        machine = Machine(memory, chosen[start : start + CHUNK], asynchronous=asynchronous)
        kernel = factory(machine.ops, *plan.constants)
        call(
            kernel,
            (np.int64(dst + plan.dst_offset), np.int64(src + plan.src_offset), *numbers),
            None,
        )
        machine.finish()


def _fits(plan: Plan) -> None:
    """Check that the numbers of a plan are what its fields say."""
    wrong = [n for n in plan.extents if not -(2**31) <= n < 2**31]
    wrong += [n for n in plan.divisions if not 0 <= n < 2**32]
    wrong += [n for n in plan.steps if not -(2**63) <= n < 2**63]
    if wrong or not 1 <= plan.grid < 2**31:
        raise ValueError(f"numbers that no launch can have, {wrong}, in {plan}")
