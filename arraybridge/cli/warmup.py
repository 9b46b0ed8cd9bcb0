"""``warmup``: compile the copy kernels for the CUDA devices here, and store them on disk."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import numpy as np

from ..kernels import cuda, disk
from ..kernels.cuda import build, context, plan
from ..kernels.cuda.plan_types import Plan
from ..layout import c_strides, canonical

COMPILED, THERE, LOST = "compiled", "on disk already", "not stored"


def run(args: argparse.Namespace) -> int:
    """Compile and print the result; return the exit status, 1 if a kernel cannot be stored."""
    if min(args.item_sizes, default=0) < 1:
        raise ValueError("--item-sizes must be numbers of bytes, such as 1,4,8")
    missing = cuda.unavailable()
    if missing is not None:
        print(f"CUDA: {missing}. The kernels for the CPU are built with arraybridge.")
        return 0
    print(f"Kernels in {disk.folder()}:", flush=True)
    start, count = time.perf_counter(), Counter[str]()
    for name, state in _compiled(args.item_sizes):
        count[state] += 1
        if args.verbose or state == LOST:
            print(f"  {state}: {name}", flush=True)
    took = time.perf_counter() - start
    print(f"CUDA: {count[COMPILED]} {COMPILED}, {count[THERE]} {THERE}, in {took:.1f} s")
    if count[LOST]:
        print(f"{count[LOST]} kernels could not be stored: {disk.problem() or disk.folder()}")
    return int(count[LOST] > 0)


def _compiled(item_sizes: Iterable[int]) -> Iterator[tuple[str, str]]:
    """Compile the kernels for the devices, if any: once per compute capability."""
    devices = [context.device(ordinal) for ordinal in range(context.count())]
    for capability, device in {device.capability: device for device in devices}.items():
        for name, made in cuda_plans(item_sizes):
            there = build.stored(made, capability) is not None
            if not there:
                build.compiled(made, device)
            kept = build.stored(made, capability) is not None
            sm = f"sm_{capability[0]}{capability[1]}"
            state = THERE if there else COMPILED if kept else LOST
            yield f"cuda {made.kernel}, {sm} ({name})", state


def cuda_plans(item_sizes: Iterable[int]) -> Iterator[tuple[str, Plan]]:
    """Yield the name and a launch of one layout for each CUDA kernel.

    Memory is assumed to start at a multiple of 16 bytes, as that of array libraries does.
    """
    seen: set[tuple[object, ...]] = {("memcpy", ())}
    for name, x in _views(item_sizes):
        item = x.itemsize
        form = canonical(x.shape, c_strides(x.shape, item), x.strides, item)
        for made in plan.plan(form, form.dst_offset % 16, form.src_offset % 16):
            if made[:2] not in seen:
                seen.add(made[:2])
                yield f"{name}, {item} byte{'s' if item > 1 else ''}", made


def _views(item_sizes: Iterable[int]) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Yield the name and a view in each of the most common layouts; they take no memory."""
    # Sides of rows that start at multiples of 16 bytes, and of others.
    for item, side in product(item_sizes, (1024, 301, 3001)):

        def new(*shape: int, item: int = item) -> np.ndarray[Any, Any]:
            strides = c_strides(shape, item)
            return np.lib.stride_tricks.as_strided(np.empty(1, f"V{item}"), shape, strides)

        square = new(side, side)
        yield "transpose", square.T
        yield "inner slice", square[:, 3:-5]
        yield "rows flipped", square[::-1]
        yield "columns flipped", square[:, ::-1]
        yield "every fifth column", square[:, ::5]
        yield "columns broadcast", np.broadcast_to(new(side, 1), (side, side))
        for n in (2, 3, 4):
            yield f"{n} channels to planes", np.moveaxis(new(side, side, n), 2, 0)
            yield f"{n} planes to channels", np.moveaxis(new(n, side, side), 0, 2)
            yield f"one channel of {n}", new(side, side, n)[..., 0]
        for n in (2, 4, 8, 16, 32):
            yield f"{n} innermost moved out", new(side, 11, n).T
            yield f"{n} outermost moved in", new(n, 11, side).T
        for n in (6, 24, 100, 1000):
            yield f"runs of {n} swapped", np.moveaxis(new(side, 9, n), 0, 1)
