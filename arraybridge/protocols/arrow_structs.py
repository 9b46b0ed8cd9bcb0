"""Capsules with Arrow's structs, which any thread may release: by C, or else by Numba's callbacks.

A struct is packed as 20 words: four for what its first field points to, the text of a type, or for
what `buffers` does; and up to 16 of its own, where that pointer and the four from `children` to
`private_data` are left out. Structs of nested lists are packed one after the other.
"""

from __future__ import annotations

import ctypes
from functools import cache
from struct import Struct, calcsize

from ..native import C, pyapi
from .arrow_memory import NAMES, Array, DeviceArray, Schema

_CALLED = b"", b"item"  # a type at the top, and one of lists
_NAMES = ctypes.create_string_buffer(bytes(64) + b"item")  # and a place for no elements
pyapi.incref(_NAMES)  # whoever reads it may outlive the interpreter
_EMPTY, _ITEM = ctypes.addressof(_NAMES), ctypes.addressof(_NAMES) + 64
_NULLABLE = 2  # as the fields of every library are, unless somebody says otherwise

_schema = Struct("=32s8xQ8xqq88x").pack  # its format, name, flags, n_children
#: Its buffers, length, null_count, offset, n_buffers, n_children; and of a device array at the end
#: device_id, device_type.
_array = Struct("=QQ16x5q40xqi36x").pack
_SIZE = calcsize("20Q")
_KINDS = Schema, Array, DeviceArray


@cache
def _callbacks(kind: str) -> tuple[int, int]:
    """Return the addresses of a release callback, and of a destructor of capsules."""
    from ..kernels.cpu import loader

    return loader.callback("release", "release", kind), loader.callback("release", "destroy", kind)


def _made(kind: int, owner: object, packed: bytes) -> object:
    at, pointed = (10, 9) if kind else (9, 4)  # of `children`, and of `buffers` or `format`
    release, destroy = _callbacks("array" if kind else "schema")
    child = None
    for start in reversed(range(0, len(packed), _SIZE)):
        level = (ctypes.c_uint64 * 21).from_buffer_copy(packed[start : start + _SIZE] + bytes(8))
        address = ctypes.addressof(level)
        level[pointed] = address
        if child is not None:
            level[20], level[at] = ctypes.addressof(child) + 32, address + _SIZE
        owned = owner, level, child
        pyapi.incref(owned)
        level[at + 2], level[at + 3] = release, id(owned)
        child = level
    pyapi.incref(child)
    return pyapi.new_capsule(address + 32, NAMES[_KINDS[kind]], destroy, id(child))


if C is not None:
    _made = C.arrow


def schema(lists: tuple[int, ...], form: bytes) -> object:
    """Make a capsule with a type: lists of those sizes of what has a format."""
    name, packed = _EMPTY, b""
    for size in lists:
        packed += _schema(b"+w:%d" % size, name, _NULLABLE, 1)
        name = _ITEM
    return _made(0, None, packed + _schema(form, name, _NULLABLE, 0))


def array(
    shape: tuple[int, ...], data: int, owner: object, device: tuple[int, int] | None = None
) -> object:
    """Make a capsule with an array whose rows are elements, or lists of them.

    With a device, its kind and its number, it is one with a device array.
    """
    data = data or _EMPTY  # no elements; some importers want an address all the same
    kind, number = device or (0, 0)
    length, packed, nested = 1, b"", len(shape)
    for size in shape:
        length *= size
        nested -= 1
        packed += _array(0, data, length, 0, 0, 1 if nested else 2, bool(nested), number, kind)
    return _made(1 if device is None else 2, owner, packed)
