"""Measure copies of 4 KB to 4 MB, and from which size a kernel is faster.

python -m benchmarks.copy_sizes            prints the tables
python -m benchmarks.copy_sizes --write    and keeps them in benchmarks/RESULTS.md
"""

from __future__ import annotations

from math import exp, log

import numpy as np
import torch

import arraybridge as ab
from arraybridge.kernels import cpu
from arraybridge.kernels.cpu import copying
from arraybridge.kernels.cpu.plan import plan
from arraybridge.layout import canonical

from .goals import verdict
from .results import command, head
from .timing import paired

SIZES = (1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22)

SHAPES = ((2, 2), (4, 4), (3, 4, 5), (16, 16), (2, 3, 2, 3, 2), (64, 64), (3, 1000), (128, 128))
MEAN, LEAST = 1.5, 0.9  # goals: times the library's own speed
TWO_BY_TWO, SMALL = 2, 4  # goals: times NumPy's own time

#: name -> (dtype, the view of a matrix of that dtype with a given number of bytes)
VIEWS = {
    "transpose, bytes": ("uint8", lambda side: np.ones((side, side), np.uint8).T),
    "transpose, 4-byte items": ("float32", lambda side: np.ones((side, side), np.float32).T),
    "transpose, 8-byte items": ("float64", lambda side: np.ones((side, side), np.float64).T),
    "HWC to CHW, bytes": ("uint8", lambda side: np.ones((side, side // 3 or 1, 3), np.uint8).transpose(2, 0, 1)),
    "columns flipped": ("float32", lambda side: np.ones((side, side), np.float32)[:, ::-1]),
    "inner slice": ("float32", lambda side: np.ones((side, side + 9), np.float32)[:, 4:-5]),
}  # fmt: skip


def view_of(name: str, nbytes: int) -> np.ndarray:
    dtype, view = VIEWS[name]
    return view(max(2, round((nbytes / np.dtype(dtype).itemsize) ** 0.5)))


def times(name: str, size: int, library: str, *, quick: bool) -> float | None:
    """How many times as fast as the library's own copy; None if it has no such view."""
    x = view_of(name, size)
    if library == "NumPy":
        ours, peer = (lambda: ab.contiguous(x)), (lambda: np.ascontiguousarray(x))
    elif min(x.strides) < 0:
        return None
    else:
        t = torch.from_numpy(x)
        ours, peer = (lambda: ab.contiguous(t)), (lambda: t.contiguous())
    ours(), peer()
    pair = paired(ours, peer, rounds=3 if quick else 41, seconds=0.0005 if quick else 0.002)
    return 1 / pair.ratio


def shown(times: float | None) -> str:
    return "" if times is None else f"**{times:.2f}**" if times < 1 else f"{times:.2f}"


def by_size(*, quick: bool) -> list[str]:
    """Speed relative to NumPy and PyTorch, with a result that is allocated in the call and dropped."""
    heads = [f"{size >> 10} KB" for size in SIZES]
    lines = [
        f"| layout | compared with | {' | '.join(heads)} |",
        f"| --- | --- | {' | '.join('---:' for _ in SIZES)} |",
    ]
    every: list[float] = []
    for name in VIEWS:
        for library in ("NumPy", "PyTorch"):
            found = [times(name, size, library, quick=quick) for size in SIZES]
            every += [each for each in found if each is not None]
            if any(found):
                lines.append(f"| {name} | {library} | {' | '.join(map(shown, found))} |")
    mean, least = exp(sum(map(log, every)) / len(every)), min(every)
    kept = "kept" if mean >= MEAN and least >= LEAST else "**missed**"
    return [
        *lines,
        "",
        f"Geometric mean {mean:.2f} (goal: {MEAN}), least {least:.2f} (goal: {LEAST}): {kept}.",
    ]


def tiny(*, quick: bool) -> list[str]:
    """Compare small copies with each library's own; the goal is for NumPy."""
    lines = [
        "| shape, float32 | NumPy, ns | ours | ratio | goal | PyTorch, ns | ours | ratio | |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    rounds, seconds = (3, 0.0005) if quick else (101, 0.001)
    for shape in SHAPES:
        x = np.ones(shape, np.float32).T
        t = torch.from_numpy(x)
        one = paired(lambda x=x: ab.contiguous(x), lambda x=x: np.ascontiguousarray(x), rounds=rounds, seconds=seconds)  # fmt: skip
        two = paired(lambda t=t: ab.contiguous(t), lambda t=t: t.contiguous(), rounds=rounds, seconds=seconds)  # fmt: skip
        goal = TWO_BY_TWO if shape == (2, 2) else SMALL
        lines.append(
            f"| {' x '.join(map(str, shape))} | {one.peer:,.0f} | {one.ours:,.0f} | {one.ratio:.2f} | {goal} "
            f"| {two.peer:,.0f} | {two.ours:,.0f} | {two.ratio:.2f} | {verdict(one.ratio, goal)} |"
        )
    return lines


def crossover(*, quick: bool) -> list[str]:
    """From how many bytes the kernel, with planning and call, is faster than NumPy's copy."""
    sizes = [1 << power for power in range(11, 21)]
    rounds, seconds = (3, 0.0005) if quick else (21, 0.002)
    lines = [
        f"| transpose of elements of | {' | '.join(f'{size >> 10} KB' for size in sizes)} | `SMALL` |",
        f"| --- | {' | '.join('---:' for _ in sizes)} | ---: |",
    ]
    for dtype in ("uint8", "uint16", "float32", "float64", "complex128"):
        ratios = []
        for size in sizes:
            itemsize = np.dtype(dtype).itemsize
            side = max(2, round((size / itemsize) ** 0.5))
            x = np.ones((side, side), dtype).T
            out = np.empty_like(x, order="C")

            def kernel(x=x, out=out):
                made = plan(canonical(x.shape, out.strides, x.strides, x.itemsize))
                copying.copy_planned(out.ctypes.data, x.ctypes.data, made)

            kernel()
            pair = paired(
                kernel, lambda x=x, out=out: np.copyto(out, x), rounds=rounds, seconds=seconds
            )
            ratios.append(f"{pair.peer / pair.ours:.2f}")
        lines.append(
            f"| {itemsize} bytes | {' | '.join(ratios)} | {cpu.SMALL * itemsize >> 10} KB |"
        )
    return lines


def report(*, quick: bool = False) -> str:
    return "\n".join(
        [
            f"Goal: {MEAN} times the library's own speed in the geometric mean, and {LEAST} at least. Small copies: at most {TWO_BY_TWO} times NumPy's own time for 2 x 2 elements,",
            f"{SMALL} times for the others.",
            "",
            "Measured: `ab.contiguous`, in turn with the library's own copy.",
            "",
            head("numpy torch numba"),
            "",
            "### 4 KB to 4 MB",
            "",
            "The speed relative to the library's own copy of its own arrays. The result is allocated in the call.",
            "",
            *by_size(quick=quick),
            "",
            "### Small copies",
            "",
            "Nanoseconds per call.",
            "",
            *tiny(quick=quick),
            "",
            "### When a kernel is faster",
            "",
            "The speed of the kernel relative to `np.copyto`, with planning and call. Up to `SMALL`, NumPy or PyTorch makes the copy, and no",
            "compiler is loaded.",
            "",
            *crossover(quick=quick),
        ]
    )


if __name__ == "__main__":
    command("copy_sizes", __doc__, report)
