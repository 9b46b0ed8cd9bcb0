"""Any nest through the planner and the interpreter, against NumPy."""

from __future__ import annotations

from contextlib import ExitStack
from importlib import import_module
from typing import Any

import numpy as np

from arraybridge import layout
from arraybridge.kernels.cuda.family import FAMILY
from arraybridge.kernels.cuda.plan_types import Plan

from .launch import launch
from .memory import DST, SRC, Memory

__all__ = ["always", "copied", "planned"]

plans = import_module("arraybridge.kernels.cuda.plan")
boxes = import_module("arraybridge.kernels.cuda.box_plan")


def always(*nest: object) -> float:
    """What copying item by item costs, for `otherwise`: a box is planned wherever there is one."""
    return float("inf")


def planned(
    shape: tuple[int, ...],
    dst_strides: tuple[int, ...],
    src_strides: tuple[int, ...],
    itemsize: int,
    dst: int,
    src: int,
    **settings: Any,
) -> tuple[tuple[Plan, ...], int, int]:
    """Plan a copy for the addresses of the items with indices 0; and to which offsets are added.

    `settings` are names of the planner's modules, and what it is made to believe; by default that
    the smallest nests are worth tiling.
    """
    form = layout.canonical(shape, dst_strides, src_strides, itemsize)
    dst, src = dst + form.dst_offset, src + form.src_offset
    with ExitStack() as stack:
        for name, value in ({"MAX_UNTILED_BYTES": 0} | settings).items():
            module = plans if hasattr(plans, name) else boxes
            stack.callback(setattr, module, name, getattr(module, name))
            setattr(module, name, value)
        return plans.plan.__wrapped__(form, dst % 16, src % 16), dst, src


def copied(
    shape: tuple[int, ...],
    dst_strides: tuple[int, ...],
    src_strides: tuple[int, ...],
    itemsize: int,
    dst_start: int = 0,
    src_start: int = 0,
    *,
    asynchronous: bool = True,
    **settings: Any,
) -> tuple[Plan, ...]:
    """Copy a nest as the planner says: AssertionError unless every byte is right. What was run.

    `asynchronous` as of `launch`, the rest as of `planned`.
    """
    memory = Memory(shape, dst_strides, src_strides, itemsize, dst_start, src_start)
    before = memory.source.copy()
    plans, dst, src = planned(
        shape, dst_strides, src_strides, itemsize, memory.dst, memory.src, **settings
    )
    for one in plans:
        if one.kernel == "memcpy":
            _by_driver(memory, dst + one.dst_offset, src + one.src_offset, *one.steps)
        else:
            launch(one, FAMILY[one.kernel].factory, dst, src, memory, asynchronous=asynchronous)
    memory.check()
    assert np.array_equal(memory.source, before)
    return plans


def _by_driver(memory: Memory, dst: int, src: int, count: int) -> None:
    """What the driver does for ``memcpy``."""
    to, at = dst - DST, src - SRC
    low, high = memory.readable
    assert low <= at <= high - count, "bytes outside of the source are copied"
    assert memory.pending[to : to + count].all(), "bytes of no item are written"
    memory.pending[to : to + count] = 0
    memory.target[to : to + count] = memory.source[at : at + count]
