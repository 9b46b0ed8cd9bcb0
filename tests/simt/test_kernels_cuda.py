"""The CUDA kernels against NumPy, byte for byte, in an interpreter: see `tests.simt`."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given as drawing
from hypothesis import strategies as st

from arraybridge import layout
from arraybridge.kernels.cuda.box_plan import short
from arraybridge.kernels.cuda.family import FAMILY
from arraybridge.kernels.cuda.indices import divide
from arraybridge.kernels.cuda.network import network
from arraybridge.kernels.cuda.plan_types import MAX_PIECES, Plan, division
from arraybridge.kernels.cuda.tile import TILE, TILE_BYTES
from benchmarks.layouts import LAYOUTS
from tests.simt import Endless, launch
from tests.simt.nest import always, copied, planned, plans
from tests.support import guarded
from tests.support.small_layouts import small_layouts
from tests.support.strategies import Layout

#: What the planner may be made to believe, so that small nests take the ways of large ones.
SETTINGS = [
    {},
    {"otherwise": always},  # a box wherever there can be one
    {
        "otherwise": always,
        "_MIN_UNROLLED_PIECES": 0,
    },  # several pieces a thread, in the other kernels
    {"_MAX_TILE_WASTE": 64},  # tiles that hold little
    {"_MAX_TILE_WASTE": 64, "_MIN_UNROLLED_PIECES": 0},  # several pieces a thread
    {"_MAX_TILE_WASTE": 64, "MAX_PIECES": 2048},  # several launches
    {"MAX_UNTILED_BYTES": plans.MAX_UNTILED_BYTES},  # nothing tiled
]
#: Of `guarded`: nests whose destinations nowhere overlap themselves.
FAMILIES = "channels channels network matrix matrix matrix rows gaps windows wide runs".split()
HEAVY = pytest.mark.heavy


def drawn(number: int) -> tuple[Any, ...]:
    """A layout, where both sides start, a device and a setting, of a number alone."""
    rng = guarded.Draw("cuda", number * guarded.BLOCK)
    limit = rng.choice([2048, 8192, 24576])
    given = guarded.FAMILIES[rng.choice(FAMILIES)](rng, limit)
    starts = [rng.choice([0, 0, 0, 16, given.itemsize, rng.randrange(16)]) for _ in "ds"]
    believed = rng.choice(SETTINGS)
    return given, starts, {**believed, "asynchronous": bool(rng.randrange(2))}


def copy_drawn(first: int) -> Iterator[str]:
    """Copy a thousand, from a number on; the kernels."""
    for number in range(first, first + 1000):
        given, starts, believed = drawn(number)
        try:
            yield from (one.kernel for one in copied(*given, *starts, **believed))
        except AssertionError as error:
            error.add_note(f"number {number}: {given}, {starts}, {believed}")
            raise


def drawn_even(number: int) -> tuple[Any, ...]:
    """A layout whose threads' pieces lie along one axis, and as `drawn`; or one that nearly is."""
    rng = guarded.Draw("even", number * guarded.BLOCK)
    kind = rng.choice(["rows", "rows", "fill", "reverse", "channels", "channels", "shift"])
    item = rng.choice([1, 2, 4, 8])
    run = rng.choice([16, 64, 512, 1024] if kind != "shift" else [512, 1024]) * 16 // item
    outer = [rng.choice([1, 2, 3, 4, 8]) for _ in range(3)]
    while prod(outer) * run * item < 32768 and rng.randrange(8):
        outer[rng.randrange(3)] *= 2
    if kind == "channels":
        channels = rng.choice([2, 3, 4])
        shape, apart = (*outer, run, channels), [channels, 0, 1, 2, 3]
    else:
        shape, apart = (*outer, run), [3, 0, 1, 2]
    pad = rng.choice([0, 16, item, 3 * item]) if kind == "shift" else 0
    order = apart[:1] if kind != "channels" else [3]
    rest = [k for k in range(len(shape)) if k not in order]
    while rest:
        order.append(rest.pop(rng.randrange(len(rest))))
    strides, size = [0] * len(shape), item
    for k in order:  # innermost first
        strides[k] = size
        size = size * shape[k] + (pad if k == order[0] else rng.choice([0, 0, 16]))
    if kind == "fill":
        strides[3] = 0
    elif kind == "reverse":
        strides[3] *= -1
    dense = list(layout.c_strides(shape, item))
    if rng.randrange(2):  # rows of the destination with gaps
        dense[:3] = [stride + stride // (16 * item) * 16 for stride in dense[:3]]
    starts = [0, 0] if kind != "shift" else [rng.randrange(16 // item) * item for _ in "ds"]
    return Layout(shape, tuple(dense), tuple(strides), item), starts, {"_MIN_UNROLLED_PIECES": 0}


def copy_even(first: int, count: int) -> Iterator[Plan]:
    for number in range(first, first + count):
        given, starts, believed = drawn_even(number)
        try:
            yield from copied(*given, *starts, **believed)
        except AssertionError as error:
            error.add_note(f"even, number {number}: {given}, {starts}, {believed}")
            raise


TILES = [(width, columns) for width, each in TILE.items() for columns in each]


class TestAgainstNumPy:
    @pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=HEAVY) for n in (1000, 2000))])
    def test_drawn(self, first: int) -> None:
        assert set(copy_drawn(first)) >= {"box", "gather", "rows", "tile"}

    @pytest.mark.parametrize("first", [0, pytest.param(200, marks=HEAVY)])
    def test_pieces_of_a_thread_along_one_axis(self, first: int) -> None:
        found = {(plan.kernel, *plan.constants[-1:]) for plan in copy_even(first, 200)}
        assert found >= {
            (kernel, x) for kernel in ("rows", "shift", "merge") for x in (True, False)
        }

    @pytest.mark.parametrize("start", [0, 1, 2, 4, 7, 8])
    @pytest.mark.parametrize("itemsize", range(1, 17))
    def test_every_width_from_every_byte(self, itemsize: int, start: int) -> None:
        rows, cols = 19, 300 // itemsize
        dense = layout.c_strides((rows, cols), itemsize)
        across = layout.f_strides((rows, cols), itemsize)
        for strides in (across, (dense[0] + 1, itemsize), (dense[0], -itemsize), (itemsize, 0)):
            copied((rows, cols), dense, strides, itemsize, start, 7 * start % 16)
            copied((rows, cols), (dense[0] + start, itemsize), strides, itemsize, 0, start)

    @pytest.mark.parametrize(("width", "columns"), TILES)
    def test_tiles_of_every_shape(self, width: int, columns: int) -> None:
        """Whole ones, and parts of them."""
        rows, unit = TILE_BYTES // width // columns, 16 // width
        few = 2 * unit
        for high, wide in ((rows, columns), (2 * rows + unit, columns - unit), (few, 3 * unit)):
            (made,) = copied(
                *((wide, high), (high * width, width), (width, wide * width), width),
                TILE={width: (columns,)}, _MAX_TILE_WASTE=1000,
            )  # fmt: skip
            assert (made.kernel, made.constants[1]) == ("tile", columns)

    @pytest.mark.parametrize("asynchronous", [False, True])
    @pytest.mark.parametrize("width", [4, 8])
    def test_tiles_of_odd_sizes(self, width: int, asynchronous: bool) -> None:
        """Whole ones, and parts of them."""
        (made,) = copied(
            *((261, 133), (133 * width, width), (width, 261 * width), width),
            asynchronous=asynchronous,
        )
        assert made.kernel == "plain"

    @pytest.mark.parametrize(
        ("shape", "dst_strides"), [((7,), (0,)), ((5, 3), (0, 4)), ((5, 4, 100), (400, 0, 4))]
    )
    def test_many_elements_into_one_cell(self, shape, dst_strides) -> None:
        """The last one stays, as NumPy's does; nothing is written twice."""
        for src in (layout.c_strides(shape, 4), layout.f_strides(shape, 4)):
            copied(shape, dst_strides, src, 4)


