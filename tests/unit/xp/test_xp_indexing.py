"""Slices, masks and places given by arrays, on every library, against NumPy."""

from functools import partial

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from arraybridge.xp.standard.data_types import DATA_TYPES
from tests.support.namespaces import each_face, each_library, namespaces

pytestmark = pytest.mark.usefixtures("x64")

ENDS = st.none() | st.integers(-9, 9)
SLICES = st.builds(slice, ENDS, ENDS, st.sampled_from([None, 1, 2, 5, -1, -2, -7]))


@each_library
def test_slices_are_pythons(library):
    """Ends beyond the extent too, which the standard leaves open: as of a list."""
    wrapped, _ = namespaces(library)

    @settings(max_examples=15 if library == "jax" else 200, deadline=None)
    @given(
        st.sampled_from([(0,), (1,), (3,), (3, 2), (2, 0, 3)]),
        st.sampled_from(["int64", *DATA_TYPES]),
        st.data(),
    )
    def holds(shape, dtype, data):
        x = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
        form = data.draw(st.sampled_from(["all", "ellipsis", "trailing"]))
        key = tuple(data.draw(st.lists(SLICES, min_size=x.ndim, max_size=x.ndim)))
        if form == "ellipsis":
            key = (*key[:1], ...)
        elif form == "trailing":
            key = (..., *key[-1:])
        key = key[0] if key[1:] == () else key
        array = wrapped.enter(x)
        np.testing.assert_array_equal(wrapped.left(array[key]), x[key])
        x[key] = array[key] = x.dtype.type(9).item()
        assert wrapped.dtype_name(array) == dtype
        np.testing.assert_array_equal(wrapped.left(array), x)

    holds()


@each_library
def test_lists_are_written(library):
    wrapped, _ = namespaces(library)
    array = wrapped.enter(np.zeros((2, 3), "f4"))
    array[0] = [1, 2, 3]
    array[1, 1:] = (4, 5)
    np.testing.assert_array_equal(wrapped.left(array), [[1, 2, 3], [0, 4, 5]])


@each_library
def test_masks_over_nothing(library):
    wrapped, _ = namespaces(library)
    shapes = ((0,), (2, 0), (0, 3), (2, 0, 3), (3, 0, 2), (2, 3))
    for shape in shapes[: 2 if library == "jax" else None]:  # which compiles for each
        for axes in range(1, len(shape) + 1):
            for value in (True, False):
                x, mask = np.ones(shape), np.full(shape[:axes], value)
                array, its = wrapped.enter(x), wrapped.enter(mask)
                np.testing.assert_array_equal(wrapped.left(array[its]), x[mask])
                array[its] = 2.0
                array[its] = array[its] * 3
                x[mask] = 6
                np.testing.assert_array_equal(wrapped.left(array), x)


FLOATS = st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 1.0, 2.5, np.inf, np.nan])


@each_library
def test_searchsorted_keeps_to_sort(library):
    """NaN comes last, in the order of `sort`; both sides, with a sorter, of any shape."""

    @settings(max_examples=5 if library == "jax" else 60, deadline=None)
    @given(
        hnp.arrays("float64", 6 if library == "jax" else st.integers(0, 7), elements=FLOATS),
        hnp.arrays("float32", (2, 3), elements=FLOATS),
        st.sampled_from(["left", "right"]),
        st.booleans(),
    )
    def holds(x1, x2, side, unsorted):
        expected = np.searchsorted(np.sort(x1), x2, side=side)
        for namespace in namespaces(library):
            order, given = namespace.enter(x1), namespace.enter(x2)
            how = {"sorter": namespace.enter(np.argsort(x1, stable=True))} if unsorted else {}
            order = order if unsorted else namespace.xp.sort(order)
            found = namespace.xp.searchsorted(order, given, side=side, **how)
            np.testing.assert_array_equal(namespace.left(found), expected)
            assert namespace.dtype_name(found) == "int64"

    holds()


