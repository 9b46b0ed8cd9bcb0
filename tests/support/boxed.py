"""A small array library of our own, as a user would bring one: a namespace, and a class of Arrays.

Its arrays wrap NumPy's and its functions are NumPy's, one of them wrong, for a correction to mend.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

import arraybridge as ab
from arraybridge.array.library_array import LibraryArray
from arraybridge.array.operators import OPERATORS
from arraybridge.core.library import Computing
from arraybridge.xp.build import make_native_namespace, open_namespace
from arraybridge.xp.standard import EXTENSIONS, functions_of
from arraybridge.xp.standard.data_types import DATA_TYPES


class Boxed:
    """What the library's own arrays are."""

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)

    shape = property(lambda self: self.array.shape)
    ndim = property(lambda self: self.array.ndim)
    dtype = property(lambda self: self.array.dtype)
    device = property(lambda self: "cpu")

    def __getitem__(self, key: Any) -> Boxed:
        return Boxed(self.array[_opened(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.array[_opened(key)] = _opened(value)

    def __bool__(self) -> bool:
        return bool(self.array)

    def __float__(self) -> float:
        return float(self.array)


def _opened(x: Any) -> Any:
    if isinstance(x, Boxed):
        return x.array
    return type(x)(map(_opened, x)) if isinstance(x, list | tuple) else x


def _boxed(function: Callable[..., Any]) -> Callable[..., Any]:
    def boxed(*args: Any, **kwargs: Any) -> Any:
        result = function(*_opened(args), **{name: _opened(x) for name, x in kwargs.items()})
        return Boxed(result) if isinstance(result, np.ndarray | np.generic) else result

    return boxed


for _op in OPERATORS:
    for _name in _op.methods:
        setattr(Boxed, _name, _boxed(getattr(np.ndarray, _name)))

boxed: Any = ModuleType("boxed")
for _extension in EXTENSIONS:
    setattr(boxed, _extension, ModuleType(f"boxed.{_extension}"))
for (_module, _path, _name, _), (_theirs, *_) in zip(
    functions_of(boxed), functions_of(np), strict=True
):
    if hasattr(_theirs, _name):
        setattr(_module, _name, _boxed(getattr(_theirs, _name)))
for _name in DATA_TYPES:
    setattr(boxed, _name, np.dtype(_name).type)
for _name in ("isdtype", "finfo", "iinfo", "result_type", "can_cast"):
    setattr(boxed, _name, getattr(np, _name))
boxed.__array_namespace_info__ = np.__array_namespace_info__
boxed.sign = lambda x: Boxed(x.array * 0)
sys.modules["boxed"] = boxed


class BoxedComputing(Computing):
    """Its namespaces, for arraybridge."""

    def native_namespace(self) -> Any:
        return _native()

    def array_class(self) -> Any:
        return _array_class()


class BoxedLibrary(ab.Library):
    """Its description for arraybridge."""

    name = "boxed"
    computing = BoxedComputing()
    accepts = ab.Accepts(
        library="boxed", tested="1", dtypes=frozenset({"bool", "int64", "float64"}), readonly=True
    )

    def owns(self, array_type: type) -> bool:
        return array_type is Boxed

    def export(self, x: Any, stream: int | None = None) -> ab.dlpack.ManagedTensor:
        return ab.dlpack.acquire(x.array)

    def wrap(self, tensor: ab.dlpack.ManagedTensor) -> Boxed:
        return Boxed(ab.convert(tensor, "numpy"))


LIBRARY = BoxedLibrary()
_made: dict[str, Any] = {}


def _native() -> Any:
    if "native" not in _made:
        _made["native"] = make_native_namespace("boxed", "boxed", {"sign": _boxed(np.sign)})
    return _made["native"]


def _array_class() -> Any:
    if "class" not in _made:

        class BoxedArray(LibraryArray):
            """An array of boxed, as the standard has it."""

            __slots__ = ()

            _home = LIBRARY
            _native_namespace = _native()
            _native_type = Boxed

        open_namespace(BoxedArray, "The array API standard over Arrays of boxed.")
        _made["class"] = BoxedArray
    return _made["class"]


@contextmanager
def registered() -> Iterator[BoxedLibrary]:
    """Have arraybridge know the library for a while."""
    ab.register_library(LIBRARY)
    try:
        yield LIBRARY
    finally:
        ab.unregister_library("boxed")
