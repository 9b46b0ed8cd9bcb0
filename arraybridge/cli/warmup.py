"""``warmup``: compile the copy kernels that a deployment needs, and store them on disk."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

from ..kernels import cuda, disk
from ..kernels.common_layouts import cpu_plans, cuda_plans
from ..kernels.cpu import loader
from ..kernels.cuda.driver import CUDAError
from . import screen
from .screen import Status

_Done = tuple[
    str, float | None, bool
]  # name; seconds, None if on disk already; whether it is stored


def show(args: argparse.Namespace) -> int:
    """Compile and print the result; return the exit status, 1 if a kernel cannot be stored."""
    if min(args.item_sizes, default=0) < 1:
        args.fail("--item-sizes must be numbers of bytes, such as 1,4,8")
    print(screen.fold(f"Kernels in {disk.folder()}:"), flush=True)
    total = sum(1 for _ in cpu_plans(args.item_sizes))
    for name, kernels, count in (("CPU", _cpu, total), ("CUDA", _cuda, None)):
        missing = 0
        try:
            done = _compiled(name, count, kernels(args.item_sizes), args.verbose)
        except ImportError as error:
            args.missing(str(error))
        except CUDAError as error:
            print(error, file=sys.stderr)
            return Status.REFUSED
        if done:
            made = [took for _, took, _ in done if took is not None]
            missing = sum(not kept for _, _, kept in done)
            there = len(done) - len(made)
            print(f"{name}: {len(made)} compiled in {sum(made):.1f} s, {there} on disk already")
        if missing:
            why = disk.problem()
            where = f"{disk.folder()}{f': {why}' if why else ''}"
            print(screen.fold(f"{missing} kernels could not be written to {where}"))
            return Status.REFUSED
    return Status.FINE


def _compiled(name: str, count: int | None, kernels: Iterator[_Done], verbose: bool) -> list[_Done]:
    """Compile all kernels, with a progress bar or one line per kernel."""
    if verbose:
        return [_printed(each) for each in kernels]
    done = []
    with screen.progress(count, f"{name} kernels") as advance:
        for each in kernels:
            done.append(each)
            advance(each[0])
    return done


def _printed(done: _Done) -> _Done:
    name, took, kept = done
    state = "on disk already" if took is None else f"{took:.2f} s"
    print(f"  {state if kept else f'{state}, not stored'}: {name}", flush=True)
    return done


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
    from ..kernels.cuda import cache, context, plan

    known = set()
    for ordinal in range(context.count()):
        device = context.device(ordinal)
        if device.capability in known:
            continue
        known.add(device.capability)
        for name, made in cuda_plans(item_sizes):
            start = time.perf_counter()
            found = cache.found(made, device.capability)
            if found is None:
                cache.compiled(made, device)
            took = time.perf_counter() - start
            kept = cache.found(made, device.capability) is not None
            sm = f"sm_{device.capability[0]}{device.capability[1]}"
            yield f"{plan.name(made)}, {sm} ({name})", took if found is None else None, kept
