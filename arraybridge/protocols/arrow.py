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

from ..core.library import Library
from ..core.records import NO_DTYPE, ConversionError
from ..core.registry import package_of
from ..dlpack import CPU, Device, DeviceType, MalformedTensorError
from ..dlpack.validate import checked_device
from .arrow_memory import Column, Methods, columns, kinds_of, metadata_of, methods_of
from .arrow_types import EXTENSION, Kind, kind_of, remedy_of_nulls
from .assembled import LIBRARY, Assembled, Piece, bytes_at

ARRAYS = ("__arrow_c_array__", "__arrow_c_device_array__")  # which can be asked again
_LARGEST = 2**60  # rows; no sum or product of a few such leaves 64 bits unnoticed


class _Refused(Exception):
    """Why there is no tensor."""


def opener_of(cls: type) -> Callable[[Any, bool], tuple[object, Library]]:
    """Return what takes the arrays of the instances of a class; see `frames.opened_frame`."""
    methods = methods_of(cls)
    transient = _transient(cls)

    def opened(x: Any, looking: bool) -> tuple[object, Library]:
        if looking and transient is not None:
            raise ConversionError(transient)
        return assembled(x, methods), LIBRARY

    return opened


def _transient(cls: type) -> str | None:
    """Return why instances are not looked at: they would be consumed, or computed; else None."""
    if any(getattr(cls, method, None) is not None for method in ARRAYS):
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


def assembled(x: Any, methods: Methods | None = None) -> Assembled:
    """Take the arrays of an object; why there is no tensor of them `Assembled.refused` says.

    ``methods`` are those of its class, if they are known. Errors are those of
    `arrow_memory.columns`, and of arrays that contradict their type.
    """
    chunks: list[Column] = []
    try:
        with closing(columns(x, methods or methods_of(type(x)))) as found:
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
    kinds = [kind_of(field) for field in fields]
    _check(kinds, names if frame else None)
    chunks.extend(others)
    return _Reader(x, kinds, names if frame else None).read(chunks)


def _check(kinds: list[Kind], names: list[str] | None) -> None:
    """Refuse what is no tensor; a frame of several data types may become one by a cast."""
    if not kinds:
        raise _Refused("a frame without columns has no data type: pass one with columns")
    for number, kind in enumerate(kinds):
        if kind.refused:
            where = "" if names is None else f"column {names[number]!r}: "
            raise _Refused(f"{where}{kind.refused}")


def _several(kinds: list[Kind], names: list[str]) -> str:
    """Return why the columns of a frame are no matrix."""
    kinds_found: dict[Kind, str] = {}
    for kind, name in zip(kinds, names, strict=True):
        kinds_found.setdefault(kind, name)
    some = ", ".join(f"{name!r} {_shown(kind)}" for kind, name in kinds_found.items())
    why = f"the columns have several data types ({some}), and a matrix has one: pass columns of "
    why += f"one type, such as x.select([{names[0]!r}])"
    return (
        why
        if any(kind.inner for kind in kinds)
        else f"{why}, or one data type for all, dtype='float64'"
    )


def _shown(kind: Kind) -> str:
    inner = "".join(f"[{extent}]" for extent in kind.inner)
    return f"{kind.dtype.name}{inner}"


