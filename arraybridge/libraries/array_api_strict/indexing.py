"""Indexing, of which array-api-strict refuses some legal forms.

Array API standard 2025.12, "Indexing". Index arrays and masks beside other parts of an index, which
the standard leaves open, have NumPy's answer, as with every other library.
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


def _opened(native: Any, key: tuple[Any, ...], *, writing: bool = False) -> tuple[Any, ...] | None:
    """Convert an index that array-api-strict refuses to NumPy's; None for any other."""
    arrays = [part for part in key if isinstance(part, _Array)]
    integers = [part for part in arrays if part.dtype != xp.bool]
    if not arrays or not (
        (writing and integers)
        or (
            integers and any(part is None or isinstance(part, slice) or part is ... for part in key)
        )
        or (len(key) > 1 and len(integers) < len(arrays))
    ):
        return None
    whole = ... in [part for part in key if not isinstance(part, _Array)]
    if not whole and sum(axes_of(part) for part in key) < native.ndim:
        return None  # it wants every axis or an ellipsis
    if len(integers) < len(arrays) and not xp.get_array_api_strict_flags()["boolean_indexing"]:
        return None
    for part in arrays:
        if part.device != native.device:
            raise ValueError(f"an array on {native.device} is indexed by one on {part.device}")
    return tuple([part._array if isinstance(part, _Array) else part for part in key])


def get(native: Any, key: Any) -> Any:
    """Get elements by index."""
    key = _key(native, key)
    opened = _opened(native, key)
    if opened is None:
        return native[key]
    return _Array._new(native._array[opened], device=native.device)


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
    opened = _opened(native, tuple(parts), writing=True)
    if opened is None:
        native[tuple(parts)] = value
    else:
        native._array[opened] = getattr(value, "_array", value)
    return native
