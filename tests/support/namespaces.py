"""The namespaces under test: each library's two namespaces, and values in and out of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.xp.standard.data_types import DATA_TYPES
from tests.conformance import UNDERNEATH

from . import coexist

HEAVY = {"dpnp"}
# array-api-strict is not corrected: tests/integration/test_library_array_api_strict.py.
COMPUTING = [name for name in UNDERNEATH if name != "array_api_strict"]


def corrections_of(library: str) -> dict[str, Callable[..., Any]]:
    """The corrected functions of a library's native namespace."""
    module = import_module(f"arraybridge.libraries.{library}.namespace")
    return getattr(module, "CORRECTIONS", {})


@functools.cache
def installed() -> tuple[str, ...]:
    """The libraries that load and can make an array here."""
    coexist.prepare()
    found = []
    for library in COMPUTING:
        try:
            import_module(UNDERNEATH[library]).zeros((1,))
        except Exception:  # not installed; CuPy or dpnp without a device
            continue
        found.append(library)
    return tuple(found)


each_library = pytest.mark.parametrize(
    "library",
    [
        pytest.param(name, id=name, marks=[pytest.mark.heavy] * (name in HEAVY))
        for name in installed()
    ],
)


def each_face(test: Callable[..., Any]) -> pytest.MarkDecorator:
    """Parametrize by ``namespace``: of each library, that over Arrays and that over native ones."""
    faces = [
        pytest.param(face, id=name, marks=[pytest.mark.heavy] * (library in HEAVY))
        for library in installed()
        for name, face in zip((library, f"{library}-native"), namespaces(library), strict=True)
    ]
    return pytest.mark.parametrize("namespace", faces)(test)


def each_function(names: Iterable[str]) -> pytest.MarkDecorator:
    """Parametrize by ``name`` and ``library``: every function of every library.

    JAX compiles each for every shape and data type: two thirds of its tests are ``heavy``.
    """
    return pytest.mark.parametrize(
        ("name", "library"),
        [
            pytest.param(
                name,
                library,
                id=f"{name}-{library}",
                marks=[pytest.mark.heavy] * (library in HEAVY or (library == "jax" and i % 3 > 0)),
            )
            for i, name in enumerate(names)
            for library in installed()
        ],
    )


class Namespace(NamedTuple):
    """A namespace, and how NumPy's arrays enter and leave it."""

    library: str
    xp: Any
    enter: Callable[[np.ndarray], Any]
    owns: Callable[[Any], bool]

    def function(self, path: str) -> Any:
        """A function by its name, such as ``linalg.qr``."""
        return functools.reduce(getattr, path.split("."), self.xp)

    def taken(self, x: Any) -> Any:
        """Arguments as the namespace takes them, NumPy's arrays and dtypes replaced."""
        if isinstance(x, np.ndarray):
            return self.enter(x)
        if isinstance(x, np.dtype):
            return getattr(self.xp, x.name)
        if isinstance(x, list | tuple):
            parts = [self.taken(each) for each in x]
            return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
        if isinstance(x, dict):
            return {key: self.taken(each) for key, each in x.items()}
        return x

    def left(self, x: Any) -> Any:
        """Results, which must be arrays of this namespace, as NumPy's."""
        if isinstance(x, tuple | list):  # lists are NumPy's and JAX's own
            parts = [self.left(each) for each in x]
            return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
        assert self.owns(x), f"{type(x)} is no array of {self.library}"
        return np.asarray(x if isinstance(x, np.generic) else ab.convert(x, "numpy", device="cpu"))

    def arrays_of(self, x: Any) -> list[Any]:
        """This namespace's arrays among arguments or results."""
        if isinstance(x, dict):
            x = list(x.values())
        if isinstance(x, list | tuple):
            return [array for each in x for array in self.arrays_of(each)]
        return [x] if self.owns(x) else []

    def dtype_name(self, x: Any) -> str:
        """The standard's name of an array's data type."""
        return next(name for name in DATA_TYPES if getattr(self.xp, name) == x.dtype)


@functools.cache
def namespaces(library: str) -> tuple[Namespace, Namespace]:
    """The namespace over Arrays, and that over native arrays."""
    xp = import_module(f"arraybridge.xp.{library}")
    native = xp.native
    library_arrays = type(xp.zeros((1,)))

    def enter(x: np.ndarray) -> Any:
        return native.asarray(x.copy())

    def enter_wrapped(x: np.ndarray) -> Any:
        return ab.from_dlpack(enter(x))

    def is_native(x: Any) -> bool:  # NumPy's own functions give scalars instead of 0-d arrays
        return library_arrays._library.owns(type(x)) or (
            library == "numpy" and isinstance(x, np.generic)
        )

    return (
        Namespace(library, xp, enter_wrapped, lambda x: type(x) is library_arrays),
        Namespace(library, native, enter, is_native),
    )
