"""Every function of every namespace against NumPy, by one table: `support.functions`."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import arraybridge as ab
from tests.support import checks
from tests.support.functions import TABLE, Row
from tests.support.namespaces import each_function, each_library, namespaces
from tests.support.optional import needs
from tests.support.recipes import DTYPES, Call, Pick
from tests.unit.xp.test_xp_standard import TEMPLATES

pytestmark = pytest.mark.usefixtures("x64")

# JAX compiles every function for every shape and data type, which takes 20 ms or more.
EXAMPLES = {"numpy": 8, "array_api_strict": 6, "torch": 8, "jax": 2}


def test_every_function_has_a_row():
    assert set(TABLE) == set(TEMPLATES)


# PyTorch says so of every count of complex numbers, ord=0.
@pytest.mark.filterwarnings("ignore:Casting complex values to real")
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
    info = wrapped.xp.__array_namespace_info__()
    defaults = {k: str(v).rpartition(".")[2] for k, v in info.default_dtypes().items()}
    for namespace in (wrapped, native):
        args, kwargs = namespace.taken(call)
        result = namespace.function(row.name)(*args, **kwargs)
        row.equal(namespace.left(result) if row.gives else result, expected, call)
        if row.gives:
            arrays, theirs = namespace.arrays_of([result]), checks.arrays_of([expected])
            rules = row.gives if isinstance(row.gives, tuple) else (row.gives,) * len(arrays)
            wanted = [
                checks.dtype_of(rule, like, call, defaults)
                for rule, like in zip(rules, theirs, strict=True)
            ]
            assert [namespace.dtype_name(x) for x in arrays] == wanted
        after = [namespace.left(x) for x in namespace.arrays_of([args, kwargs])]
        checks.exact(tuple(after), tuple(checks.arrays_of(call)), call)  # none has changed


@each_library
@pytest.mark.parametrize("namespace", ["wrapped", "native"])
def test_shapes_that_do_not_broadcast(namespace, library):
    """A ValueError that says so, on every library; PyTorch's own is a RuntimeError."""
    xp = namespaces(library)[namespace == "native"].xp
    x, y = xp.zeros((2, 3)), xp.zeros((2,))
    for refused in (
        lambda: xp.broadcast_shapes((2, 3), (2,)),
        lambda: xp.broadcast_arrays(x, y),
        lambda: xp.broadcast_to(y, (2, 3)),
        lambda: xp.broadcast_to(x, (3,)),
    ):
        with pytest.raises(ValueError):  # noqa: PT011 -- the words are each library's own
            refused()
    assert xp.broadcast_to(y, (3, 2)).shape == xp.broadcast_arrays(y, xp.zeros((3, 1)))[0].shape


@needs("torch")
def test_a_sum_is_two_calls_above_the_librarys() -> None:
    """It is the library's own, or one correction; for an Array behind the one that unwraps it."""
    import torch

    here, depths = sys._getframe().f_code, list[int]()

    def profile(frame: FrameType | None, event: str, called: Any) -> None:
        if event == "c_call" and called.__name__ == "sum":
            depths.append(0)
            while frame is not None and frame.f_code is not here:
                frame, depths[-1] = frame.f_back, depths[-1] + 1

    for x in (torch.ones(3), ab.from_dlpack(torch.ones(3))):
        xp = ab.namespace(x)
        xp.sum(x)
        sys.setprofile(profile)
        try:
            xp.sum(x)
        finally:
            sys.setprofile(None)
    assert len(depths) == 2
    assert max(depths) <= 2
