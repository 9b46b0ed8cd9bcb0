"""Capsules with Arrow's structs that any thread may release: by C, or else by Numba's callbacks.

A struct is packed as 20 words: four for the target of its first field (the text of a type, or the
target of `buffers`), and up to 16 for the struct itself, without that pointer and `dictionary`,
`release` and `private_data`. Structs of nested lists are packed one after the other; the children
of others are capsules, held by their owner.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, c_int, c_void_p
from errno import EIO
from functools import cache, partial
from itertools import repeat
from struct import Struct, calcsize

from ..native import C, pyapi
from .arrow_memory import NAMES, Array, DeviceArray, Schema, Stream, taken

_NAMES = ctypes.create_string_buffer(bytes(64) + b"item")  # and an address for no elements
pyapi.incref(_NAMES)  # readers may outlive the interpreter
_EMPTY, _ITEM = ctypes.addressof(_NAMES), ctypes.addressof(_NAMES) + 64
_NULLABLE = 2  # as every library's fields are by default

_schema = Struct("=32s8xQ8xqqQ80x").pack  # its format, name, flags, n_children, children
#: Its buffers, length, null_count, offset, n_buffers, n_children, children; for a device array also
#: device_id and device_type at the end.
_array = Struct("=QQ16x5q8xQ24xqi36x").pack
_stream = Struct("=32xQQQ104x").pack
_SIZE = calcsize("20Q")
_KINDS = Schema, Array, DeviceArray, Stream
_PLACES = ("schema", 9, 4), ("array", 10, 9), ("array", 10, 9), ("stream", 5, 9)


@cache
def _callbacks(kind: str) -> tuple[int, int]:
    """Return the addresses of a release callback and of a destructor of capsules."""
    from ..kernels.cpu import loader

    return loader.callback("release", "release", kind), loader.callback("release", "destroy", kind)


def _made(kind: int, owner: object, packed: bytes) -> object:
    name, at, pointed = _PLACES[kind]  # the places of `children`, and of `buffers` or `format`
    release, destroy = _callbacks(name)
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


def schema(lists: tuple[int, ...], form: bytes, field: str = "") -> object:
    """Make a capsule with a type: nested lists of those sizes, of elements with a format."""
    owner = ctypes.create_string_buffer(field.encode()) if field else None
    name, packed = _EMPTY if owner is None else ctypes.addressof(owner), b""
    for size in lists:
        packed += _schema(b"+w:%d" % size, name, _NULLABLE, 1, 0)
        name = _ITEM
    return _made(0, owner, packed + _schema(form, name, _NULLABLE, 0, 0))


def array(
    shape: tuple[int, ...], data: int, owner: object, device: tuple[int, int] | None = None
) -> object:
    """Make a capsule with an array whose rows are elements, or lists of them.

    With a device (its kind and number), the capsule has a device array.
    """
    data = data or _EMPTY  # no elements, but some importers require an address
    kind, number = device or (0, 0)
    length, packed, nested = 1, b"", len(shape)
    for size in shape:
        length *= size
        nested -= 1
        packed += _array(0, data, length, 0, 0, 1 if nested else 2, bool(nested), 0, number, kind)
    return _made(1 if device is None else 2, owner, packed)


def table(columns: Sequence[object], rows: int | None = None) -> object:
    """Make a capsule with a type, or with an array of so many rows, of those capsules as fields."""
    name = NAMES[Schema if rows is None else Array]
    children = (c_void_p * len(columns))(*map(pyapi.capsule_pointer, columns, repeat(name)))
    n, address, owner = len(columns), ctypes.addressof(children), (children, columns)
    if rows is None:
        return _made(0, owner, _schema(b"+s", _EMPTY, 0, n, address))
    return _made(1, owner, _array(0, 0, rows, 0, 0, 1, n, address, 0, 0))


_GET = CFUNCTYPE(c_int, c_void_p, c_void_p)
_ERROR = ctypes.create_string_buffer(b"there is no memory, or an interrupt came")
_get_last_error = CFUNCTYPE(c_void_p, c_void_p)(lambda stream: ctypes.addressof(_ERROR))


def stream(schema: Callable[[], object], array: object) -> object:
    """Make a capsule with a stream of one array; its type is made at each request.

    Any thread may consume the stream, and then briefly takes the GIL; releasing takes none.
    """
    arrays = iter([array])
    owner = (
        _GET(partial(_filled, Schema, schema)),
        _GET(partial(_filled, Array, arrays.__next__)),
        _get_last_error,
    )
    return _made(3, owner, _stream(*map(pyapi.address_of, owner)))


def _filled(
    kind: type[ctypes.Structure], capsule: Callable[[], object], stream: int, out: int
) -> int:
    """Move a struct to a consumer (an empty one for StopIteration); return 0, or an errno.

    ctypes would print an exception that is raised here, and return 0.
    """
    try:
        owned = taken(capsule(), kind)
        ctypes.memmove(out, ctypes.addressof(owned.struct), ctypes.sizeof(kind))
        owned.struct = None  # so that the consumer releases it
    except StopIteration:
        ctypes.memset(out, 0, ctypes.sizeof(kind))
    except BaseException:  # no memory, an interrupt
        return EIO
    return 0
