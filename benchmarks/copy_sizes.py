"""Measure copies from 4 KB to 4 MB, and the size from which kernels pay.

python -m benchmarks.copy_sizes        prints the tables; benchmarks.contiguous has them in its own
"""

from __future__ import annotations

import numpy as np
import torch

import arraybridge as ab
from arraybridge.kernels import cpu
from arraybridge.kernels.cpu import strided
from arraybridge.kernels.cpu.plan import plan
from arraybridge.layout import canonical

from .timing import Pair, paired

SIZES = (1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22)

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


def told(pair: Pair) -> str:
    text = f"{pair.peer / pair.ours:.2f}"
    return f"**{text}**" if pair.ours > pair.peer else text


def by_size() -> list[str]:
    """The result allocated inside the call; how many times as fast as NumPy and as PyTorch."""
    heads = [f"{size >> 10} KB" for size in SIZES]
    lines = [
        f"| layout | beside | {' | '.join(heads)} |",
        f"| --- | --- | {' | '.join('---:' for _ in SIZES)} |",
    ]
    for name in VIEWS:
        numpys, torches = [], []
        for size in SIZES:
            x = view_of(name, size)
            ab.contiguous(x)
            numpys.append(
                told(
                    paired(
                        lambda x=x: ab.contiguous(x), lambda x=x: np.ascontiguousarray(x), rounds=9
                    )
                )
            )
            if min(x.strides) < 0:
                torches.append("")
                continue
            t = torch.from_numpy(x)
            torches.append(
                told(paired(lambda t=t: ab.contiguous(t), lambda t=t: t.contiguous(), rounds=9))
            )
        lines.append(f"| {name} | NumPy | {' | '.join(numpys)} |")
        if any(torches):
            lines.append(f"| {name} | PyTorch, on its tensors | {' | '.join(torches)} |")
    return lines


def tiny() -> list[str]:
    """Beside NumPy's own time, whatever the library."""
    lines = [
        "| shape, float32 | NumPy's own, ns | ours on NumPy's | times | PyTorch's own, ns | ours on PyTorch's | times NumPy's own |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for shape in (
        (2, 2),
        (4, 4),
        (3, 4, 5),
        (16, 16),
        (2, 3, 2, 3, 2),
        (64, 64),
        (3, 1000),
        (128, 128),
    ):
        x = np.ones(shape, np.float32).T
        t = torch.from_numpy(x)
        one = paired(lambda x=x: ab.contiguous(x), lambda x=x: np.ascontiguousarray(x), rounds=9)
        two = paired(lambda t=t: ab.contiguous(t), lambda t=t: t.contiguous(), rounds=9)
        lines.append(
            f"| {' x '.join(map(str, shape))} | {one.peer:,.0f} | {one.ours:,.0f} | {one.ratio:.2f} "
            f"| {two.peer:,.0f} | {two.ours:,.0f} | {two.ours / one.peer:.2f} |"
        )
    return lines


def crossover() -> list[str]:
    """From how many bytes the kernel, with all that leads to it, beats NumPy's copy."""
    sizes = [1 << power for power in range(11, 21)]
    lines = [
        f"| transpose of items of | {' | '.join(f'{size >> 10} KB' for size in sizes)} | `SMALL` |",
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
                strided.copy(out.ctypes.data, x.ctypes.data, made)

            kernel()
            pair = paired(kernel, lambda x=x, out=out: np.copyto(out, x), rounds=7)
            ratios.append(f"{pair.peer / pair.ours:.2f}")
        lines.append(
            f"| {itemsize} bytes | {' | '.join(ratios)} | {cpu.SMALL * itemsize >> 10} KB |"
        )
    return lines


def report() -> list[str]:
    return [
        "### 4 KB to 4 MB",
        "",
        "With the result allocated inside the call: the speed relative to the library's own copy (below 1: slower).",
        "",
        *by_size(),
        "",
        "### Small copies",
        "",
        "Nanoseconds per call of `ab.contiguous`; the goal is at most 4 times NumPy's own time.",
        "",
        *tiny(),
        "",
        "### Where kernels begin to pay",
        "",
        "The speed of the kernel relative to `np.copyto`, planning and call included. Up to `SMALL` items NumPy or",
        "PyTorch itself makes the copy, and no compiler is loaded.",
        "",
        *crossover(),
    ]


if __name__ == "__main__":
    print("\n".join(report()))
