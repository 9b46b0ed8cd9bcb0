"""Operators and indexing of Arrays over NumPy: the slots in C give what the Python methods give."""

from __future__ import annotations

import copy
import gc
import operator
import pickle
import subprocess
import sys
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arraybridge as ab
from arraybridge.array.operators import OPERATORS
from arraybridge.native import C
from arraybridge.xp import numpy as xp

CLASS: Any = type(xp.zeros(1))
# Classes that are derived have the Python methods; the same name, as texts of errors have it.
PYTHON: Any = type(CLASS.__name__, (CLASS,), {"__slots__": ()})

DTYPES = "? b B h H i I l L q Q e f d g F D G >i2 >f8".split()
try:
    import ml_dtypes
except ImportError:
    pass
else:
    DTYPES += [np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.int4)]


class Whole(int):
    """Not an int of Python's own."""


ODD = (None, "text", [1, 2], (1,), Whole(3), np.float32(1.5), np.int8(-1), np.ones(2), object)

numbers = st.one_of(
    st.booleans(),
    st.integers(-3, 3),
    st.builds(
        lambda bits, sign, by: sign * 2**bits + by,
        st.integers(0, 70),
        st.sampled_from([1, -1]),
        st.integers(-1, 1),
    ),
    st.floats(),
    st.complex_numbers(),
)


@st.composite
def natives(draw: Any) -> np.ndarray:
    shape = draw(st.sampled_from([(), (1,), (2,), (3,), (2, 2), (2, 3), (0,)]))
    x = np.asarray(draw(st.lists(st.integers(-3, 7), min_size=6, max_size=6)))
    x = x[: np.prod(shape, dtype=int)].reshape(shape)
    with np.errstate(all="ignore"):
        x = x.astype(draw(st.sampled_from(DTYPES)))
    return x[::-1] if x.ndim and draw(st.booleans()) else x


def outcome(cls: Any, function: Any, *operands: Any) -> Any:
    """What comes of it, of whichever class; operands that are arrays in a list stand for Arrays."""
    operands = tuple(
        cls._of(x[0].copy()) if isinstance(x, list) and len(x) == 1 else x for x in operands
    )
    try:
        with np.errstate(all="ignore"):
            result = function(*operands)
    except Exception as error:
        return type(error), str(error)
    if not isinstance(result, CLASS):
        return type(result), repr(result)
    assert type(result) is cls
    native = result._native
    assert type(native) is np.ndarray
    return native.dtype, native.shape, native.strides, native.flags.num, repr(native.tolist())


def check(function: Any, *operands: Any) -> None:
    assert outcome(CLASS, function, *operands) == outcome(PYTHON, function, *operands)


def by_name(name: str) -> Any:
    """A method, called."""
    return lambda x, *others: getattr(x, name)(*others)


binary = [op for op in OPERATORS if op.forms != "unary"]
unary = [op for op in OPERATORS if op.forms == "unary"]


@given(natives(), natives(), st.sampled_from(binary))
def test_of_two_arrays(x: np.ndarray, y: np.ndarray, op: Any) -> None:
    check(op.plain, [x], [y])
    for name in op.methods:
        check(by_name(name), [x], [y])


@given(natives(), st.one_of(numbers, st.sampled_from(ODD)), st.sampled_from(binary))
def test_of_an_array_and_something(x: np.ndarray, y: Any, op: Any) -> None:
    check(op.plain, [x], y)
    check(op.plain, y, [x])
    for name in op.methods:
        check(by_name(name), [x], y)
    if op.forms == "arithmetic":
        check(getattr(operator, f"__i{op.name}__"), [x], y)


@given(natives(), st.sampled_from(unary))
def test_of_one_array(x: np.ndarray, op: Any) -> None:
    check(op.plain, [x])


parts = st.one_of(
    st.integers(-4, 4),
    st.slices(3),
    st.sampled_from(
        [None, ..., True, False, 2**70, 1.0, np.int64(1), Whole(1), (0, 1), [0, 1], "a"]
    ),
)


@given(natives(), st.one_of(parts, st.lists(parts, max_size=3).map(tuple)))
def test_elements(x: np.ndarray, key: Any) -> None:
    check(operator.getitem, [x], key)


@given(natives(), natives())
def test_elements_by_an_array(x: np.ndarray, key: np.ndarray) -> None:
    check(operator.getitem, [x], [key])


