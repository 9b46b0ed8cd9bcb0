"""Arrow's C data interface: consuming capsules and owning their structs.

Everything that a producer wrote is checked before it is used, except addresses, which cannot be
checked. A producer's release callback always runs exactly once, on the thread that drops the last
reference, without the GIL, since some producers take it themselves.

Sources: Arrow columnar format, "The Arrow C data interface", "The Arrow C stream interface",
"The Arrow C Device data interface", "The Arrow PyCapsule Interface".
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator
from ctypes import CFUNCTYPE, c_char_p, c_int, c_int32, c_int64, c_void_p
from typing import Any, NamedTuple

from ..core.records import ConversionError
from ..dlpack import MalformedTensorError, is_capsule
from ..native import pyapi

_RELEASE = CFUNCTYPE(None, c_void_p)
_GET = CFUNCTYPE(c_int, c_void_p, c_void_p)
_GET_ERROR = CFUNCTYPE(c_char_p, c_void_p)
_MOST_CHILDREN = 1 << 20

#: Levels of nested types; no array has more axes.
DEEPEST = 64


def _fields(kind: Any, names: str) -> list[tuple[str, Any]]:
    return [(name, kind) for name in names.split()]


class Schema(ctypes.Structure):
    """``ArrowSchema``: the type of an array."""

    _fields_ = (
        *_fields(c_char_p, "format name"),
        ("metadata", c_void_p),
        *_fields(c_int64, "flags n_children"),
        *_fields(c_void_p, "children dictionary release private"),
    )


class Array(ctypes.Structure):
    """``ArrowArray``: the buffers of an array."""

    _fields_ = (
        *_fields(c_int64, "length null_count offset n_buffers n_children"),
        *_fields(c_void_p, "buffers children dictionary release private"),
    )


class DeviceArray(ctypes.Structure):
    """``ArrowDeviceArray``; the kinds of devices are DLPack's."""

    _fields_ = (
        ("array", Array),
        ("device_id", c_int64),
        ("device_type", c_int32),
        ("sync_event", c_void_p),
        ("reserved", c_int64 * 3),
    )

    @property
    def release(self) -> int | None:
        address: int | None = self.array.release
        return address


class Stream(ctypes.Structure):
    """``ArrowArrayStream``: arrays of one type, one after the other."""

    _fields_ = _fields(c_void_p, "get_schema get_next get_last_error release private")


class DeviceStream(ctypes.Structure):
    """``ArrowDeviceArrayStream``: arrays on one kind of device."""

    _fields_ = (("device_type", c_int32), *Stream._fields_)


class Owned:
    """Own a producer's struct: released once, when the last reference is dropped.

    `struct` is zeroed memory that a producer fills, or to which a struct is moved.
    """

    __slots__ = ("struct",)

    def __init__(self, kind: type[ctypes.Structure]) -> None:
        self.struct: Any = kind()

    # The module's names may be gone when the interpreter ends, hence the defaults.
    def release(
        self,
        _foreign: Callable[[int], Any] = _RELEASE,
        _address: Callable[[Any], int] = ctypes.addressof,
    ) -> None:
        struct, self.struct = self.struct, None
        if struct is not None and struct.release:
            _foreign(struct.release)(_address(struct))

    __del__ = release


#: The names of the capsules with each struct.
NAMES = {
    Schema: b"arrow_schema",
    Array: b"arrow_array",
    DeviceArray: b"arrow_device_array",
    Stream: b"arrow_array_stream",
    DeviceStream: b"arrow_device_array_stream",
}


def taken(capsule: object, kind: type[ctypes.Structure]) -> Owned:
    """Move the struct out of a capsule, as its consumer must: the capsule's is marked released.

    TypeError for anything but a capsule of that name; MalformedTensorError for a struct that was
    already released or moved.
    """
    name = NAMES[kind]
    if not is_capsule(capsule) or pyapi.capsule_name(capsule) != name:
        raise TypeError(f"expected a PyCapsule named {name.decode()!r}, got {capsule!r}")
    address = pyapi.capsule_pointer(capsule, name)
    owned, there = Owned(kind), kind.from_address(address)
    ctypes.memmove(ctypes.addressof(owned.struct), address, ctypes.sizeof(kind))
    if not there.release:
        owned.struct = None
        raise MalformedTensorError(f"the {name.decode()} was already released or consumed")
    getattr(there, "array", there).release = None
    return owned


class Column(NamedTuple):
    """An array and its type, whose memory lives as long as this."""

    schema: Any  # like array, a struct that `owner` keeps alive
    array: Any
    owner: tuple[Owned, ...]
    device: tuple[int, int]  # its kind and number
    event: int  # address of the event to wait for before reading the memory; 0 for none

    def release(self) -> None:
        """Release the memory now; nothing that still holds this column may use it."""
        for owned in self.owner:
            owned.release()

    def children(self) -> list[Column]:
        """Return the columns of a struct, or the elements of a list.

        MalformedTensorError if the type and the array have different numbers of them.
        """
        schemas = kinds_of(self.schema)
        count = self.array.n_children
        if count != len(schemas) or (count and not self.array.children):
            raise MalformedTensorError(
                f"an Arrow array of {len(schemas)} fields has {count} children"
            )
        found = []
        for schema, address in zip(schemas, _addresses(self.array.children, count), strict=True):
            if not address:
                raise MalformedTensorError("a child of an Arrow array is NULL")
            array = Array.from_address(address)
            found.append(Column(schema, array, self.owner, self.device, self.event))
        return found

    def buffers(self, count: int) -> tuple[int, ...]:
        """Return the addresses of the buffers, whose number must be `count`."""
        array = self.array
        if array.n_buffers != count or (count and not array.buffers):
            raise MalformedTensorError(
                f"an Arrow array of type {format_of(self.schema)!r} has {array.n_buffers} buffers, "
                f"not {count}"
            )
        return tuple(address or 0 for address in _addresses(array.buffers, count))


