"""In-place operators: what fails, or overlaps, never leaves half of a result in the array."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import arraybridge as ab
from tests.support.namespaces import each_library, namespaces


def misaligned(size: int) -> np.ndarray:
    """Integers of which NumPy must buffer every part: their addresses are odd."""
    memory = np.zeros(8 * size + 1, np.uint8)
    x = memory[1:].view("i8")
    x[:] = np.arange(size) % 7 + 2
    x[size // 2] = -3
    assert not x.flags.aligned
    return x


@pytest.mark.parametrize("size", [3, 100, 20_000])
def test_negative_powers_of_misaligned_integers(size: int) -> None:
    """NumPy's ValueError, and the elements as they were: none of memory that nobody wrote."""
    x = misaligned(size)
    before = x.copy()
    array = ab.from_dlpack(x)
    with pytest.raises(ValueError, match="negative integer powers"):
        array **= array
    np.testing.assert_array_equal(x, before)
    with pytest.raises(ValueError, match="negative integer powers"):
        array**array
    shifted = ab.from_dlpack(misaligned(size)[1:])
    with pytest.raises(ValueError, match="negative integer powers"):
        shifted **= ab.from_dlpack(x[:-1])


@each_library
def test_what_does_not_fit_leaves_the_array(library: str) -> None:
    enter = namespaces(library)[0].enter
    for op, right, error in (
        (operator.iadd, np.ones((2, 3), "f4"), ValueError),
        (operator.iadd, np.ones(3, "c8"), TypeError),
        (operator.imul, np.ones(4, "f4"), Exception),
    ):
        x = enter(np.arange(3, dtype="f4"))
        with pytest.raises(error):
            op(x, enter(right))
        assert np.asarray(ab.convert(x, "numpy", device="cpu")).tolist() == [0, 1, 2]
