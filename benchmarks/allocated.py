"""Compare copies whose result is allocated in the call with the limit and with other libraries.

python -m benchmarks.allocated                     prints the tables
python -m benchmarks.allocated --write             and keeps them in benchmarks/RESULTS.md
python -m benchmarks.allocated --only transpose    only layouts with that word in the name
"""

from __future__ import annotations

import argparse
import ctypes
from collections.abc import Callable

import numpy as np

import arraybridge as ab

from .contest import THREADS, Row, behind, mean, measure, summary, table
from .layouts import LAYOUTS, Layout
from .results import head, write

LIBRARIES = "numpy torch tensorflow-cpu tensorflow numba llvmlite"
LOOP_GOAL = 0.85  # of the limit
PAGE, HUGE_PAGES = 4096, 14  # MADV_HUGEPAGE
FRESH_GOAL = 1.5  # times the copy into pages that are cleared while they are written


class Malloced:
    """Our copy into fresh memory of `malloc`, in huge pages, without the cache of blocks."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None)
        self.malloc, self.release, self.madvise = libc.malloc, libc.free, libc.madvise
        self.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        self.malloc.restype, self.malloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
        self.release.argtypes = (ctypes.c_void_p,)
        self.addresses: list[int] = []

    def contender(self, view: np.ndarray) -> dict[str, Callable]:
        def copy() -> None:
            address = self.malloc(view.nbytes + 64)
            self.addresses.append(address)
            start = -(-address // PAGE) * PAGE
            self.madvise(start, address + view.nbytes - start, HUGE_PAGES)
            memory = (ctypes.c_char * view.nbytes).from_address(-(-address // 64) * 64)
            ab.contiguous(view, out=np.frombuffer(memory, view.dtype).reshape(view.shape))

        return {"malloc": copy}

    def free(self) -> None:
        while self.addresses:
            self.release(self.addresses.pop())


def fresh(layouts: list[Layout], rounds: int) -> list[Row]:
    """Keep every result until all contenders have had their turn; then return the blocks to the system."""
    malloced = Malloced()

    def after() -> None:
        malloced.free()
        ab.empty_block_cache()

    after()
    return measure(layouts, rounds, allocate=True, extra=malloced.contender, after=after)


def loop_verdict(rows: list[Row]) -> str:
    share, lost = mean(row.fraction() for row in rows), behind(rows)
    kept = "kept" if share >= LOOP_GOAL and not lost else "**missed**"
    return f"Goal: {LOOP_GOAL} of the limit, and no layout slower than another library: {kept}."


def fresh_verdict(rows: list[Row]) -> str:
    times = mean(row.seconds["malloc"] / row.seconds["ours"] for row in rows)
    kept = "kept" if times >= FRESH_GOAL else "**missed**"
    return (
        f"Goal: {FRESH_GOAL} times as fast as the same copies into memory of `malloc`, whose pages are cleared while they are written: {times:.2f}, {kept}. "
        f"Those copies reach {mean(row.seconds['limit'] / row.seconds['malloc'] for row in rows):.2f} of the limit."
    )


def converted(rounds: int) -> list[str]:
    """Compare copies by `convert`, dropped at once, with the same by hand."""
    import torch

    x = np.ones((4096, 4096), np.float32)
    t = torch.from_numpy(x)
    fixed = x.view()
    fixed.flags.writeable = False
    columns = Layout("", x.shape, "float32", lambda x: x)
    cases: dict[str, tuple[Callable, str, Callable]] = {
        "NumPy to torch, rows flipped": (lambda: ab.convert(x[::-1], "torch"), "torch.from_numpy(x[::-1].copy())", lambda: torch.from_numpy(x[::-1].copy())),
        "NumPy to torch, read-only": (lambda: ab.convert(fixed, "torch"), "torch.from_numpy(x.copy())", lambda: torch.from_numpy(fixed.copy())),
        "NumPy to torch, transposed, copy=True": (lambda: ab.convert(x.T, "torch", copy=True), "torch.from_numpy(x.T.copy())", lambda: torch.from_numpy(x.T.copy())),
        "torch to NumPy, copy=True": (lambda: ab.convert(t, "numpy", copy=True), "tensor.clone().numpy()", lambda: t.clone().numpy()),
        "torch to torch, transposed, copy=True": (lambda: ab.convert(t.T, "torch", copy=True), "tensor.T.contiguous()", lambda: t.T.contiguous()),
    }  # fmt: skip
    lines = [
        "| copy of 64 MB by `convert` | of the limit | compared with | its share | times |",
        "| --- | ---: | --- | ---: | ---: |",
    ]
    for what, (ours, name, peer) in cases.items():
        (row,) = measure(
            [columns],
            rounds,
            allocate=True,
            extra=lambda _, ours=ours, peer=peer: {"convert": ours, "hand": peer},
        )
        took, limit = row.seconds, row.seconds["limit"]
        times = took["hand"] / took["convert"]
        speed = f"**{times:.2f}**" if times < 1 else f"{times:.2f}"
        lines.append(
            f"| {what} | {limit / took['convert']:.2f} | `{name}` | {limit / took['hand']:.2f} | {speed} |"
        )
    return lines


def report(*, only: str = "", rounds: int = 7) -> str:
    layouts = [layout for layout in LAYOUTS if only in layout.name]
    dropped = measure(layouts, rounds, allocate=True)
    kept = fresh(layouts, rounds)
    lines = [
        f"Goal: {LOOP_GOAL} of the limit if results are dropped, {FRESH_GOAL} times the copy into memory of `malloc` if they are kept; see each table.",
        "",
        "Measured: the same copies with a result allocated in the call. The limit is still the copy into a given buffer. The other libraries get fresh memory",
        f"from the operating system for every result, and return it. Medians of {rounds} turns.",
        "",
        head(LIBRARIES, f"{THREADS} threads"),
        "",
        "### Dropped in a loop",
        "",
        f"Each result is dropped before the next is made. {loop_verdict(dropped)}",
        "",
        *table(dropped),
        *summary(dropped),
        "",
        "### A single fresh result",
        "",
        f"All results of a turn are kept, and no block is used again. {fresh_verdict(kept)}",
        "",
        *table(kept),
        *summary(kept),
    ]
    if not only:
        lines += ["", "### Copies that `convert` makes", "", *converted(rounds)]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="keep the result in RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="three layouts, to try it")
    parser.add_argument("--only", default="", metavar="WORD", help="layouts with WORD in the name")
    parser.add_argument("--rounds", type=int, default=7, help="turns of ours and the limit")
    arguments = parser.parse_args()
    only = arguments.only or ("flipped" if arguments.quick else "")
    text = report(only=only, rounds=arguments.rounds)
    print(text)
    if arguments.write:
        write(text, "allocated: `python -m benchmarks.allocated`")


if __name__ == "__main__":
    main()
