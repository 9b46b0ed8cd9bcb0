"""Elementwise functions and operators against NumPy's, for each data type that they take.

The official suite (`make conformance`) draws these, and has all other functions.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

from arraybridge.array.operators import OPERATORS
from arraybridge.xp.corrections import COMPARISONS
from arraybridge.xp.standard.data_types import DATA_TYPES, KINDS
from tests.support.namespaces import Namespace, each_function, each_library, namespaces

pytestmark = pytest.mark.usefixtures("x64")

# What functions take, by the words of the standard.
DTYPES = {
    **KINDS,
    "all": DATA_TYPES,
    "floating": (*KINDS["real floating"], *KINDS["complex floating"]),
    "real": (*KINDS["integral"], *KINDS["real floating"]),
    "integral or bool": (*KINDS["integral"], "bool"),
}
ONE = {
    "floating": "acos acosh asin asinh atan atanh cos cosh exp expm1 log log10 log1p log2 "
    "reciprocal sin sinh sqrt tan tanh",
    "numeric": "abs conj isfinite isinf isnan negative positive real round sign square",
    "complex floating": "imag",
    "real": "ceil floor trunc",
    "real floating": "signbit",
    "integral or bool": "bitwise_invert",
    "bool": "logical_not",
}
TWO = {
    "numeric": "add matmul multiply pow subtract",
    "floating": "divide",
    "real": "floor_divide greater greater_equal less less_equal maximum minimum remainder",
    "real floating": "atan2 copysign hypot logaddexp nextafter",
    "all": "equal not_equal",
    "integral or bool": "bitwise_and bitwise_or bitwise_xor",
    "integral": "bitwise_left_shift bitwise_right_shift",
    "bool": "logical_and logical_or logical_xor",
}
TAKES = {name: kind for table in (ONE, TWO) for kind in table for name in table[kind].split()}
UNARY = {name for names in ONE.values() for name in names.split()}
#: Data types of the right operand, beside the left one's own.
OTHERS = {
    "int8": "int64",
    "uint8": "int16",
    "uint16": "int32",
    "uint32": "uint8",
    "float32": "complex64",
    "complex64": "float64",
}
#: Functions that compute nothing: of any integers.
EXTREME = (
    "bitwise_and bitwise_invert bitwise_or bitwise_xor equal greater greater_equal less less_equal "
    "maximum minimum not_equal positive".split()
)
FLOATS = np.asarray([[-2.5, -0.75, 0.25], [0.5, 1.5, 3.0]])


def left(name: str, dtype: str) -> np.ndarray:
    """The first argument of a function; complex ones on no branch cut."""
    kind = np.dtype(dtype).kind
    if kind in "iu":
        info = np.iinfo(dtype)
        first = [0, 1, -2 if kind == "i" else 2]
        if name in EXTREME:
            first = [info.min, info.max, info.max // 3]
        return np.asarray([first, [3, 4, 5]], dtype)
    if kind == "c":
        return (FLOATS + 1j * FLOATS[::-1, ::-1]).astype(dtype)
    return FLOATS.astype(dtype) if kind == "f" else FLOATS > 0


def right(dtype: str) -> np.ndarray:
    """The second argument: nowhere 0."""
    return np.asarray([1, 0, 1], bool) if dtype == "bool" else np.asarray([1, 2, 3], dtype)


def arguments(name: str, library: str) -> list[tuple[Any, ...]]:
    """Arrays of each data type alone and with another, and beside Python's scalars."""
    dtypes = DTYPES[TAKES[name]]
    found: list[tuple[Any, ...]] = []
    for dtype in (dtypes[0], dtypes[-1]) if library == "jax" else dtypes:  # JAX compiles each
        x = left(name, dtype)
        if name in UNARY:
            found.append((x,))
            continue
        y = right(dtype)
        found.append((x, y))
        if name != "matmul":
            found += [(x, y[2].item()), (y[2].item(), y)]
        if OTHERS.get(dtype) in dtypes and library != "jax":
            found.append((x, right(OTHERS[dtype])))
    return found