def of_view(base: np.ndarray, view: np.ndarray) -> tuple[Layout, int]:
    """The copy of a view to a dense array, and **bytes** from the array's to the view's pointer."""
    dense = layout.c_strides(view.shape, view.itemsize)
    start = view.ctypes.data - base.ctypes.data
    return Layout(view.shape, dense, view.strides, view.itemsize), start


def full_size(entry) -> Plan:
    """How one of the 26 layouts is copied."""
    base = np.empty(entry.shape, entry.dtype)
    given, start = of_view(base, entry.view(base))
    (made,), _, _ = planned(*given, 0, start)
    return made


@pytest.mark.parametrize(
    ("entry", "small"), list(zip(LAYOUTS, small_layouts(), strict=True)), ids=lambda x: x.name
)
def test_scaled_down(entry, small) -> None:
    """The kernel that the full size takes, over the whole of a smaller one."""
    base = np.zeros(small.shape, small.dtype)
    given, start = of_view(base, small.view(base))
    low, _ = layout.span(given.shape, given.src_strides, given.itemsize)
    (made,) = copied(*given, 0, start + low, _MAX_TILE_WASTE=64)
    assert made.kernel == full_size(entry).kernel


class TestHuge:
    """More items than 32 bits count: addresses, and bytes that follow from them, of some blocks."""

    @pytest.mark.parametrize(
        ("kernel", "shape", "src_strides", "itemsize"),
        [
            ("gather", (3, 1 << 30), (1 << 36, 64), 1),
            ("tile", (1 << 16, 3 << 14), (1, 1 << 16), 1),
            ("tile", (3, 1 << 14, 1 << 14), (1 << 32, 4, 1 << 17), 4),
            ("plain", (25001, 25001), (4, 100004), 4),
            ("box", (50001, 50001), (1, 50001), 1),
            ("rows", (5, 1 << 23, 64), (64, 320, 1), 1),
            ("shift", (1 << 20, 1 << 12), (1 << 12, -1), 1),
            ("shift", (1 << 20, 4099), (4100, 1), 1),
            ("split", (3, 1 << 30), (1, 3), 1),
            ("merge", (1 << 30, 3), (1, 1 << 30), 1),
        ],
    )
    def test_sampled(self, kernel, shape, src_strides, itemsize) -> None:
        memory = Endless(shape, src_strides, itemsize)
        dense = layout.c_strides(shape, itemsize)
        made, dst, src = planned(shape, dense, src_strides, itemsize, memory.dst, memory.src)
        assert len(made) > 1
        random = np.random.default_rng(0)
        for one in made:
            assert one.kernel == kernel
            assert all(extent <= MAX_PIECES for extent in one.extents)
            chosen = {0, one.grid - 1, *random.integers(0, one.grid, 3).tolist()}
            factory = FAMILY[kernel].factory
            launch(one, factory, dst, src, memory, blocks=sorted(chosen))
        memory.check()
        stored = np.concatenate(memory.stored)
        assert (stored.min(), stored.max()) == (0, itemsize * prod(shape) - 1)


