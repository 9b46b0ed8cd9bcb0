"""Sums of complex infinities, and comparisons with any integer, on every library."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

from arraybridge.xp.corrections import COMPARISONS
from tests.support.namespaces import each_library, namespaces

pytestmark = pytest.mark.usefixtures("x64")


@each_library
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_complex_infinities_are_summed_by_parts(dtype, library):
    """As NumPy's: of arrays, conjugates, real arrays and scalars on either side, and in place."""
    parts = (0.0, -0.0, 1.5, np.inf, -np.inf, np.nan)
    numbers = np.array([complex(re, im) for re in parts for im in parts], dtype)
    x, y = np.repeat(numbers, len(numbers)), np.tile(numbers, len(numbers))
    for wrapped in namespaces(library):
        for name, op in (("add", operator.add), ("subtract", operator.sub)):
            function = getattr(wrapped.xp, name)
            pairs = [(x, y), (x, y.real), (x.real, y), (x[:, None][:9], y[::7])]
            for number in (2, 2.0, np.inf, -np.inf, complex(np.inf, 1), complex(1, -np.inf), 2j):
                pairs += [(x, number), (number, x), *[(x.real, number), (number, x.real)]]
            for one, two in pairs:
                expected, args = op(one, two), wrapped.taken((one, two))
                np.testing.assert_array_equal(wrapped.left(function(*args)), expected)
                if wrapped is namespaces(library)[0]:
                    np.testing.assert_array_equal(wrapped.left(op(*args)), expected)
            a, b = wrapped.taken((x, y))
            np.testing.assert_array_equal(
                wrapped.left(function(a, wrapped.xp.conj(b))), op(x, np.conj(y))
            )
        steps = wrapped.xp.diff(wrapped.enter(x), prepend=wrapped.enter(y[:1]))
        np.testing.assert_array_equal(wrapped.left(steps), np.diff(x, prepend=y[:1]))


@each_library
@pytest.mark.parametrize("name", COMPARISONS)
def test_a_comparison_with_an_integer_out_of_range_is_by_value(name, library):
    wrapped, native = namespaces(library)
    of_python = COMPARISONS[name]
    for dtype in ("int8", "uint8", "int64", *["bool"] * (library == "torch")):
        x = np.asarray([0, 44, 127], dtype)
        for number in (300, -212, 127, 128, -1, 2**63, 2**64 - 1, -(2**65)):
            if library == "dpnp" and not fits(number, dtype):
                continue  # it raises OverflowError
            right, left = ([of_python(*pair) for pair in pairs] for pairs in sides(x, number))
            array = wrapped.enter(x)
            assert wrapped.left(of_python(array, number)).tolist() == right
            assert wrapped.left(of_python(number, array)).tolist() == left
            for face in (wrapped, native):
                function = face.function(name)
                assert face.left(function(face.enter(x), number)).tolist() == right
                assert face.left(function(number, face.enter(x))).tolist() == left


def fits(number: int, dtype: str) -> bool:
    """Whether a dtype holds an integer."""
    return dtype != "bool" and bool(np.iinfo(dtype).min <= number <= np.iinfo(dtype).max)


def sides(x: np.ndarray, number: int) -> tuple[Any, Any]:
    """The pairs of Python integers that are compared, and the same reflected."""
    pairs = [(element, number) for element in x.tolist()]
    return pairs, [pair[::-1] for pair in pairs]
