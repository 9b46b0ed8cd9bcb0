"""The look-ups before public functions, and the signatures that they find entries by."""

from __future__ import annotations

import copy
import inspect
import pickle
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arraybridge as ab
from arraybridge.core.registry import library_named

NUMPY = library_named("numpy")


@pytest.mark.parametrize("function", [ab.convert, ab.contiguous])
def test_is_a_function_to_whoever_looks(function) -> None:
    assert inspect.isroutine(function)
    assert next(iter(inspect.signature(function).parameters)) == "x"
    assert function.__module__.startswith("arraybridge.")
    assert function.__doc__
    assert pickle.loads(pickle.dumps(function)) is function
    assert copy.deepcopy(function) is function


def test_as_an_attribute_of_a_class_it_is_a_method() -> None:
    class Holder:
        contiguous = ab.contiguous

    assert Holder.contiguous is ab.contiguous
    with pytest.raises(TypeError):
        Holder().contiguous(np.ones(3))  # the holder is its array


@pytest.mark.parametrize("wrong", [(), (1, 2, 3)])
def test_errors_of_calls_are_pythons(wrong) -> None:
    with pytest.raises(TypeError, match=r"contiguous\(\)"):
        ab.contiguous(*wrong)
    with pytest.raises(TypeError, match="no_such"):
        ab.convert(np.ones(2), "numpy", no_such=1)


@st.composite
def layouts(draw) -> np.ndarray:
    x = np.zeros(
        draw(st.lists(st.integers(0, 3), max_size=4)),
        draw(st.sampled_from(["?", "b", "h", "d", ">f4", "O"])),
    )
    steps = [slice(None, None, draw(st.sampled_from([1, 2, -1]))) for _ in x.shape]
    x = x[(*steps, ...)]
    x = x.transpose(draw(st.permutations(range(x.ndim))))
    x.flags.writeable = draw(st.booleans())
    return x


@given(layouts())
def test_a_signature_says_what_the_description_says(x: np.ndarray) -> None:
    key = NUMPY.signature(x)
    if key is None or x.dtype.char == "O":
        return
    said, info = NUMPY.decode(key), NUMPY.describe(x)
    for name in ("dtype", "ndim", "readonly", "c_contiguous", "f_contiguous", "empty", "pending"):
        assert getattr(said, name) == getattr(info, name), name
    if said.knows("negative") and 0 not in x.shape and 1 not in x.shape:
        assert said.negative == (min(x.strides, default=0) < 0)


def test_it_can_be_referred_to_weakly() -> None:
    assert weakref.ref(ab.convert)() is ab.convert


def test_an_interrupt_while_an_entry_is_found_is_no_miss() -> None:
    class Target(str):
        asked = 0

        def __hash__(self) -> int:
            self.asked += 1
            if self.asked == 1:
                raise KeyboardInterrupt
            return super().__hash__()

    ab.convert(np.ones(3), "numpy")  # from here on arrays of NumPy have entries
    with pytest.raises(KeyboardInterrupt):
        ab.convert(np.ones(3), Target("numpy"))