# The numbers of plans.

PLAIN = SimpleNamespace(
    i32=int, u32=lambda x: x & 0xFFFFFFFF, mulhi=lambda a, b: a * b >> 32,
    shr=lambda a, count: a >> count, device=lambda function: function,
)  # fmt: skip


@drawing(st.integers(1, 2**31 - 1), st.integers(0, 2**31 - 1))
def test_division(divisor, number):
    m, s = division(divisor)
    assert 0 <= m < 2**32
    for n in {number, number // divisor * divisor, max(0, number // divisor * divisor - 1)}:
        assert divide(PLAIN)(n, m, s) == n // divisor


def test_short_divisions():
    for divisor in (*range(1, 70), 257, 4095, 16384, 70000):
        for most in (1, 63, 2560, 16384, 32767):
            m, s = short(divisor, most)
            assert most * m < 2**32
            assert 0 <= s < 32
            n = np.arange(most + 1)
            assert (n * m >> s == n // divisor).all()


@drawing(st.lists(st.integers(0, 47), min_size=4, max_size=32).filter(lambda x: len(x) % 4 == 0))
def test_network(table):
    source = np.random.default_rng(0).permutation(48).tolist()
    result = []
    for first, steps in network(tuple(table)):
        value = source[4 * first : 4 * first + 4]
        for word, selector in steps:
            both = value + source[4 * word : 4 * word + 4]
            value = [both[selector >> 4 * n & 7] for n in range(4)]
        result += value
    assert result == [source[byte] for byte in table]
