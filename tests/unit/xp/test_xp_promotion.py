"""``result_type`` names the data type that ``A + B`` has, or raises TypeError, on every library."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.support.namespaces import each_library, namespaces
from tests.support.optional import optional

torch = optional("torch")
pytestmark = pytest.mark.usefixtures("x64")

NAMES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
    "complex64 complex128".split()
)
STANDARD = [name for name in NAMES if name not in ("float16", "bfloat16")]
SCALARS = (True, 3, 1.5, 2j, np.float32(1), np.float64(1), np.int64(1), np.complex64(1))


def dtypes(library: str, xp: Any) -> dict[str, Any]:
    """The data types of a library: the standard's, and what else it computes with."""
    found = {name: getattr(xp, name, None) for name in NAMES}
    if library == "jax":
        ml_dtypes = pytest.importorskip("ml_dtypes")
        found |= {"float16": np.dtype("f2"), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
    if library == "torch":
        found |= {"float16": torch.float16, "bfloat16": torch.bfloat16}
        found |= {"complex32": torch.complex32}
    return {name: dtype for name, dtype in found.items() if dtype is not None}


def answer(call, *args):
    """What a call returns; TypeError if it raises any error."""
    try:
        return call(*args)
    except Exception as error:
        return TypeError if isinstance(error, TypeError | RuntimeError) else type(error)


def added(x, y):
    """The data type of a sum; a library may have none of it, as array-api-strict of bools."""
    try:
        return (x + y).dtype
    except (TypeError, RuntimeError, NotImplementedError):
        return TypeError


@each_library
@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_result_type_is_that_of_a_sum(library):
    arrays, native = namespaces(library)
    xp = arrays.xp
    quick = ("int8", "uint64", "float16", "complex64")  # of libraries that compile for each
    slow = library in ("jax", "dpnp")
    known = {n: d for n, d in dtypes(library, xp).items() if n in quick or not slow}
    made = {
        (name, axes): xp.zeros((2,) * axes, dtype=dtype)
        for name, dtype in known.items()
        for axes in (0, 1)
    }
    for (first, x), (second, y) in itertools.product(made.items(), repeat=2):
        wanted = added(x, y)
        if wanted is TypeError and first[0] == second[0] == "bool":
            continue  # which array-api-strict adds none of
        for a, b in ((x, y), (x, y.dtype), (x.dtype, y), (x.dtype, y.dtype)):
            assert answer(xp.result_type, a, b) == wanted, (first, second, type(a), type(b))
        for a, b in ((x.native, y.native), (x.native.dtype, y.native.dtype)):
            assert answer(native.xp.result_type, a, b) == wanted, (first, second, type(a))
        if wanted is not TypeError:
            assert answer(xp.result_type, x, y, x.dtype) == added(x + y, x)


@each_library
@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_scalars_are_of_the_kind_and_have_no_width(library):
    arrays, native = namespaces(library)
    xp = arrays.xp
    for name, dtype in dtypes(library, xp).items():
        if library in ("jax", "dpnp") and name not in ("int8", "bfloat16", "float32"):
            continue
        for axes, scalar in itertools.product((0, 1), SCALARS):
            x = xp.zeros((2,) * axes, dtype=dtype)
            wanted = added(x, scalar)
            if wanted is TypeError:
                continue  # array-api-strict adds no numbers of a higher kind
            for args in ((x, scalar), (scalar, x), (x.dtype, scalar)):
                assert answer(xp.result_type, *args) == wanted, (name, axes, scalar)
            if not isinstance(scalar, np.generic):  # of which the library's own rule holds
                assert answer(native.xp.result_type, x.native, scalar) == wanted


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_functions_of_two_arrays_promote_alike():
    xp = namespaces("torch")[0].xp
    known = dtypes("torch", xp)
    functions = (
        xp.multiply, xp.matmul, xp.vecdot, xp.linalg.outer,
        lambda x, y: xp.tensordot(x, y, axes=1),
        lambda x, y: xp.where(xp.asarray([True, False]), x, y),
        lambda x, y: xp.concat([x, y]),
        lambda x, y: xp.stack([x, y]),
    )  # fmt: skip
    for one, another in itertools.product(known, repeat=2):
        if one == another:
            continue
        x, y = (xp.ones(2, dtype=known[name]) for name in (one, another))
        common = answer(xp.result_type, x, y)
        for function in functions:
            made = answer(function, x, y)
            if isinstance(made, type):  # complex32 has few functions
                assert common is TypeError or "complex32" in (one, another)
            else:
                assert made.dtype == common, (function, one, another)


def test_arrays_of_no_axes_count_as_the_others():
    """PyTorch's own would keep float16 beside a float32 of no axes, int8 beside such a uint64."""
    xp = namespaces("torch")[0].xp
    half, single = (
        type(xp.ones(1))._of(torch.ones(shape, dtype=dtype))
        for shape, dtype in (((3,), torch.float16), ((), torch.float32))
    )
    assert (half + single).dtype == (single + half).dtype == xp.float32
    assert (xp.ones(3, dtype=xp.int8) + xp.ones((), dtype=xp.uint64)).dtype == xp.float64
    with pytest.raises(TypeError, match="in-place add would change the dtype"):
        half += single
    assert xp.can_cast(torch.float16, torch.float32)
    assert not xp.can_cast(torch.float32, torch.float16)
    assert not xp.can_cast(xp.int8, xp.uint64)


def test_result_type_of_several_is_the_same_in_any_order():
    """No pair of these determines the dtype of all together; nor may the order of the arguments."""
    xp = pytest.importorskip("arraybridge.xp.torch")
    for names in itertools.combinations(STANDARD, 3):
        dtypes = [getattr(xp, name) for name in names]
        found = {xp.result_type(*each) for each in itertools.permutations(dtypes)}
        assert len(found) == 1, (names, found)
    assert xp.result_type(xp.float32, xp.int8, xp.uint64) == xp.float64
    assert xp.result_type(xp.complex64, xp.int8, xp.uint32) == xp.complex64
