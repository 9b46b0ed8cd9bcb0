"""Python's integers beside arrays whose dtype holds them or not: one answer on every library."""

# ruff: noqa: B023 - called at once

from __future__ import annotations

import enum
import functools
import operator
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import arraybridge as ab
from arraybridge.array import promotion
from arraybridge.array.operators import OPERATORS
from tests.support.namespaces import each_face, each_library, namespaces
from tests.support.optional import optional

torch = optional("torch")

pytestmark = pytest.mark.usefixtures("x64")

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
COMPARISONS = [op for op in OPERATORS if op.forms == "compare"]
ARITHMETIC = [
    op for op in OPERATORS if op.forms == "arithmetic" and op.name not in ("matmul", "truediv")
]


def beyond(dtype: str) -> st.SearchStrategy[int]:
    limits = np.iinfo(dtype)
    return st.one_of(
        st.integers(limits.max + 1, 2**100),
        st.integers(-(2**100), limits.min - 1),
        st.sampled_from([limits.max + 1, limits.min - 1]),
    )


class Number(int):
    pass


class Name(enum.IntEnum):
    LARGE = 300


@each_library
@pytest.mark.parametrize("dtype", INTEGERS)
def test_arithmetic_is_an_overflow_error(dtype: str, library: str) -> None:
    """Operators in all forms, and functions on both namespaces."""
    wrapped = namespaces(library)[0]

    @settings(max_examples=4 if library == "jax" else 12, deadline=None)
    @given(value=beyond(dtype), op=st.sampled_from(ARITHMETIC))
    def refused(value: int, op: Any) -> None:
        x = wrapped.enter(np.asarray([1, 2, 3], dtype))
        for form in (
            lambda: op.plain(x, value),
            lambda: op.plain(value, x),
            lambda: op.in_place(x, value),
        ):
            with pytest.raises(OverflowError):
                form()
        assert wrapped.left(x).tolist() == [1, 2, 3]
        for namespace in namespaces(library):
            array = namespace.enter(np.asarray([1, 2, 3], dtype))
            for args in (array, value), (value, array):
                with pytest.raises(OverflowError):
                    namespace.function(op.function)(*args)

    refused()


