"""Every function that takes a data type: as the namespace's object, and as an instance."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from arraybridge.xp.standard import functions_of
from arraybridge.xp.standard.data_types import DATA_TYPES, KINDS

from .support.faces import Face, each_library, faces

pytestmark = pytest.mark.usefixtures("x64")

REAL = (*KINDS["integral"], *KINDS["real floating"])

# What takes a data type: how it is called with an array and a data type, and with which ones.
CALLS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "arange": (lambda f, x, d: f(3, dtype=d), REAL),
    "asarray": (lambda f, x, d: f(x, dtype=d), DATA_TYPES),
    "astype": (lambda f, x, d: f(x, d, copy=False), DATA_TYPES),
    "eye": (lambda f, x, d: f(2, dtype=d), DATA_TYPES),
    "full": (lambda f, x, d: f((2,), True, dtype=d), DATA_TYPES),
    "full_like": (lambda f, x, d: f(x, True, dtype=d), DATA_TYPES),
    "linspace": (lambda f, x, d: f(0, 4, 3, dtype=d), KINDS["real floating"]),
    "linalg.trace": (lambda f, x, d: f(x, dtype=d), KINDS["numeric"]),
    "fft.fftfreq": (lambda f, x, d: f(3, dtype=d), KINDS["real floating"]),
    "fft.rfftfreq": (lambda f, x, d: f(3, dtype=d), KINDS["real floating"]),
    **{name: (lambda f, x, d: f((2,), dtype=d), DATA_TYPES) for name in ("empty", "ones", "zeros")},
    **{
        f"{name}_like": (lambda f, x, d: f(x, dtype=d), DATA_TYPES)
        for name in ("empty", "ones", "zeros")
    },
    **{name: (lambda f, x, d: f(x, dtype=d), KINDS["numeric"]) for name in ("prod", "sum")},
    **{
        f"cumulative_{name}": (lambda f, x, d: f(x, axis=0, dtype=d), KINDS["numeric"])
        for name in ("prod", "sum")
    },
}


def takes_dtype(template: Any) -> bool:
    parameters = inspect.signature(template).parameters
    return "dtype" in parameters and template.__annotations__["return"] == "Array"


def test_every_function_that_takes_a_dtype_is_called():
    face = faces("array_api_strict")[0].xp
    assert {path for _, path, _, t in functions_of(face) if takes_dtype(t)} == set(CALLS)


def spellings(face: Face, name: str) -> dict[str, Any]:
    own = getattr(face.xp, name)
    instance = face.xp.zeros((1,), dtype=own).dtype
    return {
        "the namespace's": own,
        "an array's": instance,
        "result_type's": face.xp.result_type(instance, instance),
    }


@each_library
@pytest.mark.parametrize("path", CALLS)
def test_a_dtype_is_taken_however_it_is_written(path, library):
    """``np.dtype("float64")`` equals None: asked for by an instance, it was not asked for."""
    call, names = CALLS[path]
    if library == "jax":  # which compiles for each
        names = tuple(n for n in names if n in ("bool", "int8", "int64", "float64", "complex128"))
    for face in faces(library):
        function = face.function(path)
        for source in ("int64", "float32", "float64"):
            x = face.enter(np.ones((2, 2), source))
            for name in names:
                for spelling, dtype in spellings(face, name).items():
                    result = call(function, x, dtype)
                    assert face.dtype_name(result) == name, (source, spelling)


@pytest.mark.parametrize("library", ["numpy", "jax"])
@pytest.mark.parametrize("path", CALLS)
def test_numpys_own_dtypes_are_taken(path, library):
    call, names = CALLS[path]
    for face in faces(library):
        x = face.enter(np.ones((2, 2), "float32"))
        for name in set(names) & {"int64", "float64", "complex128"}:
            result = call(face.function(path), x, np.dtype(name))
            assert face.dtype_name(result) == name


@each_library
def test_asarray_of_its_own_kind_is_the_array_itself(library):
    """Of the dtype and the device that it has, however they are written."""
    face = faces(library)[0]
    for name in ("int32", "float64"):
        x = face.enter(np.ones((2, 2), name))
        for dtype in (None, *spellings(face, name).values()):
            assert face.xp.asarray(x, dtype=dtype) is x
            assert face.xp.asarray(x, dtype=dtype, device=x.device) is x
            assert face.xp.asarray(x, dtype=dtype, copy=True) is not x
