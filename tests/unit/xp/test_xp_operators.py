"""Operators and indexing of Arrays against NumPy's, on every library."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arraybridge.array.operators import OPERATORS
from arraybridge.xp.corrections import COMPARISONS
from tests.support import checks
from tests.support.functions import TABLE
from tests.support.namespaces import Namespace, each_library, namespaces
from tests.support.recipes import Call, Pick, values
from tests.unit.xp.test_xp_functions import EXAMPLES, INTEGRAL

pytestmark = pytest.mark.usefixtures("x64")

SQUARES = ((2, 3), (3, 3))


@each_library
@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.name)
def test_every_form(op, library):
    """Plain, reflected and in place; the right operands of each being those of the function."""
    row = TABLE[op.function]
    namespace, _ = namespaces(library)
    kinds = [row.kinds] + ["integral"] * (library == "torch" and row.name in INTEGRAL)

    @settings(max_examples=EXAMPLES.get(library, 5) * len(kinds), deadline=None)
    @given(st.data())
    def agrees(data):
        pick = Pick(data.draw, data.draw(st.sampled_from(kinds)), few=library == "jax")
        call = row.recipe(pick)
        expected = np.asarray(row.expected(call))
        args = namespace.taken(call.args)
        check(namespace, getattr(operator, f"__{op.name}__")(*args), expected, row, call)
        if op.forms == "arithmetic":
            check_reflected(namespace, op, row, call)
            if op.name == "matmul":
                call = Call(tuple(pick.array(shape, "any", "float64") for shape in SQUARES), {})
            check_in_place(namespace, op, row, call)

    agrees()


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


def check(namespace: Namespace, found: Any, expected: np.ndarray, row: Any, call: Call) -> None:
    row.equal(namespace.left(found), expected, call)
    assert namespace.dtype_name(found) == checks.dtype_of(row.gives, call)


def check_reflected(namespace: Namespace, op: Any, row: Any, call: Call) -> None:
    """The right operand's method, which Python asks where the left one is a scalar."""
    left, right = namespace.taken(call.args)
    if namespace.owns(right):
        expected = np.asarray(row.expected(call))
        check(namespace, getattr(right, f"__r{op.name}__")(left), expected, row, call)


def check_in_place(namespace: Namespace, op: Any, row: Any, call: Call) -> None:
    """With a left operand of the result's shape and dtype; only that Array changes, and stays."""
    expected = np.asarray(row.expected(call))
    dtype = checks.dtype_of(row.gives, call)
    left = call.args[0]
    if op.name != "matmul":
        left = np.broadcast_to(left, expected.shape).astype(dtype)
    call = call._replace(args=(left, call.args[1]))
    expected = np.asarray(row.expected(call))
    target, right = namespace.taken(call.args)
    result = getattr(operator, f"__i{op.name}__")(target, right)
    assert result is target
    check(namespace, target, expected, row, call)


# Indices as the standard has them: integers, slices, an ellipsis, new axes; a mask alone; integers
# and integer arrays for every axis.


def basic(pick: Pick, shape: tuple[int, ...]) -> Any:
    parts: list[Any] = [single(pick, extent) for extent in shape]
    if shape and pick.one_of(True, False):  # an ellipsis in the place of some
        at = pick.one_of(*range(len(parts)))
        parts[at : at + pick.one_of(0, 1, 2)] = [...]
    for _ in range(pick.one_of(0, 0, 1, 2)):
        parts.insert(pick.one_of(*range(len(parts) + 1)), None)
    if len(parts) == 1 and pick.one_of(True, False):
        return parts[0]
    return tuple(parts)


def single(pick: Pick, n: int) -> Any:
    if n and pick.one_of(True, False, False):
        return pick.one_of(*range(-n, n))
    step = pick.one_of(None, 1, 2, -1, -2, -3)
    start = pick.one_of(None, *range(-n, n + 1))
    if step is None or step > 0:
        return slice(start, pick.one_of(None, *range(-n, n + 1)), step)
    return slice(start, pick.one_of(None, *range(-n - 1, max(n, 1))), step)


def mask(pick: Pick, shape: tuple[int, ...]) -> Any:
    """Of all axes or of the first ones."""
    ndim = pick.one_of(*range(len(shape) + 1)) if not pick.few else len(shape)
    return values(pick.rng, "bool", shape[:ndim], "any")


def arrays(pick: Pick, shape: tuple[int, ...]) -> Any:
    """Integer arrays that broadcast, and integers, one for each axis; no place twice."""
    size = pick.one_of(1, 2)
    flat = pick.rng.choice(int(np.prod(shape)), size=min(size, int(np.prod(shape))), replace=False)
    indices: list[Any] = [np.asarray(i, "int64") for i in np.unravel_index(flat, shape)]
    for i, extent in enumerate(shape):
        if pick.one_of(True, False):
            indices[i] = indices[i] - extent
        if len(flat) == 1 and pick.one_of(True, False, False):
            indices[i] = int(indices[i][0])
    if not any(isinstance(i, np.ndarray) for i in indices):
        indices[0] = np.asarray([indices[0]])
    return tuple(indices)


KEYS = {"basic": basic, "mask": mask, "arrays": arrays}


@each_library
@pytest.mark.parametrize("kind", KEYS)
def test_indexing(kind, library):
    """Elements read; and written, by an array or a scalar: JAX's Arrays, too."""
    namespace, _ = namespaces(library)
    few = library == "jax"

    @settings(max_examples=8 if few else 60, deadline=None)
    @given(st.data())
    def agrees(data):
        pick = Pick(data.draw, "all", few=few)
        shape = pick.shape()
        if kind == "arrays":
            shape = tuple(max(n, 1) for n in shape) or (3,)
        x = pick.array(shape, "full")
        key = KEYS[kind](pick, shape)
        array, native_key = namespace.enter(x), namespace.taken(key)
        expected = np.asarray(x[key])
        found = array[native_key]
        checks.exact(namespace.left(found), expected, None)
        assert namespace.dtype_name(found) == x.dtype.name

        parts = key if isinstance(key, tuple) else (key,)
        if kind == "arrays" or any(part is None for part in parts):
            return  # the standard leaves open what writing to those does
        before = namespace.enter(x)
        if pick.one_of(True, False) or kind == "mask":
            value = values(pick.rng, x.dtype.name, (), "any")
        else:
            value = values(pick.rng, x.dtype.name, pick.one_of(expected.shape, ()), "any")
        x[key] = value
        taken = namespace.enter(value) if value.ndim or pick.one_of(True, False) else value.item()
        before[native_key] = taken
        checks.exact(namespace.left(before), x, None)
        assert namespace.dtype_name(before) == x.dtype.name

    agrees()