@each_library
@pytest.mark.parametrize("dtype", INTEGERS)
def test_comparisons_are_right(dtype: str, library: str) -> None:
    x = np.asarray([0, 44, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
    wrapped = namespaces(library)[0]

    @settings(max_examples=4 if library == "jax" else 12, deadline=None)
    @given(value=beyond(dtype), op=st.sampled_from(COMPARISONS))
    def agrees(value: int, op: Any) -> None:
        expected = [op.plain(int(each), value) for each in x]
        mirrored = [op.plain(value, int(each)) for each in x]
        array = wrapped.enter(x)
        assert wrapped.left(op.plain(array, value)).tolist() == expected
        assert wrapped.left(op.plain(value, array)).tolist() == mirrored
        for namespace in namespaces(library):
            array, function = namespace.enter(x), namespace.function(op.function)
            assert namespace.left(function(array, value)).tolist() == expected
            assert namespace.left(function(value, array)).tolist() == mirrored
            assert not namespace.left(namespace.xp.isin(array, value)).any()
            ordered = namespace.enter(np.asarray([1, 2, 2], dtype))
            for side in "left", "right":
                place = namespace.xp.searchsorted(ordered, value, side=side)
                assert int(namespace.left(place)) == (0 if value < 0 else 3)

    agrees()


@each_library
@pytest.mark.parametrize("value", [300, -1, Number(300), Name.LARGE, 2**31, 2**70])
def test_written_filled_and_chosen(value: int, library: str) -> None:
    for namespace in namespaces(library):
        xp, x = namespace.xp, namespace.enter(np.asarray([1, 2, 3], "uint8"))
        mask = namespace.enter(np.asarray([True, False, True]))
        for call in (
            lambda: xp.full(2, value, dtype=xp.uint8),
            lambda: xp.full_like(x, value),
            lambda: xp.asarray(int(value), dtype=xp.uint8),
            lambda: xp.asarray([[1, int(value)]], dtype=xp.uint8),
            lambda: xp.where(mask, x, int(value)),
            lambda: xp.where(mask, int(value), x),
            lambda: xp.arange(int(value), int(value) + 2, dtype=xp.uint8),
            lambda: xp.linspace(0, int(value), 3, dtype=xp.uint8),
        ):
            with pytest.raises(OverflowError):
                call()
    namespace = namespaces(library)[0]
    x = namespace.enter(np.asarray([1, 2, 3], "uint8"))
    for key in 0, slice(0, 2), ..., namespace.enter(np.asarray([True, False, True])):
        for written in value, np.int64(min(value, 2**62)):
            with pytest.raises(OverflowError):
                x[key] = written
    with pytest.raises(OverflowError):
        x[...] = [1, min(int(value), 2**62), 3]
    assert namespace.left(x).tolist() == [1, 2, 3]
    wide = namespace.xp.full_like(x, 300, dtype=namespace.xp.float32)
    assert namespace.left(wide).tolist() == [300.0] * 3


@pytest.mark.parametrize("library", ["numpy", "jax"])
@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "uint2"])
def test_the_narrow_integers_of_ml_dtypes(name: str, library: str) -> None:
    """They do not hold 127; NumPy's own operators promote them to int8, and so hold more."""
    dtype = np.dtype(getattr(ml_dtypes, name))
    limits = ml_dtypes.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    values, outside = [low, 0], (low - 1, high + 1, 100, 300)
    wrapped, native = namespaces(library)
    x, xp = wrapped.enter(np.asarray(values).astype(dtype)), wrapped.xp
    for value in (*outside, low, high):
        for op in COMPARISONS:
            expected = [op.plain(each, value) for each in values]
            assert wrapped.left(op.plain(x, value)).tolist() == expected
            mirrored = [op.plain(value, each) for each in values]
            assert wrapped.left(op.plain(value, x)).tolist() == mirrored
    for value in outside:
        calls = [
            lambda: operator.iadd(x, value),
            lambda: operator.setitem(x, slice(None), [value, 0]),
            *(
                functools.partial(make, obj, dtype=dtype)
                for make in (functools.partial(ab.asarray, like=library), xp.asarray)
                for obj in (value, [[0], [value]], (np.int64(value),), range(value, value + 1))
            ),
            lambda: native.xp.full(2, value, dtype=getattr(ml_dtypes, name)),
            lambda: xp.where(x > 0, x, value),
            lambda: xp.clip(x, *((value, None) if value > high else (None, value))),
        ]
        if library == "jax":
            calls += [
                *(functools.partial(f, x, value) for f in (operator.add, xp.multiply)),
                *(functools.partial(f, value, x) for f in (operator.mul, xp.add)),
            ]
        for call in calls:
            with pytest.raises(OverflowError):
                call()
    assert wrapped.left(xp.clip(x, low - 1, 100)).tolist() == values == wrapped.left(x).tolist()
    x -= low
    assert wrapped.left(x)[0] == 0
    assert wrapped.left(xp.asarray([low, high], dtype=dtype)).tolist() == [low, high]


@each_face
def test_the_default_integers_are_heeded(namespace) -> None:
    xp = namespace.xp
    objects = (TypeError,) * (namespace.library == "dpnp")  # of numbers beyond every type
    for call in (lambda: xp.full(2, 2**70), lambda: xp.asarray(2**64), lambda: xp.asarray([2**64])):
        with pytest.raises((OverflowError, *objects)):
            call()
    assert namespace.left(xp.full(2, 2**40)).tolist() == [2**40] * 2


@each_face
def test_clip(namespace) -> None:
    """A bound that no element can pass is none; one that all would pass is an error."""
    x = namespace.enter(np.asarray([1, 44, 200], "uint8"))
    for bounds in (-5, 300), (-5, None), (None, 300), (0, 2**70):
        assert namespace.left(namespace.xp.clip(x, *bounds)).tolist() == [1, 44, 200]
    assert namespace.left(namespace.xp.clip(x, -5, 100)).tolist() == [1, 44, 100]
    assert namespace.left(namespace.xp.clip(x, min=150, max=1000)).tolist() == [150, 150, 200]
    for bounds in ((300, 400), (None, -5)):
        with pytest.raises(OverflowError):
            namespace.xp.clip(x, *bounds)
    with pytest.raises(OverflowError):
        namespace.xp.clip(x, np.int64(300), None)
    assert namespace.left(namespace.xp.clip(x, None, np.int64(300))).tolist() == [1, 44, 200]


