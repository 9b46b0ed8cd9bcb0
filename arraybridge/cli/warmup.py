"""``warmup``: compile the copy kernels that a deployment will want, and keep them on disk."""

from __future__ import annotations

import argparse
import sys
import time

from ..kernels import disk
from ..kernels.cpu import cache, loader
from ..kernels.cpu.usual import plans


def show(args: argparse.Namespace) -> int:
    """Compile, and print a line a kernel; the exit status is 1 where one cannot be kept."""
    if min(args.item_sizes, default=0) < 1:
        args.fail("the item sizes are numbers of bytes, such as 1,4,8")
    print(f"kernels in {disk.folder()}:", flush=True)
    missing = 0
    for name, made in plans(args.item_sizes):
        start = time.perf_counter()
        kernel = loader.load("nest", *made.kernel)
        took = time.perf_counter() - start
        if kernel is None:
            print(loader.unavailable(), file=sys.stderr)
            return 1
        kept = kernel.cached or cache.is_cached("nest", *made.kernel)
        missing += not kept
        said = "on disk already" if kernel.cached else f"{took:.2f} s"
        print(f"  {said if kept else f'{said}, not kept'}: {made.name} ({name})", flush=True)
    if missing:
        why = disk.problem()
        where = f"{disk.folder()}{f': {why}' if why else ''}"
        print(f"{missing} kernels could not be written to {where}")
    return 1 if missing else 0
