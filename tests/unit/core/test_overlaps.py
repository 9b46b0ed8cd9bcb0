"""Sources and destinations in one piece of memory: as if the source were copied first."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import arraybridge as ab
from arraybridge.kernels.cpu import SMALL
from tests.support.optional import optional

torch = optional("torch")

Index = tuple[Any, ...]
#: name: one more array of a library over memory that a NumPy array holds.
OVER: dict[str, Callable[[np.ndarray], Any]] = {
    "numpy": lambda memory: memory[...],
    "torch": torch.from_numpy,
}


@st.composite
def pairs(draw, backwards: bool = True, repeated: bool = False) -> tuple[Any, Index, Index]:
    """Draw a shape, and two indices of it that choose as many elements along each of some axes.

    `repeated`: the second one may lack the first of these axes.
    """
    shape = draw(st.sampled_from([(9,), (5, 6), (6, 6), (3, 4, 5), (2, 3, 2, 4)]))
    indices: list[list[Any]] = [[draw(st.integers(0, n - 1)) for n in shape] for _ in "io"]
    count = draw(st.integers(1, len(shape)))
    axes = [sorted(draw(st.permutations(range(len(shape))))[:count]) for _ in indices]
    for number, sides in enumerate(zip(*axes, strict=True)):
        taken = draw(st.integers(1, min(shape[axis] for axis in sides)))
        for index, axis in zip(indices, sides, strict=True):
            if not (repeated and number == 0 and index is indices[1] and draw(st.booleans())):
                index[axis] = draw(st.sampled_from(slices(shape[axis], taken, backwards)))
    return shape, tuple(indices[0]), tuple(indices[1])


def slices(extent: int, taken: int, backwards: bool) -> list[slice]:
    """Every slice that takes so many of some elements, in steps of at most 3."""
    steps = (1, 2, 3, -1, -2, -3) if backwards else (1, 2, 3)
    ends = [(start, start + taken * step, step) for start in range(extent) for step in steps]
    return [
        slice(start, stop if stop >= 0 else None, step)
        for start, stop, step in ends
        if 0 <= stop - step < extent
    ]


def filled(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(1.0, np.prod(shape) + 1).reshape(shape)


class TestCopies:
    @pytest.mark.parametrize("copy", [ab.copyto, lambda out, x: ab.contiguous(x, out=out)])
    @pytest.mark.parametrize("source", OVER)
    @pytest.mark.parametrize("target", OVER)
    def test_small(self, target: str, source: str, copy) -> None:
        numpy = target == source == "numpy"

        @settings(max_examples=300 if numpy else 100, deadline=None)
        @given(pairs(backwards=numpy))
        def check(drawn):
            shape, into, of = drawn
            memory, expected = filled(shape), filled(shape)
            expected[into] = expected[of].copy()
            copy(OVER[target](memory)[into], OVER[source](memory)[of])
            assert (memory == expected).all()

        check()

    def test_rows_and_columns_of_any_extent(self) -> None:
        """NumPy's own copy of overlapping rows of other strides is wrong."""
        for n in (2, 3, 5, 40):
            for row in range(n):
                for column in range(n):
                    memory, expected = filled((n, n)), filled((n, n))
                    expected[row] = expected[:, column].copy()
                    ab.copyto(memory[row], memory[:, column])
                    assert (memory == expected).all()

    @pytest.mark.parametrize("n", [SMALL // 2, SMALL * 2])
    def test_large(self, n: int) -> None:
        for into, of in (
            (slice(0, n), slice(0, 2 * n, 2)),
            (slice(n // 2, n // 2 + n), slice(0, 2 * n, 2)),
            (slice(0, 2 * n, 2), slice(n // 3, n // 3 + n)),
            (slice(n - 1, None, -1), slice(0, 2 * n, 2)),
        ):
            memory, expected = filled((2 * n,)), filled((2 * n,))
            expected[into] = expected[of].copy()
            ab.copyto(memory[into], memory[of])
            assert (memory == expected).all()


@pytest.mark.parametrize("n", [10, SMALL * 2])
@pytest.mark.parametrize("make", [np.asarray, torch.from_numpy])
def test_windows_are_refused(n: int, make) -> None:
    memory = np.zeros(n)
    windows = np.lib.stride_tricks.sliding_window_view(memory, 3, writeable=True)
    x = np.ones(windows.shape)
    for write in (ab.copyto, lambda out, x: ab.contiguous(x, out=out)):
        with pytest.raises(ab.ConversionError, match="share memory"):
            write(make(windows), x)
    assert not memory.any()


#: Arrays of a library, of one and the same Array or of two over its memory.
ARRAYS = [*product(OVER, (False, True))]


class TestArrays:
    """``x[...] = `` and ``x[...] += ``, of one Array and of two over the same memory."""

    def arrays(self, library: str, shape: tuple[int, ...], two: bool) -> tuple[Any, Any, Any]:
        """An Array, another or the same over its memory, and how to look at that."""
        memory = filled(shape)
        if library in OVER:
            x = ab.from_dlpack(OVER[library](memory))
            return x, ab.from_dlpack(OVER[library](memory)) if two else x, lambda: memory
        x = ab.from_dlpack(jax.numpy.asarray(memory.astype("f4")))
        return x, x, lambda: np.asarray(ab.convert(x, "numpy"))

    @pytest.mark.parametrize("in_place", [False, True])
    @pytest.mark.parametrize(("library", "two"), [*ARRAYS, ("jax", False)])
    def test_slices(self, library: str, two: bool, in_place: bool) -> None:
        @settings(max_examples=10 if library == "jax" else 100, deadline=None)
        @given(pairs(repeated=True))
        def check(drawn):
            shape, into, of = drawn
            x, y, now = self.arrays(library, shape, two)
            expected = filled(shape)
            if in_place:
                expected[into] -= expected[of].copy()
                x[into] -= y[of]
            else:
                expected[into] = expected[of].copy()
                x[into] = y[of]
            assert (now() == expected).all()

        check()

    @pytest.mark.parametrize(("library", "two"), ARRAYS)
    def test_masks_and_index_arrays(self, library: str, two: bool) -> None:
        rng = np.random.default_rng(0)
        for _ in range(300):
            x, y, now = self.arrays(library, (6, 6), two)
            xp = ab.namespace(x)
            expected = filled((6, 6))
            mask = rng.random((6, 6)) < 0.5
            count = int(mask.sum())
            expected[mask] = expected.reshape(-1)[::-1][:count].copy()
            x[xp.asarray(mask)] = xp.reshape(y, (36,), copy=False)[::-1][:count]
            assert (now() == expected).all()
            order = rng.permutation(6)
            expected[order] = expected[::-1].copy()
            x[xp.asarray(order), ...] = y[::-1, :]
            assert (now() == expected).all()

    @pytest.mark.parametrize("library", OVER)
    def test_masks_that_are_written(self, library: str) -> None:
        rng = np.random.default_rng(0)
        for _ in range(200):
            start = rng.random(9) < 0.5
            expected = start.copy()
            expected[start[::-1].copy()] = False
            memory = start.copy()
            x = ab.from_dlpack(OVER[library](memory))
            x[x[::-1]] = False
            assert (np.asarray(ab.convert(x, "numpy")) == expected).all()