def format_of(schema: Any) -> str:
    """Return the format string of a schema."""
    text: bytes | None = schema.format
    if not text:
        raise MalformedTensorError("an ArrowSchema has no format")
    return text.decode(errors="replace")


def kinds_of(schema: Any) -> list[Any]:
    """Return the schemas of the children of a schema."""
    count = schema.n_children
    if not 0 <= count <= _MOST_CHILDREN or (count and not schema.children):
        raise MalformedTensorError(f"an ArrowSchema has {count} children")
    found = _addresses(schema.children, count)
    if not all(found):
        raise MalformedTensorError("a child of an ArrowSchema is NULL")
    return [Schema.from_address(address or 0) for address in found]


def metadata_of(schema: Any) -> dict[bytes, bytes]:
    """Return the metadata of a schema."""
    at: int | None = schema.metadata
    if not at:
        return {}
    found: dict[bytes, bytes] = {}
    count = c_int32.from_address(at).value
    at += 4
    if not 0 <= count <= _MOST_CHILDREN:
        raise MalformedTensorError(f"an ArrowSchema has {count} entries of metadata")
    for _ in range(count):
        pair = []
        for _ in range(2):
            size = c_int32.from_address(at).value
            if size < 0:
                raise MalformedTensorError("metadata of an ArrowSchema has a negative length")
            pair.append(ctypes.string_at(at + 4, size))
            at += 4 + size
        found[pair[0]] = pair[1]
    return found


def _addresses(at: int | None, count: int) -> tuple[int | None, ...]:
    return tuple((c_void_p * count).from_address(at)) if count and at else ()


Methods = tuple[tuple[str, type[ctypes.Structure], type[ctypes.Structure] | None], ...]
#: The methods, in the order in which they are tried, with the struct in the capsule that they
#: return, and for streams the struct of their arrays. Those for devices come first: an object with
#: memory on a device may implement the others by a copy to the host.
METHODS: Methods = (
    ("__arrow_c_device_array__", DeviceArray, None),
    ("__arrow_c_array__", Array, None),
    ("__arrow_c_device_stream__", DeviceStream, DeviceArray),
    ("__arrow_c_stream__", Stream, Array),
)


def methods_of(cls: type) -> Methods:
    """Return those of the methods that a class has."""
    return tuple(method for method in METHODS if getattr(cls, method[0], None) is not None)


def columns(x: Any, methods: Methods) -> Generator[Column, None, None]:
    """Take the arrays of an object; the first has no rows if the object has none.

    ConversionError for an error of the producer's stream; MalformedTensorError or TypeError for
    structs that contradict the format, and for objects that are no capsules.
    """
    for method, kind, of in methods:
        try:
            found = getattr(x, method)()
        except NotImplementedError:
            continue
        if of is not None:
            yield from _streamed(taken(found, kind), of)
            return
        if not isinstance(found, tuple) or len(found) != 2:
            raise TypeError(f"{type(x).__name__}.{method} returned {found!r}, not two capsules")
        schema = taken(found[0], Schema)
        try:
            array = taken(found[1], kind)
        except BaseException:
            schema.release()
            raise
        yield _column(schema, array)
        return
    raise TypeError(f"no Arrow method of {type(x).__name__} is implemented")


def _column(schema: Owned, array: Owned) -> Column:
    struct, device, event = array.struct, (1, 0), 0
    if isinstance(struct, DeviceArray):
        event, struct = struct.sync_event or 0, struct.array
        number = array.struct.device_id
        device = array.struct.device_type, max(number, 0)
    return Column(schema.struct, struct, (schema, array), device, event)


def _streamed(stream: Owned, kind: type[ctypes.Structure]) -> Generator[Column, None, None]:
    schema, some = Owned(Schema), False
    try:
        if not _filled(stream, "get_schema", schema):
            raise MalformedTensorError("an ArrowArrayStream returned no schema")
        while _filled(stream, "get_next", array := Owned(kind)):
            some = True
            yield _column(schema, array)
        if not some:
            yield Column(schema.struct, None, (schema,), (1, 0), 0)
    except BaseException:
        schema.release()  # now, not when the traceback that holds this frame is freed
        raise
    finally:
        stream.release()


def _filled(stream: Owned, name: str, owned: Owned) -> bool:
    """Call a function of a stream, which fills a struct; return whether it is not empty."""
    function, at = getattr(stream.struct, name), ctypes.addressof(stream.struct)
    if not function:
        raise MalformedTensorError(f"an ArrowArrayStream has no {name}")
    status = _GET(function)(at, ctypes.addressof(owned.struct))
    if not status:
        return bool(owned.struct.release)
    owned.struct = None  # whatever a failed call left in it is not ours to release
    message, get_error = None, stream.struct.get_last_error
    if get_error:
        message = _GET_ERROR(get_error)(at)
    text = "no reason is given" if message is None else message.decode(errors="replace").strip()
    raise ConversionError(f"the producer's stream ended with error {status}: {text}")
