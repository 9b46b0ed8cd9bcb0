"""Producers of Arrow's C data interface that say what a test wants, and count their releases."""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, c_int, c_void_p
from typing import Any

from arraybridge.native import pyapi
from arraybridge.protocols.arrow_memory import Array, DeviceArray, Schema, Stream

from .pages import Pages

__all__ = ["Made", "OnDevice", "Streamed", "check_ends"]

_RELEASE = CFUNCTYPE(None, c_void_p)
_GET = CFUNCTYPE(c_int, c_void_p, c_void_p)
_ERROR = CFUNCTYPE(c_void_p, c_void_p)


class Made:
    """An object with ``__arrow_c_array__``, whose structs are made from a tree of dictionaries.

    They have the structs' fields; ``children`` are such dictionaries too, ``buffers`` bytes,
    addresses or None. Those that are missing are those of an array of int64 [1, 2, 3]. ``device``
    has fields of an ``ArrowDeviceArray``. ``released`` names the structs as they are released.
    """

    def __init__(self, schema: dict, array: dict, device: dict | None = None) -> None:
        self.released: list[str] = []
        self.kept: list[Any] = []
        self.schema, self.array, self.device = schema, array, device

    def __arrow_c_schema__(self) -> object:
        struct = Schema()
        self.describe(struct, self.schema)
        return self.capsule(struct, b"arrow_schema")

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        struct: Any = Array()
        self.fill(struct, self.array)
        return self.__arrow_c_schema__(), self.capsule(struct, b"arrow_array")

    def releasing(self, kind: type, what: str) -> int:
        def release(address: int) -> None:
            self.released.append(what)
            kind.from_address(address).release = None

        callback = _RELEASE(release)
        self.kept.append(callback)
        return ctypes.cast(callback, c_void_p).value or 0

    def describe(self, struct: Any, fields: dict, root: bool = True) -> None:
        fields = {"format": b"l", "name": b"x", "flags": 2} | fields
        children = fields.pop("children", ())
        for name, value in fields.items():
            if isinstance(value, bytes) and name == "metadata":
                value = ctypes.create_string_buffer(value, len(value))
                self.kept.append(value)
                value = ctypes.addressof(value)
            setattr(struct, name, value)
        if children:
            made = [Schema() for _ in children]
            for child, told in zip(made, children, strict=True):
                self.describe(child, told, False)
            self.point(struct, "children", made)
            struct.n_children = fields.get("n_children", len(made))
        if "release" not in fields:
            struct.release = self.releasing(Schema, "schema" if root else "child schema")

    def fill(self, struct: Any, fields: dict, root: bool = True) -> None:
        fields = {"length": 3, "null_count": 0} | fields
        children = fields.pop("children", ())
        buffers = fields.pop("buffers", (None, (1).to_bytes(8, "little") * 8))
        for name, value in fields.items():
            setattr(struct, name, value)
        if buffers is not None:
            found = (c_void_p * max(len(buffers), 1))()
            for number, buffer in enumerate(buffers):
                if isinstance(buffer, bytes | bytearray):
                    buffer = ctypes.create_string_buffer(bytes(buffer), len(buffer))
                    self.kept.append(buffer)
                    buffer = ctypes.addressof(buffer)
                found[number] = buffer
            self.kept.append(found)
            struct.buffers = ctypes.addressof(found)
            struct.n_buffers = fields.get("n_buffers", len(buffers))
        if children:
            made = [Array() for _ in children]
            for child, told in zip(made, children, strict=True):
                self.fill(child, told, False)
            self.point(struct, "children", made)
            struct.n_children = fields.get("n_children", len(made))
        if "release" not in fields:
            struct.release = self.releasing(Array, "array" if root else "child array")

    def point(self, struct: Any, name: str, made: list) -> None:
        pointers = (c_void_p * len(made))(*map(ctypes.addressof, made))
        self.kept += [pointers, *made]
        setattr(struct, name, ctypes.addressof(pointers))

    def capsule(self, struct: Any, name: bytes) -> object:
        self.kept.append(struct)
        return pyapi.new_capsule(ctypes.addressof(struct), name, 0)


