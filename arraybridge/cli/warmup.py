"""``warmup``: compile the copy kernels that a deployment will want, and keep them on disk."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

from ..kernels.cpu import cache, loader
from ..kernels.cpu.plan import Plan, plan
from ..layout import c_strides, canonical

ITEM_SIZES = (1, 2, 4, 8, 16)


def _with(n: int, view: Callable[[int, int, int], np.ndarray]) -> Callable[[int, int], np.ndarray]:
    return lambda side, item: view(side, item, n)


#: What is copied -> the view, by the side of the square and the bytes an item.
VIEWS: dict[str, Callable[[int, int], np.ndarray]] = {
    "transpose": lambda side, item: _of(side, side, item).T,
    "inner slice": lambda side, item: _of(side, side, item)[:, 3:-5],
    "rows flipped": lambda side, item: _of(side, side, item)[::-1],
    "columns flipped": lambda side, item: _of(side, side, item)[:, ::-1],
    "every fifth column": lambda side, item: _of(side, side, item)[:, ::5],
    "columns broadcast": lambda side, item: np.broadcast_to(_of(side, 1, item), (side, side)),
}
for _n in (2, 3, 4):
    VIEWS |= {
        f"{_n} channels to planes": _with(
            _n, lambda s, item, n: np.moveaxis(_of(s, s, n, item), 2, 0)
        ),
        f"{_n} planes to channels": _with(
            _n, lambda s, item, n: np.moveaxis(_of(n, s, s, item), 0, 2)
        ),
        f"one channel of {_n}": _with(_n, lambda s, item, n: _of(s, s, n, item)[..., 0]),
    }
for _n in (2, 4, 8, 16, 32):
    VIEWS[f"{_n} innermost moved out"] = _with(_n, lambda s, item, n: _of(s, 11, n, item).T)
    VIEWS[f"{_n} outermost moved in"] = _with(_n, lambda s, item, n: _of(n, 11, s, item).T)
for _n in (6, 24, 100, 1000):
    VIEWS[f"runs of {_n} swapped"] = _with(
        _n, lambda s, item, n: np.moveaxis(_of(s, 9, n, item), 0, 1)
    )
SIDES = (301, 2999)  # within the cache and past it


def _of(*shape_and_item: int) -> np.ndarray:
    """An array that takes no memory to speak of: pages that nobody writes are not there."""
    *shape, item = shape_and_item
    return np.empty(shape, f"V{item}")


def kernels(item_sizes: tuple[int, ...] = ITEM_SIZES) -> Iterator[tuple[str, Plan]]:
    """Yield what is copied and its plan, one for each kernel."""
    seen = set()
    for item in item_sizes:
        for name, view in VIEWS.items():
            for side in SIDES:
                x = view(side, item)
                form = canonical(x.shape, c_strides(x.shape, item), x.strides, item)
                made = plan(form)
                if made.kernel not in seen:
                    seen.add(made.kernel)
                    yield f"{name}, {item} byte{'s' if item > 1 else ''}", made


def add_to(commands) -> None:
    """Add the command to an argument parser's."""
    parser = commands.add_parser(
        "warmup",
        help="compile the copy kernels and keep them on disk",
        description="Compiles the kernels that copies of strided layouts take on this machine, so "
        "that no later process waits for Numba. Run it on the CPU that the deployment has.",
    )
    parser.add_argument(
        "--item-sizes",
        type=_sizes,
        default=ITEM_SIZES,
        metavar="A,B",
        help="bytes an item (default: 1,2,4,8,16)",
    )


def _sizes(text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(part) for part in text.split(","))
    except ValueError:
        sizes = ()
    if not sizes or min(sizes) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} are no item sizes: expected such as 1,4,8")
    return sizes


def show(item_sizes: tuple[int, ...] = ITEM_SIZES) -> int:
    """Compile, print a line a kernel, and return the exit status: 1 where nothing can be kept.

    It prints without rich: where images are built, nothing but arraybridge need be installed.
    """
    print(f"kernels in {cache.folder()}:", flush=True)
    missing = 0
    for name, made in kernels(item_sizes):
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
        why = cache.problem()
        print(
            f"{missing} kernels could not be written to {cache.folder()}{f': {why}' if why else ''}"
        )
    return 1 if missing else 0