@each_face
@pytest.mark.parametrize("name", ["uint8", "uint16", "uint32", "uint64"])
def test_searchsorted_of_unsigned_integers(name, namespace):
    most = np.iinfo(name).max
    x1, x2 = np.asarray([0, 1, most - 1], name), np.asarray([[0, 2], [most - 1, most]], name)
    for side in ("left", "right"):
        found = namespace.xp.searchsorted(namespace.enter(x1), namespace.enter(x2), side=side)
        np.testing.assert_array_equal(namespace.left(found), np.searchsorted(x1, x2, side=side))


@each_library
@pytest.mark.parametrize("index", [4, 5, -5, 8])
def test_places_that_there_are_not(index, library):
    """An error where one costs nothing; docs/array.md has the others."""
    namespace, _ = namespaces(library)
    xp = namespace.xp
    x, places = namespace.enter(np.arange(4.0)), namespace.enter(np.asarray([index]))
    if library == "jax":  # which does not look, since that would wait for the values
        assert np.isnan(namespace.left(xp.take(x, places))).all()
    elif library != "dpnp":  # nor does dpnp
        for read in (x.__getitem__, *[partial(f, x) for f in (xp.take, xp.take_along_axis)]):
            with pytest.raises(IndexError):
                read(places)


INDICES = [[0, 2], [[1, 0], [2, 2]], [2], 1, np.zeros(0, int)]
MASKS = [[True, False, True], [False, False, False], np.eye(3, dtype=bool), True, False]
PARTS = st.one_of(
    st.integers(-3, 2),
    SLICES,
    st.none(),
    st.just(...),
    st.booleans(),
    st.sampled_from([*map(np.asarray, INDICES + MASKS), np.True_]),
)


def outcome(call):
    try:
        return call()
    except IndexError:
        return IndexError


@each_library
def test_keys_are_numpys(library):
    """Integers, slices, None, `...`, booleans and arrays together: read and written as in NumPy."""
    if library == "dpnp":
        pytest.skip("it takes adjacent index arrays only")
    wrapped, _ = namespaces(library)
    x = np.arange(27).reshape(3, 3, 3)

    @settings(max_examples=25 if library == "jax" else 1000, deadline=None)
    @given(st.lists(PARTS, min_size=1, max_size=5), st.booleans())
    @example([slice(None, None, -1), True], False)
    @example([None, True], False)
    @example([0, slice(None), True], False)
    def holds(parts, alone):
        key = parts[0] if alone else tuple(parts)
        own = tuple(wrapped.enter(p) if isinstance(p, np.ndarray) else p for p in parts)
        own = own[0] if alone else own
        array, expected = wrapped.enter(x), outcome(lambda: x[key])
        found = outcome(lambda: wrapped.left(array[own]))
        if expected is IndexError:
            assert found is IndexError
            return
        np.testing.assert_array_equal(found, expected)
        places, values = x[key], -1 - np.arange(expected.size).reshape(expected.shape)
        if np.unique(places).size < places.size:
            values = np.asarray(-1)  # of two values for one place any may remain
        changed = x.copy()
        changed[key] = values
        array[own] = wrapped.enter(values)
        np.testing.assert_array_equal(wrapped.left(array), changed)

    holds()


@each_library
def test_an_index_array_in_another_form(library):
    """Of NumPy, or a list; of other integers."""
    if library == "dpnp":
        pytest.skip("it takes adjacent index arrays only")
    wrapped, _ = namespaces(library)
    x = np.arange(24, dtype="uint16").reshape(2, 3, 4)
    array, index = wrapped.enter(x), np.array([2, 0])
    expected = x[1, :, index]
    for dtype in ("int8", "uint8", "int32", "uint64"):
        own = wrapped.enter(index.astype(dtype))
        np.testing.assert_array_equal(wrapped.left(array[1, :, own]), expected)
        np.testing.assert_array_equal(wrapped.left(array[-1, ::-1, own]), x[-1, ::-1, index])
    for part in (index, index[::-1].copy()[::-1], index.tolist()):
        np.testing.assert_array_equal(wrapped.left(array[1, :, part]), expected)
    with pytest.raises(IndexError):
        array[2, :, wrapped.enter(index)] = 1
