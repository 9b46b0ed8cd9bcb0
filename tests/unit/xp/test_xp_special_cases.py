"""The standard's special cases on every namespace, of functions and of operators, as data.

The cases are `support.special_cases`. All of a function's are one array, so that loops over whole
vectors meet them as well as what is done to the rest. Then functions along no axes, and of arrays
of no axes and of no elements.
"""

from __future__ import annotations

import math
import operator
import warnings

import jax
import numpy as np
import pytest

from arraybridge.array.operators import OPERATORS
from tests.support import special_cases
from tests.support.namespaces import each_face, each_function, each_library, namespaces
from tests.support.special_cases import BINARY, COMPLEX, REAL, TURNED, TURNED_IN, Case, cases

TOLERANCE = {"float32": 1e-6, "float64": 1e-12}
PRECISIONS = {"float32": "complex64", "float64": "complex128"}
FUNCTIONS = [(name, cases(text)) for table in (REAL, BINARY) for name, text in table.items()]
EACH = {name: list(found) for name, found in FUNCTIONS}
EACH_COMPLEX = {name: special_cases.complex_cases(name) for name in (*COMPLEX, *TURNED, *TURNED_IN)}


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True), warnings.catch_warnings(), np.errstate(all="ignore"):
        for category in (RuntimeWarning, UserWarning):  # invalid values are what this is about
            warnings.simplefilter("ignore", category)
        yield


def columns(found: list[Case], dtype: str) -> list[np.ndarray]:
    """The arguments, one array each."""
    return [np.asarray(x, dtype) for x in zip(*(case.inputs for case in found), strict=True)]


def joined(parts: list[np.ndarray]) -> np.ndarray:
    """Complex numbers of their parts; arithmetic would not do."""
    real, imag = parts
    return np.stack([real, imag], -1).view(PRECISIONS[real.dtype.name])[..., 0]


def hold(found: np.ndarray, expected: list[Case], precision: str) -> None:
    """Hold results against what the cases say, part by part; list those that are wrong."""
    parts = [found.real, found.imag] if found.dtype.kind == "c" else [found]
    assert len(parts) == len(expected[0].result)
    wrong = []
    for i, case in enumerate(expected):
        ours = [float(part[i]) for part in parts]
        if not all(map(agree, ours, case.result, case.free, [TOLERANCE[precision]] * 2)):
            wrong.append(f"{case.inputs} gives {ours}, not {case.result}; free: {case.free}")
    assert not wrong, "\n".join(wrong)


def agree(found: float, expected: float, free: bool, tolerance: float) -> bool:
    """Equal, the signs of zeros counting, unless the sign is free; NaN has none."""
    if np.isnan(expected):
        return bool(np.isnan(found))
    if free:
        found, expected = abs(found), abs(expected)
    if np.signbit(found) != np.signbit(expected):
        return False
    return found == expected or abs(found - expected) <= tolerance * abs(expected)


@each_function(EACH)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_real(name, precision, library):
    found = EACH[name]
    for ns in namespaces(library):
        args = [ns.enter(x) for x in columns(found, precision)]
        hold(ns.left(ns.function(name)(*args)), found, precision)


@each_function(EACH_COMPLEX)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_complex(name, precision, library):
    found = EACH_COMPLEX[name]
    x = joined(columns(found, precision))
    for ns in namespaces(library):
        hold(ns.left(ns.function(name)(ns.enter(x))), found, precision)


WITH_CASES = [op for op in OPERATORS if op.function in BINARY]


