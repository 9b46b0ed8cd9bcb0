"""Elementwise functions of every namespace against NumPy, by the table of `support.functions`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import checks
from tests.support.functions import TABLE, Row
from tests.support.namespaces import each_function, each_library, namespaces
from tests.support.optional import needs
from tests.support.recipes import DTYPES, Call, Pick

pytestmark = pytest.mark.usefixtures("x64")

# JAX compiles every function for every shape and data type, which takes 20 ms or more.
EXAMPLES = {"numpy": 8, "array_api_strict": 6, "torch": 8, "jax": 2}


@each_function(TABLE)
def test_agrees(name, library):
    """Values, data types and types of the results, on both namespaces; the arguments stay."""
    row = TABLE[name]

    @settings(max_examples=EXAMPLES.get(library, 5), deadline=None)
    @given(st.data())
    def agrees(data):
        call = row.recipe(Pick(data.draw, row.kinds, few=library == "jax"))
        hold(row, call, library)

    agrees()


INTEGRAL = [name for name, row in TABLE.items() if {*DTYPES["integral"]} <= {*DTYPES[row.kinds]}]


@needs("torch")
@pytest.mark.parametrize("name", INTEGRAL)
@settings(max_examples=24, deadline=None)
@given(data=st.data())
def test_integers_of_torch(name, data):
    """Which has few functions of uint16, uint32 and uint64, and adds none of them to others."""
    row = TABLE[name]
    hold(row, row.recipe(Pick(data.draw, "integral", few=False)), "torch")


def hold(row: Row, call: Call, library: str) -> None:
    """Hold what both namespaces of a library give against the reference."""
    expected = row.expected(call)
    wrapped, native = namespaces(library)
    for namespace in (wrapped, native):
        args, kwargs = namespace.taken(call)
        for x in namespace.arrays_of([args, kwargs]) if library == "numpy" else ():
            getattr(x, "native", x).setflags(write=False)
        result = namespace.function(row.name)(*args, **kwargs)
        row.equal(namespace.left(result), expected, call)
        assert namespace.dtype_name(result) == checks.dtype_of(row.gives, call)
        after = [namespace.left(x) for x in namespace.arrays_of([args, kwargs])]
        checks.exact(tuple(after), tuple(checks.arrays_of(call)), call)  # none has changed


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
