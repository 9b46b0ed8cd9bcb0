"""Large Python integers beside arrays whose data type holds them, on every library."""

from __future__ import annotations

import operator
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.namespaces import each_library, namespaces

pytestmark = pytest.mark.usefixtures("x64")

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
OPERATORS = (operator.add, operator.mul, operator.sub, operator.eq, operator.iadd)


@each_library
@pytest.mark.parametrize("dtype", WIDE)
def test_are_of_the_array_s_data_type(dtype: str, library: str) -> None:
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
        for op in OPERATORS:
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
