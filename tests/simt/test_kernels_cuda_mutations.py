"""The interpreter sees what is wrong with a kernel: each change of the source is caught."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from arraybridge import layout
from arraybridge.kernels.cuda.family import FAMILY
from tests.simt import Endless, launch
from tests.simt.mutation import mutated
from tests.simt.nest import copied, planned
from tests.support.strategies import Layout


def transposed(rows: int, cols: int, itemsize: int) -> Layout:
    return Layout((cols, rows), (rows * itemsize, itemsize), (itemsize, cols * itemsize), itemsize)


class Mutation(NamedTuple):
    """What is wrong, the copy that shows it, and what the interpreter says."""

    what: str
    kernel: str
    old: str
    new: str
    given: Layout
    says: str
    starts: tuple[int, int] = (0, 0)
    module: str = ""
    number: int = 1


ODD = Layout((20, 23, 31), (713, 31, 1), (31, 620, 1), 1)
MUTATIONS = [
    Mutation(
        "no barrier", "tile", "cuda.syncthreads()", "pass",
        transposed(64, 64, 4), "a race",
    ),
    Mutation(
        "no barrier", "plain", "cuda.syncthreads()", "pass",
        transposed(63, 63, 4), "a race", number=3,
    ),
    Mutation(
        "no barrier", "merge", "cuda.syncthreads()", "pass",
        Layout((128, 3), (3, 1), (1, 128), 1), "a race", module="channels",
    ),
    Mutation(
        "wrong swizzle", "tile", "g & 7", "g & 3",
        transposed(128, 128, 1), "are wrong",
    ),
    Mutation(
        "a row too far in shared memory", "plain", "row = (columns + 1) * width",
        "row = (columns - 1) * width", transposed(63, 64, 4), "a race|shared memory are accessed",
    ),
    Mutation(
        "one index too many", "rows", "e < end", "e <= end",
        Layout((3, 70), (64, 1), (80, 1), 1)._replace(shape=(3, 64)), "are read|of no item",
    ),
    Mutation(
        "one store to another's place", "rows", "store(dst + to1, turned(v1))",
        "store(dst + to0, turned(v1))", Layout((5, 64 * 512), (64 * 512, 1), (64 * 520, 1), 1),
        "written before",
    ),
    Mutation(
        "the last vector is whole", "shift", "i32(i + 16) <= length", "i32(i + 15) <= length",
        Layout((3, 495), (500, 1), (517, 1), 1), "of no item",
    ),
    Mutation(
        "one vector more is read", "shift", "aligned + 16 < low + i64(length)",
        "aligned + 16 <= low + i64(length)", Layout((2, 500), (500, 1), (512, 1), 1),
        "are read", (0, 12),
    ),
    Mutation(
        "columns are not counted", "tile", "i32(w * abreast) < live_columns", "w * abreast < 999",
        transposed(128, 80, 1), "of no item|far from",
    ),
    Mutation(
        "all vectors are read", "split", "if fourth:\n    d = load(at + 48)", "d = load(at + 48)",
        Layout((64,), (8,), (32,), 8), "are read", module="channels",
    ),
    Mutation(
        "no barrier", "box", "cuda.syncthreads()", "pass",
        ODD, "a race",
    ),
    Mutation(
        "one vector too many", "box", "(d < length) & (q < total)", "(d <= length) & (q < total)",
        Layout((16, 6, 16), (96, 16, 1), (3, 48, 288), 1), "are read", (0, 2),
    ),
    Mutation(
        "the last unit is whole", "box", "i32(run_items - items)", "i32(run_items - items + 1)",
        ODD, "of no item|two threads|are wrong",
    ),
    Mutation(
        "the first item is left out", "box", "there = e < head", "there = (e > 0) & (e < head)",
        ODD, "never written",
    ),
    Mutation(
        "no barrier", "narrow", "cuda.syncthreads()", "pass",
        transposed(131, 135, 1), "a race", number=3,
    ),
    Mutation(
        "no rows of the tile above", "narrow", "above = items - 1", "above = items - 2",
        transposed(261, 150, 1), "are wrong|shared memory",
    ),
    Mutation(
        "a quotient that is one too large", "tile", "u32(mulhi(u32(n), m) + u32(n))",
        "u32(mulhi(u32(n), m) + u32(n) + 1)", transposed(256, 256, 1), ".", module="indices",
    ),
]  # fmt: skip


def show(one: Mutation, factories: dict) -> None:
    (made,) = copied(*one.given, *one.starts, factories=factories, _MANY=0, _WASTE=64)
    assert made.kernel == one.kernel


@pytest.mark.parametrize("one", MUTATIONS, ids=lambda one: f"{one.kernel}: {one.what}")
def test_caught(one: Mutation) -> None:
    show(one, {})
    same = mutated(one.kernel, one.old, one.old, module=one.module, number=one.number)
    show(one, {one.kernel: same})
    wrong = mutated(one.kernel, one.old, one.new, module=one.module, number=one.number)
    with pytest.raises(AssertionError, match=one.says):
        show(one, {one.kernel: wrong})


def test_an_offset_of_32_bits_is_caught() -> None:
    """One that only a large nest needs 64 bits for."""
    old = "i64(i32(r0 + r)) * steps[0]"
    wrong = mutated("tile", old, "i64(i32(i32(r0 + r) * steps[0]))")
    shape, strides = (128, 1 << 15), (1, 1 << 17)
    memory = Endless(shape, strides, 1)
    dense = layout.c_strides(shape, 1)
    (made,), dst, src = planned(shape, dense, strides, 1, memory.dst, memory.src)
    last = [made.grid - 1]
    launch(made, FAMILY["tile"].factory, dst, src, memory, blocks=last)
    with pytest.raises(AssertionError, match="is no int32"):
        launch(made, wrong, dst, src, memory, blocks=last)


def test_a_text_that_is_gone_is_an_error() -> None:
    with pytest.raises(LookupError, match=r"rows\.py has 0 times, not 1"):
        mutated("rows", "e < the_end", "e <= the_end")
    with pytest.raises(LookupError, match=r"transpose\.py has 3 times, not 1"):
        mutated("plain", "cuda.syncthreads()", "pass")
    with pytest.raises(LookupError, match="tile imports nothing from channels"):
        mutated("tile", "cuda.syncthreads()", "pass", module="channels")