def check(namespace: Namespace, found: Any, expected: Any) -> None:
    """Hold a result against NumPy's: its data type and its values, but for rounding errors."""
    expected = np.asarray(expected)
    assert namespace.dtype_name(found) == expected.dtype.name
    if expected.dtype.kind in "fc":
        near = 2e-4 if expected.real.itemsize == 4 else 1e-9
        np.testing.assert_allclose(namespace.left(found), expected, rtol=near, atol=near)
    else:
        np.testing.assert_array_equal(namespace.left(found), expected)


@each_function(TAKES)
def test_agrees(name, library):
    """On both namespaces; the arguments stay."""
    with np.errstate(all="ignore"):
        for given in arguments(name, library):
            expected = getattr(np, name)(*given)
            for namespace in namespaces(library):
                args = namespace.taken(given)
                check(namespace, namespace.function(name)(*args), expected)
                for arg, x in zip(args, given, strict=True):
                    if isinstance(x, np.ndarray):
                        np.testing.assert_array_equal(namespace.left(arg), x)


@each_library
@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.name)
def test_every_form(op, library):
    """Plain, reflected and in place: of those only the left operand changes, and stays itself."""
    namespace, _ = namespaces(library)
    function = getattr(np, op.function)
    with np.errstate(all="ignore"):
        for given in arguments(op.function, library):
            expected = np.asarray(function(*given))
            args = namespace.taken(given)
            check(namespace, getattr(operator, f"__{op.name}__")(*args), expected)
            if op.forms != "arithmetic":
                continue
            if isinstance(given[1], np.ndarray):
                check(namespace, getattr(args[1], f"__r{op.name}__")(args[0]), expected)
            x, y = given
            if op.name == "matmul":
                x, y = np.ones((2, 3), expected.dtype), np.arange(9).reshape(3, 3).astype(y.dtype)
            else:
                x = np.broadcast_to(x, expected.shape).astype(expected.dtype)
            target, other = namespace.taken((x, y))
            assert getattr(operator, f"__i{op.name}__")(target, other) is target
            check(namespace, target, function(x, y))


SCALARS = {
    "clip": lambda xp, x, v: xp.clip(x, None, v),
    "full": lambda xp, x, v: xp.full((2,), v, dtype=x.dtype),
    "full_like": lambda xp, x, v: xp.full_like(x, v),
    "where": lambda xp, x, v: xp.where(x == x, v, x),
    "asarray": lambda xp, x, v: xp.asarray(v, dtype=x.dtype),
    "add": lambda xp, x, v: xp.add(v, x),
    "multiply": lambda xp, x, v: x * v,
    "maximum": lambda xp, x, v: xp.maximum(x, v),
    "equal": lambda xp, x, v: x == v,
    "linspace": lambda xp, x, v: xp.linspace(0.0, v, 3, dtype=x.dtype),
}
REAL = ("clip", "maximum", "linspace")


@each_library
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_numbers_beyond_a_dtype_are_infinite(library):
    """Python's floats, and complex numbers, beside arrays that cannot hold them."""
    wrapped, native = namespaces(library)
    most = float(np.finfo("f4").max)
    for dtype in ("float32", "complex64"):
        x = np.asarray([1, -2], dtype)
        skipped = REAL if dtype == "complex64" else ("linspace",) * (library == "jax")  # NaN
        numbers = [1e300, -1e300, most * (1 + 2**-26), most * (1 + 2**-25)]
        for number in numbers + [complex(1e300, 1)] * (dtype == "complex64"):
            value = complex(np.complex64(number)) if dtype == "complex64" else np.float32(number)
            for name, call in SCALARS.items():
                if name in skipped:
                    continue
                expected = call(namespaces("numpy")[1].xp, x, number)
                for namespace in (wrapped, native):
                    found = namespace.left(call(namespace.xp, namespace.enter(x), number))
                    np.testing.assert_array_equal(found, expected, err_msg=f"{name} {number}")
            array = wrapped.enter(x)
            array[1:] = number
            np.testing.assert_array_equal(wrapped.left(array), [1, value])


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
