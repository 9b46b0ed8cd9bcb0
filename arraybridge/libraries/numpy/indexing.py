"""Assignment to a NumPy array of values that share its memory.

NumPy handles most overlaps, but it copies a row to one of another stride item by item, and reads
the values for a mask as it goes: both read what has just been written.
"""

from __future__ import annotations

from typing import Any

import numpy


def set(
    native: numpy.ndarray, key: Any, value: Any, may_share_memory: Any = numpy.may_share_memory
) -> numpy.ndarray:
    """Write elements by index, as if the value and the index were copied first.

    Return the array, or a written copy of one that is read-only.
    """
    if isinstance(value, numpy.ndarray) and may_share_memory(native, value):  # by their bounds
        if _is_there(native, key, value):
            return native
        value = value.copy()
    if key.__class__ is not slice and key.__class__ is not int:
        key = _apart(native, key)
    try:
        native[key] = value
    except ValueError:
        if native.flags.writeable:
            raise
        native = native.copy()  # read-only memory stays what it is
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
    """Whether a value is already where it is to be written, as that of ``x[1:] += y`` is."""
    parts = key if isinstance(key, tuple) else (key,)
    if not all(isinstance(part, int | slice | None) or part is ... for part in parts):
        return False
    place = native[key]
    return (
        isinstance(place, numpy.ndarray) and place.__array_interface__ == value.__array_interface__
    )
