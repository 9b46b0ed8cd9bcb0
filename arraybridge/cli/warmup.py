"""``warmup``: compile the copy kernels that a deployment needs, and store them on disk."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

from ..kernels import cuda, disk
from ..kernels.common_layouts import cpu_plans, cuda_plans
from ..kernels.cpu import loader

_Done = tuple[
    str, float | None, bool
]  # name; seconds, None if on disk already; whether it is stored


def run(args: argparse.Namespace) -> int:
    """Compile and print the result; return the exit status, 1 if a kernel cannot be stored."""
    if min(args.item_sizes, default=0) < 1:
        raise ValueError("--item-sizes must be numbers of bytes, such as 1,4,8")
    print(f"Kernels in {disk.folder()}:", flush=True)
    lost = 0
    for processor, kernels in (("CPU", _cpu), ("CUDA", _cuda)):
        done = []
        for name, took, kept in kernels(args.item_sizes):
            done.append(took)
            lost += not kept
            if args.verbose or not kept:
                state = "on disk already" if took is None else f"{took:.2f} s"
                print(f"  {state}{'' if kept else ', not stored'}: {name}", flush=True)
        made = [took for took in done if took is not None]
        there = len(done) - len(made)
        print(f"{processor}: {len(made)} compiled in {sum(made):.1f} s, {there} on disk already")
    if lost:
        print(f"{lost} kernels could not be stored: {disk.problem() or disk.folder()}")
    return int(lost > 0)


def _cpu(item_sizes: tuple[int, ...]) -> Iterator[_Done]:
    for name, made in cpu_plans(item_sizes):
        start = time.perf_counter()
        kernel = loader.load(made.kernel)
        took = time.perf_counter() - start
        if kernel is None:
            raise ImportError(loader.unavailable())
        kept = kernel.cached or loader.is_stored(made.kernel)
        yield f"{made.name} ({name})", None if kernel.cached else took, kept


def _cuda(item_sizes: tuple[int, ...]) -> Iterator[_Done]:
    """The kernels for the CUDA devices, if any: once per compute capability."""
    if cuda.unavailable() is not None:
        return
    from ..kernels.cuda import build, context

    known = set()
    for ordinal in range(context.count()):
        device = context.device(ordinal)
        if device.capability in known:
            continue
        known.add(device.capability)
        for name, made in cuda_plans(item_sizes):
            start = time.perf_counter()
            found = build.stored(made, device.capability)
            if found is None:
                build.compiled(made, device)
            took = time.perf_counter() - start
            kept = build.stored(made, device.capability) is not None
            sm = f"sm_{device.capability[0]}{device.capability[1]}"
            yield f"cuda {made.kernel}, {sm} ({name})", took if found is None else None, kept