@each_face
def test_bounds_of_clip_of_another_dtype(namespace) -> None:
    """The array's stays; what it does not hold is its end. Nothing is written to the bounds."""
    x = namespace.enter(np.asarray([1, 100], "uint8"))
    for low, high, expected in (
        ([-5, 300], None, [1, 255]),
        (None, [-5, 300], [0, 100]),
        (50, 60, [50, 60]),
        (-1, 300, [1, 100]),
    ):
        given = [each if each is None else np.asarray(each, "int32") for each in (low, high)]
        bounds = namespace.taken(given)
        found = namespace.xp.clip(x, *bounds)
        assert namespace.left(found).tolist() == expected
        assert namespace.dtype_name(found) == "uint8"
        for bound, before in zip(bounds, given, strict=True):
            assert bound is None or namespace.left(bound).tolist() == before.tolist()
    single = namespace.enter(np.asarray([1, 5], "float32"))
    found = namespace.xp.clip(single, namespace.enter(np.asarray(2.0)), None)
    assert namespace.left(found).tolist() == [2, 5]
    assert namespace.dtype_name(found) == "float32"


@each_face
def test_creation_of_numbers_of_numpy(namespace) -> None:
    """Held to the dtype that is asked for as Python's; so are the ends of ``arange``."""
    written = namespaces(namespace.library)[0].enter(np.zeros(2, "uint8"))
    xp, dtype = namespace.xp, namespace.xp.uint8
    for call in (
        lambda: xp.asarray(np.int64(300), dtype=dtype),
        lambda: xp.asarray([[1, np.int64(-1)]], dtype=dtype),
        lambda: xp.full(2, np.asarray(300), dtype=dtype),
        lambda: xp.full(2, np.int64(-1), dtype=dtype),
        lambda: xp.full_like(xp.zeros(2, dtype=dtype), np.int16(300)),
        lambda: written.__setitem__(0, np.asarray(300)),
        lambda: xp.arange(np.int64(299), np.int64(302), dtype=dtype),
        lambda: xp.arange(299.0, 302.0, dtype=dtype),
        lambda: xp.arange(-3, 0, dtype=xp.uint64),
        lambda: xp.arange(0, -200, -50, dtype=xp.int8),
        lambda: xp.arange(0.0, -2.0, -0.5, dtype=dtype),
        lambda: xp.linspace(np.int64(0), np.int64(300), 3, dtype=dtype),
        lambda: xp.linspace(np.float32(0), np.float32(300), 3, dtype=dtype),
    ):
        with pytest.raises(OverflowError):
            call()
    with pytest.raises(TypeError):
        xp.asarray(np.complex128(1j), dtype=xp.float32)
    for made, expected in (
        (xp.asarray([np.int64(1), 2], dtype=dtype), [1, 2]),
        (xp.full(2, np.int64(7), dtype=dtype), [7, 7]),
        (xp.arange(5.0, 0.0, -2.0, dtype=dtype), [5, 3, 1]),
        (xp.arange(0, 256, 51, dtype=dtype), [*range(0, 256, 51)]),
        (xp.arange(np.float32(250), 256.0, dtype=dtype), [250, 251, 252, 253, 254, 255]),
        (xp.linspace(np.int64(0), np.int64(200), 3, dtype=dtype), [0, 100, 200]),
    ):
        assert namespace.left(made).tolist() == expected
        assert namespace.dtype_name(made) == "uint8"
    x = namespace.enter(np.asarray([1, 100], "uint8"))
    assert not namespace.left(xp.isin(x, np.int64(257))).any()
    assert namespace.left(xp.searchsorted(x, np.int64(257))) == 2


@each_library
def test_numbers_of_a_higher_kind_are_a_type_error(library: str) -> None:
    namespace = namespaces(library)[0]
    xp = namespace.xp
    for dtype, value in (
        ("uint8", 1.7),
        ("int64", float("nan")),
        ("int32", 1j),
        ("float32", 1j),
        ("bool", 0.5),
        ("uint8", np.float64(1.7)),
    ):
        x = xp.ones(3, dtype=getattr(xp, dtype))
        higher = xp.asarray([complex(value)] * 3 if value == 1j else [float(value)] * 3)
        for written in value, higher, [float(value.real)] * 3 if dtype != "float32" else value:
            with pytest.raises(TypeError, match="astype"):
                x[...] = written
        number = complex(value) if value == 1j else float(value)
        for each in namespaces(library):
            with pytest.raises(TypeError, match="astype"):
                each.xp.full(2, number, dtype=getattr(each.xp, dtype))
            with pytest.raises(TypeError, match="astype"):
                each.xp.full_like(each.enter(np.ones(3, dtype)), number)
        assert namespace.left(x).tolist() == [1] * 3
        x[...] = xp.astype(xp.ones(3, dtype=xp.int64), x.dtype)  # the remedy
        x[0] = True
        assert namespace.dtype_name(x) == dtype


