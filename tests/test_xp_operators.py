"""Operators and indexing of Arrays against NumPy's, on every library."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arraybridge.array.operators import OPERATORS

from .support import checks
from .support.faces import Face, each_library, faces
from .support.functions import TABLE
from .support.recipes import Call, Pick, values
from .test_xp_functions import EXAMPLES

pytestmark = pytest.mark.usefixtures("x64")

SQUARES = ((2, 3), (3, 3))


@each_library
@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.name)
def test_every_form(op, library):
    """Plain, reflected and in place; the right operands of each being those of the function."""
    row = TABLE[op.function]
    face, _ = faces(library)

    @settings(max_examples=EXAMPLES.get(library, 5), deadline=None)
    @given(st.data())
    def agrees(data):
        pick = Pick(data.draw, row.kinds, few=library == "jax")
        call = row.recipe(pick)
        expected = np.asarray(row.expected(call))
        args = face.taken(call.args)
        check(face, op.plain(*args), expected, row, call)
        if op.forms == "arithmetic":
            check_reflected(face, op, row, call)
            if op.name == "matmul":
                call = Call(tuple(pick.array(shape, "any", "float64") for shape in SQUARES), {})
            check_in_place(face, op, row, call)

    agrees()


def check(face: Face, found: Any, expected: np.ndarray, row: Any, call: Call) -> None:
    row.equal(face.left(found), expected, call)
    assert face.dtype_name(found) == checks.dtype_of(row.gives, expected, call, {})


def check_reflected(face: Face, op: Any, row: Any, call: Call) -> None:
    """The right operand's method, which Python asks where the left one is a scalar."""
    left, right = face.taken(call.args)
    if face.owns(right):
        expected = np.asarray(row.expected(call))
        check(face, getattr(right, f"__r{op.name}__")(left), expected, row, call)


def check_in_place(face: Face, op: Any, row: Any, call: Call) -> None:
    """With a left operand of the result's shape and dtype; only that Array changes, and stays."""
    expected = np.asarray(row.expected(call))
    dtype = checks.dtype_of(row.gives, expected, call, {})
    left = call.args[0]
    if op.name != "matmul":
        left = np.broadcast_to(left, expected.shape).astype(dtype)
    call = call._replace(args=(left, call.args[1]))
    expected = np.asarray(row.expected(call))
    target, right = face.taken(call.args)
    result = op.in_place(target, right)
    assert result is target
    check(face, target, expected, row, call)


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
    face, _ = faces(library)
    few = library == "jax"

    @settings(max_examples=12 if few else 60, deadline=None)
    @given(st.data())
    def agrees(data):
        pick = Pick(data.draw, "all", few=few)
        shape = pick.shape()
        if kind == "arrays":
            shape = tuple(max(n, 1) for n in shape) or (3,)
        x = pick.array(shape, "full")
        key = KEYS[kind](pick, shape)
        array, native_key = face.enter(x), face.taken(key)
        expected = np.asarray(x[key])
        found = array[native_key]
        checks.exact(face.left(found), expected, None)
        assert face.dtype_name(found) == x.dtype.name

        parts = key if isinstance(key, tuple) else (key,)
        if kind == "arrays" or any(part is None for part in parts):
            return  # the standard leaves open what writing to those does
        before = face.enter(x)
        if pick.one_of(True, False) or kind == "mask":
            value = values(pick.rng, x.dtype.name, (), "any")
        else:
            value = values(pick.rng, x.dtype.name, pick.one_of(expected.shape, ()), "any")
        x[key] = value
        taken = face.enter(value) if value.ndim or pick.one_of(True, False) else value.item()
        before[native_key] = taken
        checks.exact(face.left(before), x, None)
        assert face.dtype_name(before) == x.dtype.name

    agrees()


@each_library
def test_too_many_indices(library):
    x = faces(library)[0].enter(np.zeros((2, 3)))
    for key in [(0, 0, 0), (..., 0, 0, 0), (slice(None), 0, None, 0), (..., 0, ...)]:
        with pytest.raises(IndexError):
            x[key]
