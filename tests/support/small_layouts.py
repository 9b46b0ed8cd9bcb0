"""The 26 layouts of the copy benchmarks, so small that they can be copied whole in a test."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.layouts import LAYOUTS, Layout, broadcast, permuted

#: The contiguous array of each; large enough for a tile and what is left of one.
SHAPES: dict[str, tuple[int, ...]] = {
    "transpose, 1-byte items": (272, 144),
    "transpose, 2-byte items": (144, 72),
    "transpose, 4-byte items": (96, 72),
    "transpose, 8-byte items": (66, 34),
    "transpose, 16-byte items": (33, 35),
    "transpose, odd sizes": (83, 77),
    "transpose, tall": (136, 64),
    "transpose, wide": (64, 200),
    "NCHW to NHWC": (2, 64, 8, 12),
    "NHWC to NCHW": (2, 8, 12, 64),
    "HWC to CHW, bytes": (16, 40, 3),
    "CHW to HWC, bytes": (3, 16, 40),
    "three axes reversed": (50, 4, 36),
    "first two axes swapped": (12, 10, 65),
    "attention heads": (2, 20, 4, 64),
    "pixel shuffle": (1, 8, 16, 16),
    "six axes, odd": (3, 5, 3, 5, 3, 11),
    "inner slice": (12, 1000),
    "every other row": (20, 256),
    "every other column": (16, 256),
    "one channel of three, bytes": (32, 48, 3),
    "rows flipped": (16, 128),
    "columns flipped": (16, 128),
    "both flipped, transposed": (80, 72),
    "rows broadcast": (256,),
    "columns broadcast": (64, 1),
}

_TO = {"rows broadcast": (40, 256), "columns broadcast": (64, 128)}
_GRID = {"pixel shuffle": (1, 2, 2, 2, 16, 16)}


def small_layouts() -> Iterator[Layout]:
    """Each layout, over a smaller array."""
    for layout in LAYOUTS:
        name, shape = layout.name, SHAPES[layout.name]
        if name in _TO:
            yield broadcast(name, shape, _TO[name], layout.dtype)
        elif name in _GRID:
            yield permuted(name, shape, layout.dtype, layout.axes, _GRID[name])
        else:
            yield layout._replace(shape=shape)
