"""What is no index, no number, no data type of the standard: one error on every library."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from .support.faces import each_library, faces

pytestmark = pytest.mark.usefixtures("x64")

MASKED = np.ma.array([1.0, 2.0], mask=[0, 1])
NO_NUMBERS = [
    MASKED,
    np.ma.masked,
    np.array(["2020", "2021"], "M8[Y]"),
    np.array([1, None]),
    np.datetime64(1, "ns"),
    np.timedelta64(1, "s"),
    np.str_("a"),
]


@each_library
def test_indices_are_no_fractions(library: str) -> None:
    wrapped = faces(library)[0]
    x = wrapped.enter(np.asarray([10.0, 20.0, 30.0]))
    array = wrapped.enter(np.asarray([0.7, 1.9]))
    for key in (array, array[0], [0.7, 1.9], 1.7, np.float32(1.7), [[0, 1], [1, 1.5]]):
        for index in (key, (key,), (..., key)):
            with pytest.raises(IndexError):
                x[index]
            with pytest.raises(IndexError):
                x[index] = 5.0
    assert wrapped.left(x).tolist() == [10, 20, 30]


@each_library
@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda x: type(x).__name__)
def test_what_is_written_is_numbers(value: Any, library: str) -> None:
    wrapped = faces(library)[0]
    x = wrapped.enter(np.asarray([0.0, 0.0]))
    with pytest.raises((TypeError, BufferError)):
        x[:] = value
    assert wrapped.left(x).tolist() == [0, 0]


@each_library
def test_numpy_scalars_and_arrays_are_written(library: str) -> None:
    wrapped = faces(library)[0]
    x = wrapped.enter(np.asarray([0.0, 0.0]))
    x[0] = np.float32(3)
    assert wrapped.left(x).tolist() == [3, 0]
    for value in (np.asarray([1.0, 2.0], "f4"), np.asarray([1, 2], ">f4")):
        x[:] = 0
        x[:] = value
        assert wrapped.left(x).tolist() == [1, 2]


def test_numpy_scalars_beside_tensors() -> None:
    wrapped, native = faces("torch")
    four = torch.tensor(4.0)
    for face, one in ((wrapped, wrapped.xp.asarray(four)), (native, four)):
        for scalar, dtype in ((np.float32(3), "float32"), (np.float64(3), "float64")):
            made = face.xp.asarray([one, scalar])
            assert face.dtype_name(made) == dtype
            assert face.left(made).tolist() == [4, 3]
        assert face.left(face.xp.asarray([[one, 2], [np.int8(3), True]])).tolist() == [
            [4, 2],
            [3, 1],
        ]


@each_library
@pytest.mark.parametrize("values", [[True, False], [1j, 2]], ids=["bool", "complex"])
def test_isin_of_bool_and_complex(values: list[complex], library: str) -> None:
    for face in faces(library):
        x = face.enter(np.asarray(values))
        try:
            found = face.xp.isin(x, x[:1])
        except TypeError:
            assert library == "array_api_strict"  # which takes integers alone
            continue
        assert face.left(found).tolist() == [True, False]
        assert face.left(face.xp.isin(x, x[:1], invert=True)).tolist() == [False, True]
