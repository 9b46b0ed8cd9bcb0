"""Indexing, of which array-api-strict refuses some legal forms.

Array API standard 2025.12, "Indexing".
"""

from __future__ import annotations

from typing import Any

import array_api_strict as xp
import numpy

from ...array.indexing import axes_of

_Array = type(xp.zeros(()))


def _key(native: Any, key: Any) -> tuple[Any, ...]:
    """Convert an index to what array-api-strict takes: a tuple, with slices within the extents.

    Slices mean what they mean of a list, as in every other library.
    """
    parts = key if isinstance(key, tuple) else (key,)
    if not any(isinstance(part, slice) for part in parts):
        return parts
    left = native.ndim - sum(axes_of(part) for part in parts)
    taken = []
    axis = 0
    for part in parts:
        if isinstance(part, slice) and axis < native.ndim:
            part = _within(part, native.shape[axis])
        taken.append(part)
        axis += left if part is ... else axes_of(part)
    return tuple(taken)


def _within(part: slice, extent: int) -> slice:
    """Convert a slice to one of the same elements with its ends within the extent."""
    if part.start is None and part.stop is None:
        return part
    start, stop, step = part.indices(extent)
    if not range(start, stop, step):
        return slice(0, 0)
    return slice(start, None if stop < 0 else stop, step)


def get(native: Any, key: Any) -> Any:
    """Get elements by index."""
    return native[_key(native, key)]


def set(native: Any, key: Any, value: Any) -> Any:
    """Write elements, and return the array, or a written copy of one that is read-only."""
    key = _key(native, key)
    if not native.size and key and isinstance(key[0], _Array) and key[0].dtype == xp.bool:
        # array-api-strict reads a mask without elements as no elements of the first axis
        numpy.broadcast_to(getattr(value, "_array", value), native[key].shape)
        return native
    array = native._array
    if not array.flags.writeable:
        native = _Array._new(array.copy(), device=native.device)
    if isinstance(value, _Array) and numpy.may_share_memory(array, value._array):
        value = _Array._new(value._array.copy(), device=value.device)
    parts = [
        _Array._new(part._array.copy(), device=part.device)
        if isinstance(part, _Array) and numpy.may_share_memory(array, part._array)
        else part
        for part in key
    ]
    native[tuple(parts)] = value
    return native