class _Reader:
    """Reads chunks of columns, or of one."""

    def __init__(self, x: Any, kinds: list[Kind], names: list[str] | None) -> None:
        self.cls = type(x)
        self.kinds = kinds
        self.names = names

    def read(self, chunks: list[Column]) -> Assembled:
        kinds, names = self.kinds, self.names
        found: list[list[Piece]] = [[] for _ in kinds]
        rows, device = 0, None
        lost = [0] * len(found)
        for chunk in chunks:
            if chunk.array is None:
                continue
            device = self.placed(chunk, device)
            parts, start, count = [chunk], *_extent(chunk)
            absent = None
            if names is not None:
                absent = self.nulls(chunk, start, count)
                parts = chunk.children()
            for number, part in enumerate(parts):
                first = start
                if names is not None:
                    first, held = _extent(part)
                    if held < start + count:
                        raise _short("a column", held, start + count)
                    first += start
                piece, missing = self.piece(part, kinds[number], first, count, absent)
                lost[number] += missing
                if count:
                    found[number].append(piece)
            rows += count
        problems = self.nulls_of(lost, rows)

        def of(kind: Kind, columns: list[list[Piece]], frame: bool) -> Assembled:
            return Assembled(
                rows,
                kind.dtype,
                tuple(map(tuple, columns)),
                frame,
                kind.inner,
                kind.steps,
                kind.row,
                kind.bits,
                device or CPU,
                owner=chunks,
            )

        if names is None or len(set(kinds)) == 1:
            why = next(filter(None, problems), None)
            if why is not None:
                raise _Refused(why)
            return of(kinds[0], found, names is not None)
        columns = zip(kinds, found, problems, strict=True)
        apart = [of(kind, [pieces], False)._replace(refused=why) for kind, pieces, why in columns]
        whole = Assembled(rows, columns=((),) * len(apart), frame=True, owner=chunks)
        castable = not any(kind.inner for kind in kinds)
        return whole._replace(
            device=device or CPU,
            refused=_several(kinds, names),
            parts=tuple((name, part, LIBRARY) for name, part in zip(names, apart, strict=True))
            if castable
            else (),
        )

    def placed(self, chunk: Column, device: Device | None) -> Device:
        """Return where a chunk lies, which is where the chunks before it do."""
        place = CPU if chunk.device[0] == CPU.type else checked_device(*chunk.device)
        if chunk.event:
            _wait(chunk.event, place)
        if device not in (None, place):
            raise ConversionError(f"its chunks lie on {device} and {place}: combine them first")
        return place

    def nulls_of(self, lost: list[int], rows: int) -> list[str | None]:
        """Return why each column is refused for its nulls, or None."""
        found: list[str | None] = []
        for number, missing in enumerate(lost):
            where = "" if self.names is None else f"column {self.names[number]!r}: "
            total = rows * self.kinds[number].row
            found.append(
                f"{where}{missing} of {total} elements {'is' if missing == 1 else 'are'} null, "
                f"which no tensor holds: {remedy_of_nulls(self.cls)}"
                if missing
                else None
            )
        return found

    def piece(
        self, column: Column, kind: Kind, start: int, count: int, absent: np.ndarray | None
    ) -> tuple[Piece, int]:
        """Return the piece of some rows of a column, and how many of its elements are null.

        An element is null where it, or any of what it is in, is said to be: polars says both.
        """
        rows = count
        for size in kind.lists:
            absent = _either(absent, self.nulls(column, start, count))
            absent = None if absent is None else np.repeat(absent, size)
            (column,) = _only(column.children())
            first, held = _extent(column)
            start, count = start * size, count * size
            if held < start + count:
                raise _short("the elements of fixed-size lists", held, start + count)
            start += first
        absent = _either(absent, self.nulls(column, start, count, 2))
        missing = 0 if absent is None else int(np.count_nonzero(absent))
        data = column.buffers(2)[1]
        if not data and count > 0 and not missing:
            raise MalformedTensorError(f"an Arrow array of {count} elements has no data")
        if kind.bits:
            return Piece(data + start // 8, start % 8, rows), missing
        return Piece(data + start * kind.dtype.itemsize, 0, rows), missing

    def nulls(self, column: Column, start: int, count: int, buffers: int = 1) -> np.ndarray | None:
        """Return which of some slots are null; None where none is."""
        bitmap = column.buffers(buffers)[0]
        known: int = column.array.null_count
        if not -1 <= known <= column.array.length:
            raise MalformedTensorError(
                f"an Arrow array of {column.array.length} elements has a null count of {known}"
            )
        if not known or not count:
            return None
        if not bitmap:
            if known < 0:
                return None
            raise MalformedTensorError("an Arrow array with nulls has no bitmap of them")
        if column.device[0] != CPU.type:
            if known > 0:  # wherever they are
                return np.arange(count) < known
            raise _Refused(
                "whether elements are null stands in device memory: compute the null count first"
            )
        last = start % 8 + count
        bits = np.unpackbits(
            bytes_at(bitmap + start // 8, (last + 7) // 8), count=last, bitorder="little"
        )
        missing: np.ndarray = bits[start % 8 :] == 0
        return missing


def _either(one: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
    """Return where one of two masks is true."""
    return other if one is None else one if other is None else one | other


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