@each_library
@pytest.mark.parametrize(
    ("left", "right"),
    [("uint8", "int64"), ("uint8", "int8"), ("int32", "int64"), ("float32", "float64")],
)
def test_in_place_never_changes_the_dtype(left: str, right: str, library: str) -> None:
    """``uint8 += int64`` would be int64: of all shapes, no dimensions too."""
    namespace = namespaces(library)[0]
    for op in (operator.iadd, operator.isub, operator.imul, operator.ifloordiv, operator.ior):
        if left == "float32" and op is operator.ior:
            continue
        for values in (np.asarray([100, 1, 2], right), np.asarray(100, right)):
            x = namespace.enter(np.asarray([1, 2, 3], left))
            with pytest.raises(TypeError):
                op(x, namespace.enter(values))
            assert namespace.left(x).tolist() == [1, 2, 3]
    x = namespace.enter(np.asarray([1, 2, 3], right))
    if (left, right) != ("uint8", "int8"):
        x += namespace.enter(np.asarray([1, 2, 3], left))
        assert namespace.left(x).tolist() == [2, 4, 6]
        assert namespace.dtype_name(x) == right


@each_library
def test_what_fits_passes(library: str) -> None:
    namespace = namespaces(library)[0]
    for dtype in INTEGERS:
        limits = np.iinfo(dtype)
        x = namespace.enter(np.zeros(3, dtype))
        for value in (int(limits.min), int(limits.max), 0, Number(5)):
            x[0] = value
            assert namespace.left(x).tolist() == [value, 0, 0]
            assert namespace.left(x[:1] | value).tolist() == [value]
            assert namespace.left(namespace.xp.full(1, value, dtype=x.dtype)).tolist() == [value]
        x[...] = [1, 2, 3]
        assert namespace.left(x).tolist() == [1, 2, 3]


@each_library
def test_numbers_of_numpy_and_subclasses(library: str) -> None:
    """As Python's; beside NumPy's arrays, and JAX's on the native namespace, they have a dtype."""
    for namespace in namespaces(library):
        x = namespace.enter(np.asarray([1, 2, 3], "uint8"))
        own = library == "numpy" or (library == "jax" and namespace is namespaces(library)[1])
        for value in np.int64(300), np.uint64(2**63), np.int16(-1), Number(300), Name.LARGE:
            if own and (library == "numpy" or isinstance(value, np.generic)):
                continue
            for name, *args in ("add", x, value), ("maximum", value, x):
                with pytest.raises(OverflowError):
                    namespace.function(name)(*args)
        if not own:
            for value in np.int64(3), np.uint64(3), Number(3):
                assert namespace.dtype_name(namespace.xp.add(x, value)) == "uint8"
                assert namespace.left(namespace.xp.multiply(value, x)).tolist() == [3, 6, 9]
        truths = namespace.enter(np.asarray([True, False]))
        assert namespace.dtype_name(namespace.xp.equal(truths, np.True_)) == "bool"
        if library != "array_api_strict":  # which refuses complex numbers beside real ones
            ones = namespace.enter(np.ones(2, "complex64"))
            sums = namespace.left(namespace.xp.add(ones, np.complex64(1j)))
            assert sums.dtype == "complex64"
            assert sums.tolist() == [1 + 1j] * 2
            product = namespace.xp.multiply(x, np.complex64(1j))
            assert namespace.left(product).tolist() == [1j, 2j, 3j]
        for value in np.datetime64(1, "ns"), np.timedelta64(1, "ns"), np.str_("1"):
            if namespace is namespaces(library)[0]:
                with pytest.raises(TypeError, match="a number"):
                    namespace.xp.add(x, value)
    x = namespaces(library)[0].enter(np.ones(2))
    for found in x + np.longdouble(1.5), np.longdouble(1.5) + x:
        assert namespaces(library)[0].left(found).tolist() == [2.5, 2.5]


