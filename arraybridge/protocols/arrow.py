"""Columns and frames of any library with Arrow's PyCapsule interface, as arrays in pieces.

A column of numbers is an array of one axis; a fixed-size list adds an axis; a frame whose columns
have one data type is a matrix. Data that no tensor holds is refused, as for pyarrow's arrays.
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
from .assembled import LIBRARY, Assembled, Piece, unpacked

ARRAYS = ("__arrow_c_array__", "__arrow_c_device_array__")  # these can be called again
_LARGEST = 2**60  # rows; no sum or product of a few of them overflows 64 bits unnoticed


class _Refused(Exception):
    """Why there is no tensor."""


def opener_of(cls: type) -> Callable[[Any, bool], tuple[object, Library]]:
    """Return what opens the instances of a class; see `frames.opened_frame`."""
    methods = methods_of(cls)
    transient = _transient(cls)

    def opened(x: Any, looking: bool) -> tuple[object, Library]:
        if looking and transient is not None:
            raise ConversionError(transient)
        return assembled(x, methods), LIBRARY

    return opened


def _transient(cls: type) -> str | None:
    """Return why instances must not be read (it would consume or compute them), or None."""
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
    """Take the arrays of an object; `Assembled.refused` is why there is no tensor of them.

    ``methods`` are its class's, if they are known. Raises the errors of `arrow_memory.columns`, and
    for arrays that contradict their type.
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
        _release(chunks)  # now, not when the traceback that holds this frame is freed
        raise


def _release(chunks: list[Column]) -> None:
    for chunk in chunks:
        chunk.release()


def _read(x: Any, chunks: list[Column], others: Iterator[Column]) -> Assembled:
    schema = chunks[0].schema
    frame = schema.format == b"+s" and EXTENSION not in metadata_of(schema)
    fields = kinds_of(schema) if frame else [schema]
    names = [(field.name or b"").decode(errors="replace") for field in fields]
    where = [f"column {name!r}: " if frame else "" for name in names]
    kinds = [kind_of(field) for field in fields]
    if not kinds:
        raise _Refused("a frame without columns has no data type: pass a frame with columns")
    for kind, place in zip(kinds, where, strict=True):
        if kind.refused:
            raise _Refused(f"{place}{kind.refused}")
    chunks.extend(others)
    found: list[list[Piece]] = [[] for _ in kinds]
    lost = [0] * len(kinds)
    rows, device = 0, None
    for chunk in chunks:
        if chunk.array is None:
            continue
        device = _placed(chunk, device)
        start, count = _extent(chunk)
        absent = _nulls(chunk, start, count) if frame else None
        for number, part in enumerate(chunk.children() if frame else [chunk]):
            first = start + _start(part, "a column", start + count) if frame else start
            piece, missing = _piece(part, kinds[number], first, count, absent)
            lost[number] += missing
            if count:
                found[number].append(piece)
        rows += count
    problems = [
        f"{place}{missing} of {rows * kind.row} elements {'is' if missing == 1 else 'are'} null, "
        f"which no tensor holds: {remedy_of_nulls(type(x))}"
        if missing
        else None
        for place, missing, kind in zip(where, lost, kinds, strict=True)
    ]
    whole = Assembled(rows, frame=frame, device=device or CPU, owner=chunks)

    def of(kind: Kind, columns: list[list[Piece]]) -> Assembled:
        return whole._replace(
            dtype=kind.dtype, columns=tuple(map(tuple, columns)), inner=kind.inner,
            steps=kind.steps, row=kind.row, bits=kind.bits,
        )  # fmt: skip

    if len(set(kinds)) == 1:
        why = next(filter(None, problems), None)
        if why is not None:
            raise _Refused(why)
        return of(kinds[0], found)
    parts = tuple(
        (name, of(kind, [pieces])._replace(frame=False, refused=why), LIBRARY)
        for name, kind, pieces, why in zip(names, kinds, found, problems, strict=True)
    )
    return whole._replace(
        columns=((),) * len(kinds),
        refused=_several(kinds, names),
        parts=() if any(kind.inner for kind in kinds) else parts,
    )


def _several(kinds: list[Kind], names: list[str]) -> str:
    """Return why the columns of a frame are no matrix."""
    first = {kind: names[kinds.index(kind)] for kind in kinds}
    some = ", ".join(
        f"{name!r} {kind.dtype.name}{''.join(f'[{extent}]' for extent in kind.inner)}"
        for kind, name in first.items()
    )
    why = f"the columns have several data types ({some}), and a matrix has one: pass columns of "
    why += f"one type, such as x.select([{names[0]!r}])"
    castable = not any(kind.inner for kind in kinds)
    return f"{why}, or one data type for all, dtype='float64'" if castable else why


def _placed(chunk: Column, device: Device | None) -> Device:
    """Return the device of a chunk, which must be that of the chunks before it."""
    place = CPU if chunk.device[0] == CPU.type else checked_device(*chunk.device)
    if chunk.event:
        _wait(chunk.event, place)
    if device not in (None, place):
        raise ConversionError(f"its chunks are on {device} and {place}: combine them first")
    return place


def _piece(
    column: Column, kind: Kind, start: int, count: int, absent: np.ndarray | None
) -> tuple[Piece, int]:
    """Return the piece of some rows of a column, and how many of its elements are null.

    An element is null if it, or a list that contains it, is marked null: polars marks both.
    """
    rows = count
    for size in kind.lists:
        absent = _either(absent, _nulls(column, start, count))
        absent = None if absent is None else np.repeat(absent, size)
        (column,) = column.children()
        start, count = start * size, count * size
        start += _start(column, "the elements of fixed-size lists", start + count)
    absent = _either(absent, _nulls(column, start, count, 2))
    missing = 0 if absent is None else int(np.count_nonzero(absent))
    data = column.buffers(2)[1]
    if not data and count > 0 and not missing:
        raise MalformedTensorError(f"an Arrow array of {count} elements has no data")
    if kind.bits:
        return Piece(data + start // 8, start % 8, rows), missing
    return Piece(data + start * kind.dtype.itemsize, 0, rows), missing


def _nulls(column: Column, start: int, count: int, buffers: int = 1) -> np.ndarray | None:
    """Return which slots are null, or None if none is."""
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
        raise MalformedTensorError("an Arrow array with nulls has no validity bitmap")
    if column.device[0] != CPU.type:
        if known > 0:  # wherever they are
            return np.arange(count) < known
        raise _Refused("its validity bitmap is in device memory: compute the null count first")
    missing: np.ndarray = unpacked(Piece(bitmap + start // 8, start % 8, count), 1) == 0
    return missing


def _either(one: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
    """Return where one of two masks is true."""
    return other if one is None else one if other is None else one | other


def _wait(event: int, device: Device) -> None:
    """Wait until a device has written the memory; `event` is the address of a handle."""
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


def _start(column: Column, what: str, needed: int) -> int:
    """Return the offset of an array that must have a number of elements."""
    start, held = _extent(column)
    if held < needed:
        raise MalformedTensorError(f"{what} are {held}, but {needed} are needed")
    return start
