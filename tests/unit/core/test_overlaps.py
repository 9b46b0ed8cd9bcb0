"""Sources and destinations in one piece of memory: as if the source were copied first."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import array_api_strict
import jax
import numpy as np
import pytest

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


def slices_of(rng: random.Random, shape: tuple[int, ...], *, backwards: bool) -> Index:
    """Draw an index of integers and slices."""
    parts: list[Any] = []
    for extent in shape:
        if rng.random() < 0.3:
            parts.append(rng.randrange(extent))
            continue
        start, stop = sorted(rng.sample(range(extent + 1), 2))
        step = rng.choice([1, 1, 1, 2, 3])
        part = slice(start, stop, step)
        if backwards and rng.random() < 0.3:
            part = slice(stop - 1, start - 1 if start else None, -step)
        parts.append(part)
    return tuple(parts)


def pairs(seed: int, count: int, *, backwards: bool = True) -> Iterator[tuple[Any, Index, Index]]:
    """Draw shapes, and two indices of each, of which the second's axes may be turned round.

    Both choose as many elements, or the second one's are repeated along the first axis.
    """
    rng = random.Random(seed)
    while count:
        shape = rng.choice([(9,), (5, 6), (6, 6), (3, 4, 5), (2, 3, 2, 4)])
        places = np.arange(np.prod(shape)).reshape(shape)
        into, of = (slices_of(rng, shape, backwards=backwards) for _ in range(2))
        left, right = places[into], places[of]
        if left.ndim and right.ndim and rng.random() < 0.6:  # trimmed to the same extents
            if left.ndim != right.ndim:
                continue
            into, of = (trimmed(places, index, left.shape, right.shape) for index in (into, of))
            left, right = places[into], places[of]
        if not left.ndim or right.shape not in (left.shape, left.shape[1:]):
            continue
        count -= 1
        yield shape, into, of


def trimmed(places: np.ndarray, index: Index, *shapes: tuple[int, ...]) -> Index:
    """The index with its slices cut to the lesser extents of the shapes."""
    least = iter(np.minimum(*shapes).tolist())
    parts = []
    for part, extent in zip(index, places.shape, strict=True):
        if isinstance(part, slice):
            taken = range(extent)[part][: next(least)]
            stop = min(taken.stop, extent) if taken.stop >= 0 else None
            part = slice(taken.start, stop, taken.step)
        parts.append(part)
    return tuple(parts)


def filled(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(1.0, np.prod(shape) + 1).reshape(shape)


class TestCopies:
    @pytest.mark.parametrize("copy", [ab.copyto, lambda out, x: ab.contiguous(x, out=out)])
    @pytest.mark.parametrize("source", OVER)
    @pytest.mark.parametrize("target", OVER)
    def test_small(self, target: str, source: str, copy) -> None:
        backwards = target == source == "numpy"
        for shape, into, of in pairs(1, 4000 if backwards else 400, backwards=backwards):
            memory, expected = filled(shape), filled(shape)
            value = expected[of].copy()
            if value.shape != expected[into].shape:
                continue  # nothing is broadcast
            expected[into] = value
            copy(OVER[target](memory)[into], OVER[source](memory)[of])
            assert (memory == expected).all(), (shape, into, of)

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


class TestDestinationsThatOverlapThemselves:
    @pytest.mark.parametrize("n", [10, SMALL * 2])
    @pytest.mark.parametrize("make", [np.asarray, torch.from_numpy])
    def test_windows_are_refused(self, n: int, make) -> None:
        memory = np.zeros(n)
        windows = np.lib.stride_tricks.sliding_window_view(memory, 3, writeable=True)
        x = np.ones(windows.shape)
        for write in (ab.copyto, lambda out, x: ab.contiguous(x, out=out)):
            with pytest.raises(ab.ConversionError, match="share memory"):
                write(make(windows), x)
        assert not memory.any()


#: Arrays of a library, of one and the same Array or of two over its memory.
ARRAYS = [*product(OVER, (False, True)), ("array_api_strict", False)]


class TestArrays:
    """``x[...] = `` and ``x[...] += ``, of one Array and of two over the same memory."""

    def arrays(self, library: str, shape: tuple[int, ...], two: bool) -> tuple[Any, Any, Any]:
        """An Array, another or the same over its memory, and how to look at that."""
        memory = filled(shape)
        if library in OVER:
            x = ab.from_dlpack(OVER[library](memory))
            return x, ab.from_dlpack(OVER[library](memory)) if two else x, lambda: memory
        make = {"jax": jax.numpy.asarray, "array_api_strict": array_api_strict.asarray}[library]
        x = ab.from_dlpack(make(memory.astype("f4") if library == "jax" else memory))
        return x, x, lambda: np.asarray(ab.convert(x, "numpy"))

    @pytest.mark.parametrize("in_place", [False, True])
    @pytest.mark.parametrize(("library", "two"), [*ARRAYS, ("jax", False)])
    def test_slices(self, library: str, two: bool, in_place: bool) -> None:
        count = {"jax": 10, "numpy": 2000}.get(library, 1000)
        for shape, into, of in pairs(2 + in_place, count // (1 + in_place)):
            x, y, now = self.arrays(library, shape, two)
            expected = filled(shape)
            if in_place:
                expected[into] -= expected[of].copy()
                x[into] -= y[of]
            else:
                expected[into] = expected[of].copy()
                x[into] = y[of]
            assert (now() == expected).all(), (shape, into, of)

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
            if library != "array_api_strict":  # which has no such __setitem__
                order = rng.permutation(6)
                expected[order] = expected[::-1].copy()
                x[xp.asarray(order), ...] = y[::-1, :]
                assert (now() == expected).all()

    @pytest.mark.parametrize("library", ["numpy", "torch", "array_api_strict"])
    def test_masks_that_are_written(self, library: str) -> None:
        rng = np.random.default_rng(0)
        for _ in range(200):
            start = rng.random(9) < 0.5
            expected = start.copy()
            expected[start[::-1].copy()] = False
            memory = start.copy()
            make = {"array_api_strict": array_api_strict.asarray, **OVER}[library]
            x = ab.from_dlpack(make(memory))
            x[x[::-1]] = False
            assert (np.asarray(ab.convert(x, "numpy")) == expected).all()
