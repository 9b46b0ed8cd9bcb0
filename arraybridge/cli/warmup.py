"""``warmup``: compile the copy kernels that a deployment will want, and keep them on disk."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

from ..kernels import cuda, disk
from ..kernels.cpu import cache, loader
from ..kernels.cpu.usual import plans
from ..kernels.cuda.driver import CUDAError

_Done = tuple[
    str, float | None, bool
]  # its name; seconds, None if it was there; whether it is kept


def show(args: argparse.Namespace) -> int:
    """Compile, and print a line a kernel; the exit status is 1 where one cannot be kept."""
    if min(args.item_sizes, default=0) < 1:
        args.fail("the item sizes are numbers of bytes, such as 1,4,8")
    print(f"kernels in {disk.folder()}:", flush=True)
    missing = 0
    for kernels in (_cpu, _cuda):
        try:
            for name, took, kept in kernels(args.item_sizes):
                missing += not kept
                said = "on disk already" if took is None else f"{took:.2f} s"
                print(f"  {said if kept else f'{said}, not kept'}: {name}", flush=True)
        except (ImportError, CUDAError) as error:
            print(error, file=sys.stderr)
            return 1
    if missing:
        why = disk.problem()
        where = f"{disk.folder()}{f': {why}' if why else ''}"
        print(f"{missing} kernels could not be written to {where}")
    return 1 if missing else 0


def _cpu(item_sizes: tuple[int, ...]) -> Iterator[_Done]:
    for name, made in plans(item_sizes):
        start = time.perf_counter()
        kernel = loader.load("nest", *made.kernel)
        took = time.perf_counter() - start
        if kernel is None:
            raise ImportError(loader.unavailable())
        kept = kernel.cached or cache.is_cached("nest", *made.kernel)
        yield f"{made.name} ({name})", None if kernel.cached else took, kept


def _cuda(item_sizes: tuple[int, ...]) -> Iterator[_Done]:
    """The kernels of the devices that are here, if any: one of each compute capability."""
    if cuda.unavailable() is not None:
        return
    from ..kernels.cuda import cache, context, plan, usual

    known = set()
    for ordinal in range(context.count()):
        device = context.device(ordinal)
        if device.capability in known:
            continue
        known.add(device.capability)
        for name, made in usual.plans(item_sizes):
            start = time.perf_counter()
            found = cache.found(made, device)
            if found is None:
                cache.compiled(made, device)
            took = time.perf_counter() - start
            kept = found is not None or cache.is_cached(made, device.capability)
            sm = f"sm_{device.capability[0]}{device.capability[1]}"
            yield f"{plan.name(made)}, {sm} ({name})", took if found is None else None, kept