def test_under_torch_compile() -> None:
    import arraybridge.xp.torch as xp

    def function(t: torch.Tensor) -> torch.Tensor:
        x = xp.asarray(t) + 1000
        x[0] = 2000
        return xp.where(x > 1001, x, 3000).native

    promotion._of_torch.clear()
    assert f"{ab.from_dlpack(torch.tensor(2)):d}" == "2"  # remembers torch's own dtype, no DType
    t = torch.arange(4)
    compiled = torch.compile(function, fullgraph=True, backend="eager")
    assert compiled(t).tolist() == function(t).tolist() == [2000, 3000, 1002, 1003]
    assert (ab.from_dlpack(t) < 2**70).native.all()


WIDE = {
    "uint64": st.integers(2**63, 2**64 - 1),
    **{
        name: st.integers(2**63, 2**100) | st.integers(-(2**100), -(2**63) - 1)
        for name in ("float32", "float64", "complex64", "complex128")
    },
}


FUNCTIONS = {
    "add": ((), "same"),
    "multiply": ((), "same"),
    "subtract": ((), "same"),
    "equal": ((), "bool"),
    "less_equal": (("complex64", "complex128"), "bool"),
    "maximum": (("complex64", "complex128"), "same"),
    "where": ((), "same"),
}


BY_OPERATORS = (operator.add, operator.mul, operator.sub, operator.eq, operator.iadd)


@each_library
@pytest.mark.parametrize("dtype", WIDE)
def test_large_integers_are_of_the_array_s_data_type(dtype: str, library: str) -> None:
    """Functions on both namespaces, operators and writing on Arrays; as NumPy."""
    x = np.asarray([3, 0, 1], dtype)
    mask = np.asarray([True, False, True])

    def hold(namespace: Any, found: Any, expected: Any, kind: str) -> None:
        np.testing.assert_array_equal(namespace.left(found), expected)
        assert namespace.dtype_name(found) == (dtype if kind == "same" else kind)

    @settings(max_examples=3 if library == "jax" else 10, deadline=None)
    @given(value=WIDE[dtype])
    @example(value=2**63)
    def agrees(value: int) -> None:
        for namespace in namespaces(library):
            array = namespace.enter(x)
            for name, (never, kind) in FUNCTIONS.items():
                if dtype in never:
                    continue
                before = (namespace.enter(mask),) if name == "where" else ()
                plain = (mask,) if name == "where" else ()
                for order in (1, -1):
                    args, native = (x, value)[::order], (array, value)[::order]
                    expected = getattr(np, name)(*plain, *args)
                    hold(namespace, namespace.function(name)(*before, *native), expected, kind)
            made = namespace.xp.full((2,), value, dtype=getattr(namespace.xp, dtype))
            hold(namespace, made, np.full((2,), value, dtype), "same")
            hold(namespace, namespace.xp.full_like(array, value), np.full_like(x, value), "same")
        wrapped = namespaces(library)[0]
        for op in BY_OPERATORS:
            kind = "bool" if op is operator.eq else "same"
            hold(wrapped, op(wrapped.enter(x), value), op(x.copy(), value), kind)
            if op is not operator.iadd:
                hold(wrapped, op(value, wrapped.enter(x)), op(value, x), kind)
        array, expected = wrapped.enter(x), x.copy()
        array[1] = expected[1] = value
        hold(wrapped, array, expected, "same")

    with np.errstate(over="ignore"):
        agrees()


@pytest.mark.parametrize("dtype", ["uint32", "float32", "complex64"])
def test_beyond_int32_with_x64_off(dtype: str) -> None:
    """JAX takes integers for int32 then."""
    x = np.ones(2, dtype)
    with jax.enable_x64(False):
        for namespace in namespaces("jax"):
            array = namespace.enter(x)
            for value in (2**31, 0x9E3779B9, 2**32 - 1):
                for name in ("multiply", "maximum" if dtype != "complex64" else "add", "equal"):
                    found = namespace.left(namespace.function(name)(array, value))
                    np.testing.assert_array_equal(found, getattr(np, name)(x, value))
        wrapped = namespaces("jax")[0]
        array = wrapped.enter(x)
        np.testing.assert_array_equal(wrapped.left(array * 0x9E3779B9), x * 0x9E3779B9)
        array[0] = 2**31
        assert wrapped.left(array)[0] == 2**31
        with pytest.raises(OverflowError):
            wrapped.enter(np.ones(2, "int32")) + 2**40
