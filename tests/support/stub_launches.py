"""What the stub driver launches: plans written into code, and read back from a launch."""

from __future__ import annotations

import ctypes
from ctypes import c_void_p
from typing import Any

from arraybridge.kernels.cuda import build
from arraybridge.kernels.cuda.plan_types import Plan

__all__ = ["ptx", "read_launch"]


def ptx(plan: Plan) -> str:
    """In the place of `build.ptx`: no code, but what the stub must know to interpret the kernel."""
    lengths = len(plan.extents), len(plan.divisions), len(plan.steps)
    told = (plan.kernel, plan.constants, *lengths)
    return f"// {told!r}\n.entry {build.entry(plan.kernel)}\n"


def read_launch(
    grid: int, arguments: int, name: str, constants: tuple[Any, ...], *lengths: int
) -> tuple[Plan, int, int]:
    """Read the arguments of a kernel as the driver does: the plan, and the two addresses."""
    kinds = [ctypes.c_int64] * 2
    for number, kind in zip(
        lengths, (ctypes.c_int32, ctypes.c_uint32, ctypes.c_int64), strict=True
    ):
        kinds += [kind] * number
    pointers = (c_void_p * len(kinds)).from_address(arguments)
    values = [
        kind.from_address(pointer).value for kind, pointer in zip(kinds, pointers, strict=True)
    ]
    dst, src, *values = values
    parts, start = [], 0
    for number in lengths:
        parts.append(tuple(values[start : start + number]))
        start += number
    return Plan(name, constants, grid, *parts), dst, src