class OnDevice(Made):
    """The same, by ``__arrow_c_device_array__`` alone."""

    __arrow_c_array__ = None

    def __arrow_c_device_array__(self, requested_schema: object = None, **_: object) -> object:
        struct: Any = DeviceArray()
        self.fill(struct.array, self.array)
        for name, value in (self.device or {}).items():
            setattr(struct, name, value)
        return self.__arrow_c_schema__(), self.capsule(struct, b"arrow_device_array")


class Streamed(Made):
    """An object with ``__arrow_c_stream__``, that gives arrays, or fails with an error's text.

    A number among the arrays is the status that ``get_next`` returns there; a tuple that, and what
    it has filled in before it failed, which nobody may release.
    """

    __arrow_c_array__ = None

    def __init__(self, schema: dict, arrays: list, error: bytes | None = b"it broke") -> None:
        super().__init__(schema, {})
        self.arrays, self.error = list(arrays), error

    def __len__(self) -> int:
        return 3

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        arrays = list(self.arrays)

        def get_schema(_: int, out: int) -> int:
            self.describe(Schema.from_address(out), self.schema)
            return 0

        def get_next(_: int, out: int) -> int:
            struct: Any = Array.from_address(out)
            if not arrays:
                struct.release = None
                return 0
            fields = arrays.pop(0)
            if isinstance(fields, int):
                return fields
            status, fields = fields if isinstance(fields, tuple) else (0, fields)
            self.fill(struct, fields)
            return status

        told = None if self.error is None else ctypes.create_string_buffer(self.error)
        self.kept.append(told)
        struct: Any = Stream()
        for name, callback in (
            ("get_schema", _GET(get_schema)),
            ("get_next", _GET(get_next)),
            ("get_last_error", _ERROR(lambda _: told and ctypes.addressof(told))),
        ):
            self.kept.append(callback)
            setattr(struct, name, ctypes.cast(callback, c_void_p))
        struct.release = self.releasing(Stream, "stream")
        return self.capsule(struct, b"arrow_array_stream")


def check_ends() -> None:
    """Read null bitmaps and booleans that end at any bit, before pages that fault."""
    import arraybridge as ab

    made: list[Made] = []  # which outlive what is made of them
    for length, offset in ((1, 0), (8, 0), (9, 0), (16, 7), (17, 7), (64, 3), (4096 * 8, 0)):
        last = (offset + length + 7) // 8
        bitmap, bits, numbers = Pages(last, None), Pages(last, None), Pages(8 * length, None)
        bitmap.bytes[-last:] = 0xFF
        bits.bytes[-last:] = 0b01010101
        for schema, data in (("b", bits.address), ("l", numbers.address - 8 * offset)):
            array = {
                "length": length,
                "offset": offset,
                "null_count": -1,
                "buffers": (bitmap.address, data),
            }
            made.append(Made({"format": schema.encode()}, array))
            found = ab.convert(made[-1], "numpy")
            if schema == "b":
                assert found.tolist() == [(offset + at) % 2 == 0 for at in range(length)]
            else:
                assert not found.any()
        first = offset // 8  # nor a byte before the first
        start = Pages(last - first, 0)
        start.bytes[: last - first] = 0xFF
        array: dict = {
            "length": length,
            "offset": offset,
            "null_count": -1,
            "buffers": (start.address - first, start.address - first),
        }
        made.append(Made({"format": b"b"}, array))
        assert ab.convert(made[-1], "numpy").all()
    del found


class Capsules:
    """An array of pyarrow's by its capsules alone, as of a library that nobody knows."""

    def __init__(self, x):
        self.x = x

    def __arrow_c_array__(self, requested_schema=None):
        return self.x.__arrow_c_array__(requested_schema)

    def __len__(self):
        return len(self.x)


class Chunks(Capsules):
    __arrow_c_array__ = None

    def __arrow_c_stream__(self, requested_schema=None):
        return self.x.__arrow_c_stream__(requested_schema)