@each_library
@pytest.mark.parametrize("op", WITH_CASES, ids=lambda op: op.name)
def test_operators(op, library):
    """Every form of an operator has the special cases of its function."""
    found = EACH[op.function]
    ns, _ = namespaces(library)
    x1, x2 = (ns.enter(x) for x in columns(found, "float64"))
    hold(ns.left(op.plain(x1, x2)), found, "float64")
    if op.forms == "arithmetic":
        hold(ns.left(getattr(x2, f"__r{op.name}__")(x1)), found, "float64")
        hold(ns.left(getattr(operator, f"__i{op.name}__")(x1, x2)), found, "float64")
    for case in found[:: len(found) // 30 + 1]:
        one, other = (np.asarray([x]) for x in case.inputs)
        hold(ns.left(op.plain(ns.enter(one), other.item())), [case], "float64")
        hold(ns.left(op.plain(one.item(), ns.enter(other))), [case], "float64")


@each_face
def test_reductions_carry_nan(namespace):
    """NaN goes through; of no elements a mean is NaN, as is a variance of too few."""
    x = np.asarray([[1.0, np.nan, np.inf], [1.0, 2.0, 3.0]])
    for name in ("max", "min", "mean", "std", "var", "sum", "prod"):
        result = namespace.left(namespace.function(name)(namespace.enter(x), axis=1))
        assert np.isnan(result).tolist() == [True, False], name
    for name in ("mean", "std", "var"):
        assert np.isnan(
            namespace.left(namespace.function(name)(namespace.enter(x[:, :0]), axis=1))
        ).all()
    for name in ("std", "var"):
        assert np.isnan(
            namespace.left(namespace.function(name)(namespace.enter(x[1]), correction=3))
        )
    for name in ("all", "any"):
        assert namespace.left(namespace.function(name)(namespace.enter(x)))


@each_face
def test_unique_tells_every_nan_apart(namespace):
    x = np.asarray([np.nan, 0.0, np.nan, -0.0, 1.0])
    values = namespace.left(namespace.function("unique_values")(namespace.enter(x)))
    assert np.isnan(values).sum() == 2
    assert sorted(values[~np.isnan(values)].tolist()) == [0.0, 1.0]
    found = namespace.left(namespace.function("unique_all")(namespace.enter(x)))
    assert sorted(found.counts.tolist()) == [1, 1, 1, 2]
    np.testing.assert_array_equal(found.values[found.inverse_indices], x)
    np.testing.assert_array_equal(x[found.indices], found.values)


BOUNDARIES = [  # the largest and the smallest of each type, through what must be exact
    ("bitwise_invert", lambda info: (info.min,), lambda info: info.max),
    ("maximum", lambda info: (info.min, info.max), lambda info: info.max),
    ("minimum", lambda info: (info.min, info.max), lambda info: info.min),
    ("bitwise_right_shift", lambda info: (info.max, 1), lambda info: info.max // 2),
    ("floor_divide", lambda info: (info.max, 2), lambda info: info.max // 2),
    ("remainder", lambda info: (info.max, 2), lambda info: info.max % 2),
    ("add", lambda info: (info.max - 1, 1), lambda info: info.max),
    ("subtract", lambda info: (info.max, info.max), lambda info: 0),
    ("multiply", lambda info: (info.max, 1), lambda info: info.max),
    ("floor", lambda info: (info.max,), lambda info: info.max),
    ("round", lambda info: (info.min,), lambda info: info.min),
    ("abs", lambda info: (-info.max if info.min else 0,), lambda info: info.max * bool(info.min)),
]
INTEGERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()


@each_library
@pytest.mark.parametrize(("name", "inputs", "result"), BOUNDARIES, ids=[b[0] for b in BOUNDARIES])
def test_integers_at_their_limits(name, inputs, result, library):
    for dtype in INTEGERS:
        info = np.iinfo(dtype)
        for ns in namespaces(library):
            args = [ns.enter(np.asarray([x], dtype)) for x in inputs(info)]
            found = ns.left(ns.function(name)(*args))
            assert found.dtype == dtype
            assert found.tolist() == [result(info)], (dtype, inputs(info))


MATRICES = [(0, 0), (3, 0), (0, 3), (2, 3, 0), (2, 0, 3), (0, 3, 3), (0, 2, 3), (2, 0, 0)]
SQUARE = [shape for shape in MATRICES if shape[-1] == shape[-2]]
INF = math.inf
NOT_DPNP = "dpnp is not corrected for arrays without elements: no issue known, none of it looked at"


@each_face
def test_the_rank_of_a_matrix_without_elements(namespace):
    xp, one = namespace.xp, namespace.enter(np.ones((3, 3)))
    wanted = namespace.dtype_name(xp.linalg.matrix_rank(one))
    for shape in MATRICES:
        x = namespace.enter(np.ones(shape))
        for rtol in (None, 0.1, namespace.enter(np.asarray(0.1))):
            rank = xp.linalg.matrix_rank(x, rtol=rtol)
            assert rank.shape == shape[:-2]
            assert namespace.dtype_name(rank) == wanted
            assert not namespace.left(rank).any()
    rtol = namespace.enter(np.full(2, 0.1))
    assert xp.linalg.matrix_rank(namespace.enter(np.ones((2, 3, 0))), rtol=rtol).shape == (2,)
    assert int(xp.linalg.matrix_rank(one)) == 1


@each_library
def test_linear_algebra_of_matrices_without_elements(library):
    """The shapes of NumPy's results."""
    if library == "dpnp":
        pytest.skip(NOT_DPNP)
    wrapped, _ = namespaces(library)
    xp = wrapped.xp
    for shape in MATRICES:
        x, y = np.ones(shape), wrapped.enter(np.ones(shape))
        assert xp.linalg.svdvals(y).shape == np.linalg.svdvals(x).shape
        assert [p.shape for p in xp.linalg.svd(y)] == [p.shape for p in np.linalg.svd(x)]
        assert [p.shape for p in xp.linalg.qr(y)] == [p.shape for p in np.linalg.qr(x)]
        assert xp.linalg.pinv(y).shape == np.linalg.pinv(x).shape
        assert xp.linalg.matrix_norm(y).shape == np.linalg.matrix_norm(x).shape
    for shape in SQUARE:
        x, y = np.ones(shape), wrapped.enter(np.ones(shape))
        np.testing.assert_array_equal(wrapped.left(xp.linalg.det(y)), np.linalg.det(x))
        assert xp.linalg.inv(y).shape == xp.linalg.solve(y, y).shape == shape
        assert xp.linalg.eigvalsh(y).shape == shape[:-1]
        assert [p.shape for p in xp.linalg.slogdet(y)] == [shape[:-2]] * 2


@each_face
def test_along_no_axes_nothing_is_moved(namespace):
    if namespace.library == "dpnp":
        pytest.skip(NOT_DPNP)
    xp = namespace.xp
    for shape in ((), (0,), (3,), (2, 3), (0, 3)):
        x = np.arange(math.prod(shape), dtype="f8").reshape(shape)
        y = namespace.enter(x)
        moved = [xp.roll(y, shift, axis=()) for shift in (1, 0, -2, (), (1,))]
        moved += [xp.fft.fftshift(y, axes=()), xp.fft.ifftshift(y, axes=())]
        if not shape:
            moved += [xp.fft.fftshift(y), xp.fft.ifftshift(y), xp.roll(y, 1)]
        for each in moved:
            np.testing.assert_array_equal(namespace.left(each), x)
        if x.size and namespace is namespaces(namespace.library)[0]:
            moved[0][...] = 7  # of its own memory
            np.testing.assert_array_equal(namespace.left(y), x)


@each_face
def test_shifts_and_axes_broadcast(namespace):
    x = np.arange(24).reshape(2, 3, 4)
    y = namespace.enter(x)
    for shift, axis in (
        (1, (0, 2)), ((1,), (0, 2)), ((1, 2), (0, 2)), ((1, 2), (1, 1)), ((1, 2), 1),
        ((1, 2), None), (5, None), (-1, -1), ((), 0), ((3,), 0),
    ):  # fmt: skip
        if namespace.library == "dpnp" and () in (shift, axis):
            continue
        rolled = namespace.left(namespace.xp.roll(y, shift, axis=axis))
        np.testing.assert_array_equal(rolled, np.roll(x, shift, axis), str((shift, axis)))


@each_library
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_norms_of_vectors_of_one_element_and_of_none(library):
    if library == "dpnp":
        pytest.skip(NOT_DPNP)
    slow = library == "jax"  # it compiles for each
    for namespace in namespaces(library)[: 1 if slow else 2]:
        norm = namespace.xp.linalg.vector_norm
        for shape in ((), (3, 0)) if slow else ((), (2,), (0,), (2, 3), (3, 0)):
            x = np.arange(math.prod(shape), dtype="f8").reshape(shape) - 1
            y = namespace.enter(x)
            for order in (0, 1, 2, 3, -1, 0.5, INF, -INF):
                wanted = (x != 0).astype("f8") if order == 0 else abs(x)
                for keep in (False, True):
                    found = namespace.left(norm(y, axis=(), ord=order, keepdims=keep))
                    np.testing.assert_allclose(found, wanted, rtol=1e-6)
            if not x.size:
                for order in (0, 1, 2, 3, 0.5, INF, -1):
                    wanted = INF if order < 0 else 0
                    for axis in (None, 0 if shape == (0,) else 1, tuple(range(x.ndim))):
                        for keep in (False, True):
                            found = norm(y, axis=axis, ord=order, keepdims=keep)
                            still = np.sum(x, axis=axis, keepdims=keep)
                            assert found.shape == still.shape, (shape, order, axis, keep)
                            assert (namespace.left(found) == wanted).all(), (shape, order, axis)
        assert namespace.dtype_name(norm(namespace.enter(np.ones(0, "c8")), ord=INF)) == "float32"
