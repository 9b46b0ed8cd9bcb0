"""Every kernel once or more, on small nests, each compared with NumPy's copy: the program that runs under compute-sanitizer.

python -m benchmarks.gpu.sanitized TIME     no nest is begun after it, in seconds since 1970
"""

from __future__ import annotations

import sys
import time
from typing import Any, NamedTuple

from ..layouts import Layout
from .bare import Bare, copied


class Nest(NamedTuple):
    """A copy: strides in bytes, and where either side starts."""

    name: str
    shape: tuple[int, ...]
    dst: tuple[int, ...]
    src: tuple[int, ...]
    itemsize: int
    to: int = 0
    of: int = 0

    @property
    def plans(self) -> tuple[Any, ...]:
        from arraybridge.kernels import cuda

        return cuda.plans(self.shape, self.dst, self.src, self.itemsize, self._at(self.dst, self.to),
                          self._at(self.src, self.of))  # fmt: skip

    @property
    def kernels(self) -> list[str]:
        return sorted({plan.kernel for plan in self.plans})

    def _at(self, strides: tuple[int, ...], start: int) -> int:
        from arraybridge.layout import span

        return (start - span(self.shape, strides, self.itemsize)[0]) % 16


def permuted(
    name: str, shape: tuple[int, ...], axes: tuple[int, ...], item: int, to: int = 0, of: int = 0
) -> Nest:
    """To C order, of a block in C order whose axes are permuted."""
    from arraybridge.layout import c_strides

    strides, there = c_strides(shape, item), tuple(shape[axis] for axis in axes)
    return Nest(
        name, there, c_strides(there, item), tuple(strides[axis] for axis in axes), item, to, of
    )


NESTS = [
    *(permuted(f"transpose, {w} bytes, aligned", (272, 304), (1, 0), w) for w in (1, 2, 4, 8, 16)),
    *(permuted(f"transpose, {w} bytes, tall", (1024, 64), (1, 0), w) for w in (1, 2, 4, 8, 16)),
    *(permuted(f"transpose, {w} bytes, wide", (48, 1024), (1, 0), w) for w in (1, 2, 4, 8, 16)),
    *(permuted(f"transpose, {w} bytes, odd", (299, 301), (1, 0), w) for w in (1, 2, 4, 8)),
    permuted("transpose, 1 byte, not aligned", (299, 301), (1, 0), 1, 3, 5),
    permuted("transpose, 2 bytes, not aligned", (299, 301), (1, 0), 2, 6, 14),
    permuted("transposes, 1 byte, odd, in a batch", (3, 230, 235), (0, 2, 1), 1),
    Nest("both flipped, transposed, bytes, odd", (301, 299), (299, 1), (-1, -301), 1),
    permuted("transpose, 4 bytes, not aligned", (133, 211), (1, 0), 4, 4, 8),
    permuted("transposes, 4 bytes, in a batch", (3, 96, 160), (0, 2, 1), 4),
    permuted("transpose of 3 bytes", (90, 110), (1, 0), 3),
    permuted("transpose of 32 bytes", (65, 47), (1, 0), 32),
    permuted("pixels to planes", (64, 96, 3), (2, 0, 1), 1),
    permuted("planes to pixels", (3, 64, 96), (1, 2, 0), 1),
    permuted("pixels of 4 channels of 2 bytes", (40, 64, 4), (2, 0, 1), 2),
    permuted("three axes reversed", (50, 44, 36), (2, 1, 0), 4),
    permuted("six axes", (5, 6, 7, 4, 8, 9), (4, 2, 5, 0, 3, 1), 4),
    permuted("six axes of bytes", (5, 6, 7, 4, 8, 9), (4, 2, 5, 0, 3, 1), 1, 3, 5),
    permuted("pixel shuffle", (4, 2, 2, 32, 32), (0, 3, 1, 4, 2), 4),
    permuted("attention heads", (2, 100, 4, 64), (0, 2, 1, 3), 2),
    permuted("runs of odd length", (12, 10, 65), (1, 0, 2), 4),
    Nest("inner slice", (64, 1000), (4000, 4), (4400, 4), 4),
    Nest("inner slice that starts elsewhere", (64, 1000), (4000, 4), (4404, 4), 4, 0, 8),
    Nest("runs of bytes that start anywhere", (64, 1003), (1003, 1), (1111, 1), 1, 3, 9),
    Nest("every other column", (64, 640), (2560, 4), (5120, 8), 4),
    Nest("every third byte", (64, 640), (640, 1), (1920, 3), 1, 0, 1),
    Nest("every fifth", (64, 640), (2560, 4), (12800, 20), 4),
    Nest("rows flipped", (64, 512), (2048, 4), (-2048, 4), 4),
    Nest("columns flipped", (64, 512), (2048, 4), (2048, -4), 4),
    Nest("columns of bytes flipped, not aligned", (64, 515), (515, 1), (520, -1), 1, 1, 2),
    Nest("both flipped, transposed", (272, 304), (1216, 4), (-4, -1088), 4),
    Nest("a value a row", (64, 512), (2048, 4), (4, 0), 4),
    Nest("one row repeated", (64, 512), (2048, 4), (0, 4), 4),
    Nest("destination with gaps", (64, 500), (2560, 4), (2000, 4), 4),
    Nest("both backwards", (64, 512), (-2048, -4), (-2048, -4), 4),
    Nest("few scattered items", (7, 5, 3), (60, 12, 4), (4, 84, 28), 4),
    Nest("contiguous", (64, 512), (2048, 4), (2048, 4), 4),
]


def of_layout(layout: Layout) -> Nest:
    """The copy of a layout to C order."""
    import numpy as np

    from arraybridge.layout import c_strides, span

    base = np.empty(layout.shape, layout.dtype)  # nobody writes it: it takes no memory
    view = layout.view(base)
    low, _ = span(view.shape, view.strides, view.itemsize)
    of = view.ctypes.data + low - base.ctypes.data
    dense = c_strides(view.shape, view.itemsize)
    return Nest(layout.name, view.shape, dense, view.strides, view.itemsize, 0, of % 256)


def main() -> int:
    ends = float(sys.argv[1])
    memory = Bare()
    wrong = 0
    for nest in NESTS:
        if time.time() > ends:
            break
        said = copied(memory, nest)
        wrong += said != "right"
        print(f"{nest.name} | {', '.join(nest.kernels)} | {said}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
