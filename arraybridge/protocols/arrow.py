"""Columns and frames of any library that speaks Arrow's PyCapsule interface, as arrays in pieces.

A column of numbers is an array of one axis; a fixed-size list adds an axis; a frame whose columns
have one data type is a matrix. What no tensor holds is refused, as pyarrow's own arrays are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from ctypes import c_void_p
from typing import Any

import numpy as np

from ..dispatch.library import Library
from ..dispatch.records import NO_DTYPE, ConversionError
from ..dispatch.registry import package_of
from ..dlpack import CPU, Device, DeviceType, MalformedTensorError
from ..dlpack.validate import checked_device
from .arrow_memory import Column, Doors, columns, doors_of, kinds_of, metadata_of
from .arrow_types import EXTENSION, Kind, kind_of, remedy_of_nulls
from .assembled import LIBRARY, Assembled, Piece, bytes_at

__all__ = ["assembled", "opener_of"]

ARRAYS = ("__arrow_c_array__", "__arrow_c_device_array__")  # which can be asked again
_LARGEST = 2**60  # rows; no sum or product of a few such leaves 64 bits unnoticed


class _Refused(Exception):
    """Why there is no tensor."""


def opener_of(cls: type) -> Callable[[Any, bool], tuple[object, Library]]:
    """Return what takes the arrays of the instances of a class; see `frames.opened_frame`."""
    doors = doors_of(cls)
    transient = _transient(cls)

    def opened(x: Any, looking: bool) -> tuple[object, Library]:
        if looking and transient is not None:
            raise ConversionError(transient)
        return assembled(x, doors), LIBRARY

    return opened


def _transient(cls: type) -> str | None:
    """Return why instances are not looked at: they would be consumed, or computed; else None."""
    if any(getattr(cls, door, None) is not None for door in ARRAYS):
        return None
    if not hasattr(cls, "__len__"):
        what = "can be read only once"
    elif hasattr(cls, "execute") or hasattr(cls, "fetchall"):
        what = "is a query, which would run"
    else:
        return None
    return (
        f"{package_of(cls)}.{cls.__qualname__} {what}: convert it, or look at a table of it, "
        "pyarrow.table(x)"
    )


def assembled(x: Any, doors: Doors | None = None) -> Assembled:
    """Take the arrays of an object; why there is no tensor of them `Assembled.refused` says.

    ``doors`` are those of its class, if they are known.

    Raises
    ------
    ConversionError, MalformedTensorError, TypeError
        As of `arrow_memory.columns`, and for arrays that contradict their type.
    """
    chunks: list[Column] = []
    try:
        with closing(columns(x, doors or doors_of(type(x)))) as found:
            chunks.append(next(found))
            return _read(x, chunks, found)
    except _Refused as refused:
        array = chunks[0].array
        length = 0 if array is None else max(array.length, 0)
        _release(chunks)
        return Assembled(length, NO_DTYPE, refused=str(refused))
    except BaseException:
        _release(chunks)  # now, not when the traceback that holds this frame goes
        raise


def _release(chunks: list[Column]) -> None:
    for chunk in chunks:
        chunk.release()


def _read(x: Any, chunks: list[Column], others: Iterator[Column]) -> Assembled:
    schema = chunks[0].schema
    frame = schema.format == b"+s" and EXTENSION not in metadata_of(schema)
    fields = kinds_of(schema) if frame else [schema]
    names = [(field.name or b"").decode(errors="replace") for field in fields]
    kinds = [kind_of(field, type(x)) for field in fields]
    kind = _common(kinds, names) if frame else _whole(kinds[0])
    chunks.extend(others)
    return _Reader(x, kind, names if frame else None).read(chunks)


def _whole(kind: Kind) -> Kind:
    if kind.refused:
        raise _Refused(kind.refused)
    return kind


def _common(kinds: list[Kind], names: list[str]) -> Kind:
    """Return the kind of all columns of a frame."""
    if not kinds:
        raise _Refused("a frame without columns has no data type: pass one with columns")
    for kind, name in zip(kinds, names, strict=True):
        if kind.refused:
            raise _Refused(f"column {name!r}: {kind.refused}")
    if len(set(kinds)) > 1:
        told: dict[Kind, str] = {}
        for kind, name in zip(kinds, names, strict=True):
            told.setdefault(kind, name)
        some = ", ".join(f"{name!r} {_shown(kind)}" for kind, name in told.items())
        raise _Refused(
            f"the columns have several data types ({some}), and a matrix has one: pass columns of "
            f"one type, such as x.select([{names[0]!r}]), or cast them first"
        )
    return kinds[0]


def _shown(kind: Kind) -> str:
    inner = "".join(f"[{extent}]" for extent in kind.inner)
    return f"{kind.dtype.name}{inner}"


class _Reader:
    """Reads chunks of one kind."""

    def __init__(self, x: Any, kind: Kind, names: list[str] | None) -> None:
        self.cls = type(x)
        self.kind = kind
        self.names = names

    def read(self, chunks: list[Column]) -> Assembled:
        kind, names = self.kind, self.names
        found: list[list[Piece]] = [[] for _ in names or "x"]
        rows, device = 0, None
        lost = [0] * len(found)
        for chunk in chunks:
            if chunk.array is None:
                continue
            device = self.placed(chunk, device)
            parts, start, count = [chunk], *_extent(chunk)
            if names is not None:
                lost = [n + self.nulls(chunk, start, count, 1) for n in lost]
                parts = chunk.children()
            for number, part in enumerate(parts):
                first = start
                if names is not None:
                    first, held = _extent(part)
                    if held < start + count:
                        raise _short("a column", held, start + count)
                    first += start
                piece, missing = self.piece(part, first, count)
                lost[number] += missing
                if count:
                    found[number].append(piece)
            rows += count
        self.refuse_nulls(lost, rows)
        return Assembled(
            rows,
            kind.dtype,
            tuple(map(tuple, found)),
            names is not None,
            kind.inner,
            kind.steps,
            kind.row,
            kind.bits,
            device or CPU,
            owner=chunks,
        )

    def placed(self, chunk: Column, device: Device | None) -> Device:
        """Return where a chunk lies, which is where the chunks before it do."""
        place = CPU if chunk.device[0] == CPU.type else checked_device(*chunk.device)
        if chunk.event:
            _wait(chunk.event, place)
        if device not in (None, place):
            raise ConversionError(f"its chunks lie on {device} and {place}: combine them first")
        return place

    def refuse_nulls(self, lost: list[int], rows: int) -> None:
        for number, missing in enumerate(lost):
            if missing:
                where = "" if self.names is None else f"column {self.names[number]!r}: "
                total = rows * self.kind.row
                raise _Refused(
                    f"{where}{missing} of {total} elements {'is' if missing == 1 else 'are'} null, "
                    f"which no tensor holds: {remedy_of_nulls(self.cls)}"
                )

    def piece(self, column: Column, start: int, count: int) -> tuple[Piece, int]:
        """Return the piece of some rows of a column, and how many of its elements are null."""
        kind, missing, rows, width = self.kind, 0, count, self.kind.row
        for size in kind.lists:
            missing += self.nulls(column, start, count, width, 1)
            (column,) = _only(column.children())
            first, held = _extent(column)
            start, count = start * size, count * size
            if held < start + count:
                raise _short("the elements of fixed-size lists", held, start + count)
            start += first
            width //= size or 1
        missing += self.nulls(column, start, count, 1, 2)
        data = column.buffers(2)[1]
        if not data and count > 0 and not missing:
            raise MalformedTensorError(f"an Arrow array of {count} elements has no data")
        if kind.bits:
            return Piece(data + start // 8, start % 8, rows), missing
        return Piece(data + start * kind.dtype.itemsize, 0, rows), missing

    def nulls(self, column: Column, start: int, count: int, width: int, buffers: int = 1) -> int:
        """Count the nulls among some slots, each of `width` elements."""
        bitmap = column.buffers(buffers)[0]
        known: int = column.array.null_count
        if not -1 <= known <= column.array.length:
            raise MalformedTensorError(
                f"an Arrow array of {column.array.length} elements has a null count of {known}"
            )
        if not known or not count:
            return 0
        if not bitmap:
            if known < 0:
                return 0
            raise MalformedTensorError("an Arrow array with nulls has no bitmap of them")
        if column.device[0] != CPU.type:
            if known > 0:
                return known * width
            raise _Refused(
                "whether elements are null stands in device memory: compute the null count first"
            )
        last = start % 8 + count
        bits = np.unpackbits(
            bytes_at(bitmap + start // 8, (last + 7) // 8), count=last, bitorder="little"
        )
        return (count - int(np.count_nonzero(bits[start % 8 :]))) * width


def _wait(event: int, device: Device) -> None:
    """Wait until a device has written what is to be read; `event` is where its handle stands."""
    if device.type not in (DeviceType.CUDA, DeviceType.CUDA_MANAGED, DeviceType.CUDA_HOST):
        raise ConversionError(
            f"arraybridge cannot wait for an event on {device}: synchronize it first"
        )
    from ..kernels.cuda import driver

    try:
        driver.installed().cuEventSynchronize(c_void_p.from_address(event).value)
    except driver.CUDAError as error:
        raise ConversionError(f"the CUDA driver cannot wait for the producer: {error}") from error


def _extent(column: Column) -> tuple[int, int]:
    """Return the offset and the length of an array."""
    offset, length = column.array.offset, column.array.length
    if offset < 0 or length < 0 or offset + length > _LARGEST:
        raise MalformedTensorError(f"an Arrow array has length {length} and offset {offset}")
    return offset, length


def _only(children: list[Column]) -> list[Column]:
    if len(children) != 1:
        raise MalformedTensorError(f"an Arrow list has {len(children)} children, not 1")
    return children


def _short(what: str, held: int, needed: int) -> MalformedTensorError:
    return MalformedTensorError(f"{what} are {held}, fewer than the {needed} that are needed")
