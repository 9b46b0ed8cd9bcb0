"""Elementwise functions and operators against NumPy's, for each data type that they take.

The official suite (`make conformance`) draws these, and has all other functions.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

from arraybridge.array.operators import OPERATORS
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