def test_views_are_views() -> None:
    x = xp.arange(6)
    x[1:4][0] = 10
    assert x[1] == 10
    assert x[..., None]._native.base is not None
    assert x[2]._native.base is None
    assert x[xp.asarray([True] * 6)]._native.base is None


@pytest.mark.parametrize("modulus", [5, None])
def test_power_of_three_operands(modulus: Any) -> None:
    x = xp.arange(3)
    if modulus is None:
        assert list(map(int, pow(x, 2, modulus))) == [0, 1, 4]
        return
    with pytest.raises(TypeError):
        pow(x, 2, modulus)
    with pytest.raises(TypeError):
        pow(2, x, modulus)


def test_errors_of_floating_point_are_numpys() -> None:
    x = xp.asarray([1.0, 0.0])
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        1 / x
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        1 / x


def test_an_array_without_a_native_array() -> None:
    x = CLASS()
    for function in (
        lambda: x + 1,
        lambda: 1 + x,
        lambda: x + x,
        lambda: -x,
        lambda: x[0],
        lambda: x == x,
    ):
        with pytest.raises(AttributeError, match="_native"):
            function()
    x._native = np.ones(2)
    assert float((x + x)[0]) == 2


def test_an_array_that_changes_its_class() -> None:
    x = PYTHON._of(np.ones(2))
    assert type(CLASS.__add__(x, CLASS._of(np.ones(2)))) is CLASS
    x.__class__ = CLASS
    assert type(x + x) is type(x[:1]) is CLASS
    x.__class__ = PYTHON
    assert type(x + x) is type(x[:1]) is PYTHON


def test_other_arrays_are_asked() -> None:
    class Other:
        __array_priority__ = 10

        def __radd__(self, other: Any) -> str:
            return "radd"

        def __eq__(self, other: object) -> Any:
            return "eq"

    x = xp.ones(2)
    assert x + Other() == "radd"
    assert (x == Other()) == "eq"
    bare: Any = ab.from_dlpack(memoryview(np.ones(2)).obj.__dlpack__(max_version=(1, 0)))
    assert type(bare).__name__ == "Array"
    assert type(x + bare) is type(bare + x) is CLASS
    assert x.__radd__(bare).shape == (2,)


def test_it_can_be_copied_pickled_and_referred_to() -> None:
    x = xp.arange(3) + 1
    for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(y) is CLASS
        assert bool(xp.all(x == y))
    reference = weakref.ref(x[1:])
    assert reference() is None
    with pytest.raises(TypeError):
        hash(x)
    del x._native
    assert not hasattr(x, "_native")


def test_cycles_by_way_of_the_native_array_are_collected() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.ones(2)
    tensor.array = ab.from_dlpack(tensor)
    reference = weakref.ref(tensor.array)
    del tensor
    gc.collect()
    assert reference() is None


@pytest.mark.skipif(C is None, reason="no extension")
def test_each_slot_stands_in_its_class() -> None:
    for name in (
        name
        for op in OPERATORS
        for name in op.methods
        if not name.startswith("__i") or name == "__invert__"
    ):
        assert vars(CLASS)[name] is vars(C.Slots)[name]
        assert name not in vars(PYTHON) or vars(PYTHON)[name] is not vars(C.Slots)[name]


BARE = """
from arraybridge.native import C
import arraybridge as ab, numpy as np
for _ in range(2):  # before there is a class over NumPy, and with one
    bare = C.Slots()
    assert bare == bare and bare != 1
    for wrong in ("-bare", "bare + bare", "1 + bare", "bare ** 2", "bare < bare", "bare[0]"):
        try:
            eval(wrong)
        except TypeError:
            continue
        raise AssertionError(wrong)
    ab.from_dlpack(np.ones(3))
"""

ANEW = """
import sys
import numpy as np
import arraybridge
x = arraybridge.from_dlpack(np.ones(3))
for name in [name for name in sys.modules if name.split(".")[0] == "arraybridge"]:
    del sys.modules[name]
import arraybridge
y = arraybridge.from_dlpack(np.ones(3))
for z in x, y:
    assert bool((z + z == 2 - z * 0)[0]) and float((-z)[1]) == -1 and bool((z < 2)[2])
"""


@pytest.mark.skipif(C is None, reason="without the extension")
@pytest.mark.parametrize("program", [BARE, ANEW], ids=["bare", "anew"])
def test_in_a_process_of_its_own(program: str) -> None:
    """The root without an Array, and a second import of the package, as test runners make."""
    subprocess.run([sys.executable, "-c", program], check=True)
