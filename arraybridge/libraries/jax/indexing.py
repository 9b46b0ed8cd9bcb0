"""Reading and writing elements of JAX arrays, which are immutable and check no bounds.

JAX clamps an index that is out of bounds when it reads, and drops it when it writes. Python
integers are checked here; arrays of integers are not, since that would wait for their values.

Array API standard 2025.12, "Indexing".
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...array.indexing import axes_of, booleans_as_masks
from ...ndarrays import canonical


def get(native: Any, key: Any) -> Any:
    """Get elements by index."""
    native, key = booleans_as_masks(native, key)
    check_bounds(native.shape, key)
    try:
        return native[_own(key)]
    except ValueError as error:
        raise _of_index(error) from None


def set(native: Any, key: Any, value: Any) -> Any:
    """Return a new array with elements replaced; the values of a mask may be traced."""
    target, key = booleans_as_masks(native, key)
    if target is not native:
        return set(target, key, value).reshape(native.shape)
    check_bounds(native.shape, key)
    key, value = _own(key), _of_dtype(native.dtype, value)
    if getattr(key, "dtype", None) == jnp.bool and 0 < key.ndim <= native.ndim:
        rest = native.shape[key.ndim :]
        if key.shape == native.shape[: key.ndim] and value.ndim <= len(rest):
            mask = key.reshape(key.shape + (1,) * len(rest))
            return jnp.where(mask, jnp.broadcast_to(value, rest), native)
    try:
        return native.at[key].set(value)
    except ValueError as error:
        raise _of_index(error) from None


def _of_index(error: ValueError) -> Exception:
    """Return an IndexError for index arrays that do not broadcast; other errors as they are."""
    said = str(error)
    return IndexError(said) if "broadcasting: shapes=" in said else error


def _own(key: Any) -> Any:
    """Copy the NumPy arrays of an index: JAX reads them later, when they may have changed."""
    if isinstance(key, tuple):
        return tuple(map(_own, key))
    return canonical(key.copy()) if isinstance(key, np.ndarray) else key


def check_bounds(shape: tuple[int, ...], key: Any) -> None:
    """Raise IndexError if one of the Python integers of an index is out of bounds."""
    if key.__class__ is int:
        if shape and not -shape[0] <= key < shape[0]:
            raise _out_of_bounds(key, 0, shape[0])
        return
    parts = key if isinstance(key, tuple) else (key,)
    if all(part.__class__ is slice for part in parts):
        return
    axis = 0
    for position, part in enumerate(parts):
        if part is ...:
            axis = len(shape) - sum(axes_of(other) for other in parts[position + 1 :])
            continue
        number = isinstance(part, int | np.integer)
        if number and axis < len(shape) and not -shape[axis] <= part < shape[axis]:
            raise _out_of_bounds(part, axis, shape[axis])
        axis += axes_of(part)


def _out_of_bounds(index: Any, axis: int, extent: int) -> IndexError:
    return IndexError(f"index {index} is out of bounds for axis {axis} with {extent} elements")


def _of_dtype(dtype: Any, value: Any) -> Any:
    """Convert a value to the dtype of the array that it is written to."""
    if value.__class__ is int:  # JAX takes only those of its default dtype
        value = np.asarray(value, dtype)
    if not hasattr(value, "dtype"):
        return jnp.asarray(value, dtype=dtype)
    if value.dtype == dtype:
        return value
    return jax.lax.convert_element_type(value, dtype)
