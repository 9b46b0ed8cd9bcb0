"""The transaction model of the CUDA kernels over the 26 layouts: what it must say, and the page."""

from __future__ import annotations

import random
from math import prod
from statistics import geometric_mean

import numpy as np
import pytest

from arraybridge import layout
from arraybridge.kernels.cuda.tuning import CHOICES, DEFAULT
from benchmarks.layouts import LAYOUTS, Layout
from tests.simt import model
from tests.simt.model import SECTOR, Nest, looked_at

#: Sectors needed over sectors moved, where the layout does not allow 0.99: rows that begin
#: anywhere, so that those of two blocks share sectors; and a source of one row, which every block
#: reads again.
LEAST = {
    "transpose, odd sizes": 0.85,
    "three axes reversed": 0.85,
    "six axes, odd": 0.74,
    "rows broadcast": 0.49,
}
#: Passes of shared memory over the fewest.
CONFLICTS = {"tile": 1.0, "plain": 1.0, "merge": 1.0, "box": 2.7}

each_layout = pytest.mark.parametrize("entry", LAYOUTS, ids=lambda entry: entry.name)


def on_page(entry: Layout) -> str:
    """The line of a layout in benchmarks/results/cuda_model.md."""
    lines = model.PAGE.read_text().splitlines()
    return next(line for line in lines if line.startswith(f"| {entry.name} |"))


@each_layout
def test_layout(entry: Layout) -> None:
    """Sectors, conflicts, and never behind an elementwise kernel; the page says the same."""
    seen = looked_at(entry)
    assert seen.own.sectors >= LEAST.get(entry.name, 0.99)
    assert seen.own.conflicts <= CONFLICTS.get(seen.made.kernel, 0) + 0.005
    assert seen.own.seconds <= seen.other.seconds * 1.001
    line = on_page(entry)
    told = model.table([model.row(entry, line.split(" | ")[5])]).splitlines()[-1]
    assert told == line, "run python -m tests.simt.model --write"


@each_layout
def test_variants_move_no_more(entry: Layout) -> None:
    """Sectors and conflicts of what a device's tuning may choose instead."""
    nest, today = model.of_layout(entry), looked_at(entry)
    for field, choices in CHOICES.items():
        for choice in choices[1:]:
            plan, dst, src = model.plan_of(nest, DEFAULT._replace(**{field: choice}))
            if plan == today.made:
                continue
            own = model.estimate(nest, plan, dst, src)
            assert own.sectors >= today.own.sectors - 0.005, (field, choice)
            assert own.conflicts <= today.own.conflicts + 0.005, (field, choice)


@pytest.mark.heavy
@each_layout
def test_the_page_whole(entry: Layout) -> None:
    assert model.table([model.row(entry)]).splitlines()[-1] == on_page(entry)


def test_most_layouts_allow_it() -> None:
    assert len(LAYOUTS) - len(LEAST) == 22


@pytest.mark.parametrize("name", [name for name in LEAST if name != "rows broadcast"])
def test_a_wave_of_blocks_shares_sectors(name: str) -> None:
    """What two blocks both touch, L2 has for the second."""
    (entry,) = (entry for entry in LAYOUTS if entry.name == name)
    assert float(model.merged(entry)) >= 0.93


def drawn(number: int) -> Nest:
    """A dense array of 1 to 32 MB, its axes permuted; some turned round, some with a step."""
    rng = random.Random(number)
    itemsize = rng.choice([1, 2, 4, 8, 16])
    sides = [2, 3, 4, 5, 7, 8, 16, 17, 30, 32, 33, 64, 65, 100, 128, 200, 255, 256, 500, 1000]
    shape = [rng.choice(sides) for _ in range(rng.randint(2, 5))]
    while prod(shape) * itemsize < 1 << 20:
        shape[rng.randrange(len(shape))] *= 2
    while prod(shape) * itemsize > 1 << 25:
        shape[shape.index(max(shape))] //= 2
    order = rng.sample(range(len(shape)), len(shape))
    dense = layout.c_strides(tuple(shape[axis] for axis in order), itemsize)
    step = rng.choice([1, 1, 1, 2, 3, 5])
    strides = [dense[order.index(axis)] * step for axis in range(len(shape))]
    if rng.random() < 0.25:
        strides[rng.randrange(len(shape))] *= -1
    low, _ = layout.span(tuple(shape), tuple(strides), itemsize)
    return Nest(str(number), tuple(shape), tuple(strides), itemsize, -low)


@pytest.mark.parametrize(
    "numbers", [range(20), pytest.param(range(20, 200), marks=pytest.mark.heavy)], ids=len
)
def test_other_nests(numbers: range) -> None:
    """None is behind the elementwise kernel; the rest is as in cuda_model.md."""
    beyond = []
    for nest in map(drawn, numbers):
        made, dst, src = model.plan_of(nest)
        if made.kernel == "memcpy":
            continue
        own = model.estimate(nest, made, dst, src)
        other = model.estimate(nest, *model.elementwise(nest))
        assert own.seconds <= other.seconds * 1.02, nest
        beyond.append(own.seconds / max(own.memory, own.floor))
    assert geometric_mean(beyond) <= 1.02
    assert max(beyond) <= 2.0


def test_the_means_of_the_page() -> None:
    assert model.summary() in model.PAGE.read_text()


@pytest.mark.parametrize(
    ("shape", "view"),
    [
        ((40, 50), lambda x: x),
        ((40, 53), lambda x: x[:, 5:-9]),
        ((40, 53), lambda x: x[::-3, ::2].T),
        ((40, 99), lambda x: x[:, ::9]),
        ((40, 53, 3), lambda x: x[..., 1]),
        ((7, 1), lambda x: np.broadcast_to(x, (7, 30))),
        ((60, 9), lambda x: x[:, ::8]),
    ],
)
@pytest.mark.parametrize("dtype", ["u1", "f4", "c16"])
def test_sectors_needed(dtype: str, shape: tuple[int, ...], view) -> None:
    """The formula against marks in memory."""
    base = np.zeros(shape, dtype)
    seen = view(base)
    nest = Nest("", seen.shape, seen.strides, seen.itemsize, seen.ctypes.data - base.ctypes.data)
    places = np.indices(seen.shape).reshape(seen.ndim, -1)
    first = nest.start + np.array(nest.strides) @ places
    bytes_ = (first[:, None] + np.arange(nest.itemsize)).ravel()
    assert model.needed(nest) == np.unique(bytes_ // SECTOR).size
