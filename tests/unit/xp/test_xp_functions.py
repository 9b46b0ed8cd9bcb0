"""Elementwise functions of every namespace against NumPy, by the table of `support.functions`."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import checks
from tests.support.functions import TABLE, Row
from tests.support.namespaces import each_function, namespaces
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
        result = namespace.function(row.name)(*args, **kwargs)
        row.equal(namespace.left(result), expected, call)
        assert namespace.dtype_name(result) == checks.dtype_of(row.gives, call)
        after = [namespace.left(x) for x in namespace.arrays_of([args, kwargs])]
        checks.exact(tuple(after), tuple(checks.arrays_of(call)), call)  # none has changed
