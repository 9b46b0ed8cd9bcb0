"""Reading and writing elements as the standard has it, for libraries that each have it otherwise.

Array API standard 2025.12, "Indexing".
"""

from __future__ import annotations

from typing import Any


def unwrapped(array: Any, key: Any) -> Any:
    """An index with native arrays in place of Arrays."""
    if isinstance(key, tuple):
        return tuple([_part(array, part) for part in key])
    return _part(array, key)


def _part(array, part):
    unwrap = getattr(part, "__arraybridge__", None)
    return part if unwrap is None else array._same(part)


def get(native: Any, key: Any) -> Any:
    """Elements by the library's own indexing."""
    return native[key]


def set_in_place(native: Any, key: Any, value: Any) -> Any:
    """Write elements by the library's own indexing; gives the array."""
    native[key] = value
    return native


def set_anew(native: Any, key: Any, value: Any) -> Any:
    """A new array with other elements, for arrays that cannot be written (JAX)."""
    return native.at[key].set(value)
