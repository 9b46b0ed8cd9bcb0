"""What the tests of the CUDA kernels reach: every kernel, and every statement of them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise

import pytest

from arraybridge import layout
from arraybridge.kernels.cuda import indices
from arraybridge.kernels.cuda.family import FAMILY
from tests.simt import Endless, interpreter, launch
from tests.simt.nest import always, copied, planned

#: Copies, and **bytes** from a multiple of 256 to either side: drawn ones that
#: reached a statement first, and what is not drawn.
CASES = [
    (((1, 232), (464, 2), (2, 22), 2), 0, 4),
    (((127, 2), (2, 1), (1, 127), 1), 0, 13),
    (((2, 2, 408, 3), (18096, 9024, 22, 2), (4928, 2464, 2, 816), 2), 0, 0),
    (((2, 3, 3, 3, 2, 2, 2, 2), (20, 1440, -240, 40, 120, 720, -5, 10),
      (180, 60, 360, 20, 10, 5, 2160, 1080), 5), 0, 0),
    (((2, 4, 240, 4), (53760, 13440, 56, 2), (7696, 1920, 2, 480), 2), 0, 0),
    (((2, 416, 4), (21648, 52, 1), (1664, 1, 416), 1), 0, 0),
    (((3, 544), (544, 1), (1, 52), 1), 0, 0),
    (((4, 2, 2, 432), (1728, 864, 432, 1), (17392, 8688, -1, -20), 1), 0, 0),
    (((4, 246, 2), (1000, 4, 2), (990, -2, 494), 2), 7, 4),
    (((4, 4, 2, 80), (640, 160, 80, 1), (1024, 256, -1, 3), 1), 3, 0),
    (((4, 44), (176, 4), (4, 32), 4), 0, 0),
    (((5, 6, 3, 20), (2880, 480, 160, 8), (1008, 168, 0, -8), 8), 9, 0),
    (((1, 64), (512, 8), (8, 48), 8), 0, 0),
    (((32, 4), (8, 2), (2, 64), 2), 0, 0),
    (((4, 4, 704, 3), (8448, 2112, 3, 1), (8496, 2112, 1, 704), 1), 0, 0),
    (((64, 2), (2, 1), (1, 64), 1), 0, 0),
    (((64, 3), (3, 1), (1, 64), 1), 0, 0),
    (((1, 1, 55, 60), (26400, 26400, 480, 8), (28811, -28803, 8, 480), 8), 0, 0),
    (((2, 64, 72), (18480, 288, 4), (18432, 4, 256), 4), 0, 4),
    (((37,), (16,), (0,), 16), 0, 0),
    (((4, 128), (1040, 8), (1040, -8), 8), 0, 0),
    (((80,), (16,), (-16,), 16), 0, 16),
    (((90,), (8,), (0,), 8), 0, 8),
    (((3, 5, 5, 80), (2900, 580, 96, 1), (-2900, 580, 0, 1), 1), 15, 0),
    (((3, 4, 4, 145), (4962, 1240, 306, 2), (0, 3752, 934, -2), 2), 0, 0),
    (((3, 4, 4, 145), (4976, 1240, 306, 2), (0, 0, 306, 2), 2), 0, 0),
    (((5, 3, 259), (3108, 1036, 4), (3172, 1052, 0), 4), 4, 0),
    (((5, 6, 2, 152), (1824, 304, 152, 1), (2051, 341, 168, 0), 1), 0, 0),
    (((5, 6, 2, 152), (1824, 304, 152, 1), (2051, 341, 168, 0), 1), 0, 0),
    (((1, 280), (560, 2), (2, 8), 2), 0, 0),
    (((2, 114), (912, 8), (8, 16), 8), 0, 0),
    (((2, 114), (912, 8), (8, 32), 8), 0, 0),
    (((3, 3, 1, 184), (2208, 736, 736, 4), (6768, 2256, 4, 12), 4), 0, 0),
    (((4, 8), (64, 8), (8, 32), 8), 0, 0),
    (((1, 2, 26, 40), (16640, 8320, 320, 8), (-16736, 8368, 8, 208), 8), 16, 0),
    (((128, 128), (128, 1), (1, 144), 1), 0, 0),
    (((2, 2, 96, 96), (18464, 9232, 96, 1), (21536, 10768, 1, 112), 1), 0, 0),
    (((25, 22), (352, 16), (16, -400), 16), 16, 0),
    (((25, 25), (400, 16), (16, -400), 16), 16, 0),
    (((80, 80), (368, 4), (4, 320), 4), 0, 0),
    (((96, 96), (192, 2), (2, 192), 2), 16, 0),
    (((5, 6, 2, 16), (3365, 560, 272, 16), (1648, -272, 8240, 16), 16), 0, 0),
    (((57,), (4,), (-4,), 4), 0, 12),
    (((3, 2, 3, 2, 2, 2, 2, 2), (1536, -768, 256, -128, 64, 32, 16, 8),
      (96, 8, 16, 48, 576, 2304, 288, 1152), 8), 0, 0),
    (((150, 261), (262, 1), (1, 151), 1), 3, 5),
    (((2, 131, 135), (35370, 270, 2), (2, 548, 4), 2), 2, 6),
    (((131, 135), (270, 2), (2, 262), 2), 2, 6),
    (((5, 48), (384, 8), (8, 0), 8), 0, 0),
    (((5, 48), (768, 16), (16, 0), 16), 0, 0),
    (((5, 48), (192, 4), (4, 0), 4), 0, 0),
    (((5, 48), (96, 2), (2, 0), 2), 0, 0),
]  # fmt: skip
#: Lines of a box so far apart that 32 bits do not hold the distance; shape, source, item size.
FAR = [
    ((16, 16, 16), (4, 1 << 30, 64 << 30), 4),
    ((8, 8, 8, 4), (4, 1 << 30, 10 << 30, 100 << 30), 4),
]


@pytest.fixture(scope="module")
def reached() -> Iterator[set[str]]:
    """The kernels of the cases of this file, and where statements run, as the interpreter says."""
    before = set(interpreter.REACHED)
    interpreter.REACHED.clear()
    kernels: set[str] = set()
    for given, dst_start, src_start in CASES:
        for settings in ({}, {"otherwise": always}, {"_MANY": 0, "_WASTE": 64}):
            made = copied(*given, dst_start, src_start, **settings)
            kernels.update(one.kernel for one in made)
    for shape, src_strides, itemsize in FAR:
        memory = Endless(shape, src_strides, itemsize)
        dense = layout.c_strides(shape, itemsize)
        (made,), dst, src = planned(
            shape, dense, src_strides, itemsize, memory.dst, memory.src, otherwise=always
        )
        launch(made, FAMILY[made.kernel].factory, dst, src, memory)
        memory.check()
    yield kernels | interpreter.REACHED
    interpreter.REACHED.update(before)


FILES = {import_module(one.factory.__module__).__file__ for one in FAMILY.values()}


def test_every_kernel(reached: set[str]) -> None:
    assert set(FAMILY) <= reached


@pytest.mark.parametrize("file", sorted([*FILES, indices.__file__]), ids=lambda file: file[-12:])
def test_every_statement(file: str, reached: set[str]) -> None:
    """A case that is missing here is a way through a kernel that no test is sure to take."""
    assert interpreter.statements(file) - reached == set()


def test_statements() -> None:
    """The count of them is able to miss one."""
    found = interpreter.statements(indices.__file__)
    assert len(found) == 7
    assert all(line.startswith("indices.py:") for line in found)
    assert all(a != b for a, b in pairwise(sorted(found)))
