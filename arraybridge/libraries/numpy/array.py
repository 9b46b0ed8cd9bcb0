"""The array API standard over Arrays of NumPy."""

from types import MappingProxyType
from typing import Any

import numpy

from ...array.library_array import LibraryArray
from ...core.records import ConversionError
from ...core.registry import own_library
from ...core.table import OBSERVERS, notify_copy
from ...ndarrays import CHARS, canonical
from ...xp.namespace import defer_namespace


def _floor_divide(x1: Any, x2: Any) -> Any:
    """Divide as the namespace does: of the operators, `corrections` only has an entry for this."""
    return NumPyArray._native_namespace.floor_divide(x1, x2)


def _set(
    native: numpy.ndarray, key: Any, value: Any, may_share_memory: Any = numpy.may_share_memory
) -> numpy.ndarray:
    """Write elements by index, as if the value and the index were copied first.

    Return the array, or a written copy of a read-only one. NumPy handles most overlaps, but it
    copies rows with different strides item by item, and reads a mask's values while it writes:
    both read elements that were just written.
    """
    if isinstance(value, numpy.ndarray) and may_share_memory(native, value):  # by their bounds
        if _is_there(native, key, value):
            return native
        if OBSERVERS:
            notify_copy("it overlaps what is written", own_library("numpy").describe(value))
        value = value.copy()
    if isinstance(value, numpy.ndarray):
        value = canonical(value, native.dtype)
    if key.__class__ is not slice and key.__class__ is not int:
        key = _apart(native, key)
    try:
        native[key] = value
    except ValueError:
        if native.flags.writeable:
            raise
        if OBSERVERS:
            why = "the memory is read-only, so what is written is a copy"
            notify_copy(why, own_library("numpy").describe(native))
        native = native.copy()  # the read-only memory is not written
        native[key] = value
    return native


def _apart(native: numpy.ndarray, key: Any) -> Any:
    """Copy the arrays of an index that share memory with the array to be written."""
    if isinstance(key, tuple):
        if any(isinstance(part, numpy.ndarray) for part in key):
            return tuple([_apart(native, part) for part in key])
    elif isinstance(key, numpy.ndarray) and numpy.may_share_memory(native, key):
        return key.copy()
    return key


def _is_there(native: numpy.ndarray, key: Any, value: numpy.ndarray) -> bool:
    """Whether a value already is where it would be written, as in ``x[1:] += y``."""
    parts = key if isinstance(key, tuple) else (key,)
    if not all(isinstance(part, int | slice | None) or part is ... for part in parts):
        return False
    place = native[key]
    return (
        isinstance(place, numpy.ndarray) and place.__array_interface__ == value.__array_interface__
    )


def _supports(native: numpy.ndarray, _chars: frozenset[str] = CHARS) -> bool:
    plain = type(native) is numpy.ndarray and native.dtype.char in _chars
    return plain or own_library("numpy").describe(native).refused is None


class NumPyArray(LibraryArray):
    """The standard's array object over arrays of NumPy; see :class:`arraybridge.Array`."""

    __slots__ = ()

    _home = own_library("numpy")
    _native_type = numpy.ndarray
    _operators = MappingProxyType({"floor_divide": _floor_divide})
    _set = staticmethod(_set)
    _supports = staticmethod(_supports)

    @classmethod
    def _check(cls, native: numpy.ndarray, *, read: bool = False) -> None:
        if not cls._supports(native):
            raise ConversionError(str(cls._home.describe(native).refused))

    @staticmethod
    def _normal(result: Any) -> Any:
        return result if result.__class__ is numpy.ndarray else numpy.asarray(result)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    @staticmethod
    def _scalar(other: Any) -> Any:
        return other  # its dtype takes part in promotion, as in NumPy


defer_namespace(NumPyArray)
