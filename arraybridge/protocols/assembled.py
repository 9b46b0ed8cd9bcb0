"""Arrays in pieces: the chunks of a column, the columns of a frame, and booleans in bits.

One piece is a view, and so are columns at equal distances in memory; anything else is assembled by
one copy. Columns stay whole (Fortran order), as in frames: rows would take two to four times as
long.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core.library import Library
from ..core.records import (
    NO_DTYPE,
    Accepts,
    ConversionError,
    TensorInfo,
    no_copy_allowed,
    pending_reason,
)
from ..core.registry import library_named
from ..core.request import Cast, Request
from ..core.table import execute, routed
from ..dlpack import CPU, DataType, Device, ManagedTensor, c_strides
from ..kernels import cpu
from ..layout import Memory

_GAP = 64  # bytes between neighbors in one buffer: padding, not the rest of the heap


class Piece(NamedTuple):
    """Contiguous rows of one column."""

    data: int  # address of the first element, or of the byte that contains it, if it is a bit
    bit: int  # the bit of that byte
    rows: int
    step: int | None = None  # bytes from one row to the next, if not the size of a row


class Assembled(NamedTuple):
    """An array in pieces."""

    rows: int
    dtype: DataType = NO_DTYPE
    columns: tuple[tuple[Piece, ...], ...] = ()  # those that have rows
    frame: bool = False  # whether the columns are an axis; otherwise there is one
    inner: tuple[int, ...] = ()  # extents within a row of a column
    steps: tuple[int, ...] = ()  # their strides, in elements
    row: int = 1  # elements in a row
    bits: bool = False  # whether the elements are packed eight to a byte
    device: Device = CPU
    readonly: bool = True
    refused: str | None = None
    owner: object = None  # keeps all of the memory alive
    immutable: bool = True  # whether nobody writes to it, as Arrow promises
    # For a frame of several data types: each column's label, the array that it converts as, and its
    # library.
    parts: tuple[tuple[Any, Any, Library], ...] = ()
    parts_cast: Cast | None = None  # the cast of the parts; see `cast`

    def advised(self, advice: str, nulls: str) -> Assembled:
        """Return it with other advice on what to do: in general, and about nulls in its parts."""
        if self.refused is None:
            return self
        parts = [
            (label, part._replace(refused=part.refused and _advised(part.refused, nulls)), library)
            for label, part, library in self.parts
        ]
        return self._replace(refused=_advised(self.refused, advice), parts=tuple(parts))

    def cast(self, cast: Cast) -> Assembled:
        """Return a frame of several data types as a matrix of one, if a cast requests it.

        If a column is refused, so is the matrix.
        """
        numpy, wanted = library_named("numpy"), set()
        cast = cast._replace(order=None)
        for label, part, library in self.parts:
            wanted.add(cast.wanted(library.describe(part).dtype))
            found, info = routed(part, library, numpy, Request(cast=cast))
            if found.kind == "refuse" and cast.dtype is not None:
                why = found.reason(info)
                where = "" if why.startswith("column ") else f"column {label!r}: "
                return self._replace(refused=where + why)
        if len(wanted) != 1:
            return self
        return self._replace(dtype=wanted.pop(), refused=None, parts_cast=cast)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents: rows, columns of a frame, then those within a row."""
        return (self.rows, *((len(self.columns),) if self.frame else ()), *self.inner)

    def strides(self, step: int) -> tuple[int, ...]:
        """Return the strides, in elements, for columns that are ``step`` elements apart."""
        shape = self.shape
        if 0 in shape:
            return c_strides(shape)
        return (self.row, *((step,) if self.frame else ()), *self.steps)

    def distance(self) -> int | None:
        """Return the elements from one column to the next, or None if distances differ."""
        itemsize = self.dtype.itemsize
        if any(column[0].step not in (None, itemsize * self.row) for column in self.columns):
            return None
        if len(self.columns) == 1:
            return self.row
        first, *others = (column[0].data for column in self.columns)
        step = others[0] - first
        gap = step - self.rows * self.row * itemsize
        if not 0 <= gap < _GAP or step % itemsize:
            return None
        even = all(data - first == step * at for at, data in enumerate(others, 1))
        return step // itemsize if even else None


def _advised(why: str, advice: str) -> str:
    return f"{why.rpartition(': ')[0]}: {advice}"


class Pieces(Library):
    """Arrays in pieces, of any library."""

    exports_description = True
    in_pieces = True
    accepts = Accepts(library="arrow", tested="1.5", dtypes=frozenset())

    def __init__(self, name: str) -> None:
        self.name = name

    def owns(self, array_type: type) -> bool:
        return array_type is Assembled

    def describe(self, x: Assembled | ManagedTensor) -> TensorInfo:
        if isinstance(x, ManagedTensor):  # the result of resolve
            return TensorInfo.of_tensor(x, self.name)
        shape = x.shape
        data, strides = 0, x.strides(x.rows * x.row)  # as `resolve` makes it
        pending: tuple[str, ...] = ()
        if x.rows and x.columns and x.refused is None:
            data = 0 if x.parts else x.columns[0][0].data
            if x.bits:
                pending += ("bitpacked",)
            if x.parts:
                pending += ("kinds",)
            elif any(len(column) > 1 for column in x.columns):
                pending += ("chunks",)
            elif not x.bits:
                step = x.distance()
                if step is None:
                    pending += ("columns",)
                else:
                    strides = x.strides(step)
        return TensorInfo(
            self.name, data, 0, shape, strides, x.dtype, x.device, x.readonly,
            pending=pending, refused=x.refused,
        )  # fmt: skip

    def may_change(self, x: Assembled) -> bool:
        return not x.immutable

    def resolve(self, x: Assembled) -> ManagedTensor:
        if not x.device.host:
            raise ConversionError(
                f"its pieces are on {x.device}: combine them there first, with the library that "
                "made them"
            )
        if x.parts:
            return _cast(x)
        if x.bits and len(x.columns) == len(x.columns[0]) == 1:
            made = unpacked(x.columns[0][0], x.row)
            data, strides = made.ctypes.data, x.strides(x.row)
            return ManagedTensor.adopt(data, x.shape, x.dtype, owner=made, strides=strides)
        block = ManagedTensor.allocate((len(x.columns), x.rows * x.row), x.dtype)
        at, fresh = block.pointer, block.owner.fresh
        wide = x.row * x.dtype.itemsize
        for column in x.columns:
            for piece in column:
                nbytes = piece.rows * wide
                if x.bits:
                    bytes_at(at, nbytes)[:] = unpacked(piece, x.row)
                elif piece.step in (None, wide):
                    cpu.copy_run(at, piece.data, nbytes, fresh)
                else:
                    cpu.copy(at, piece.data, (piece.rows, wide), (wide, 1), (piece.step, 1), 1)
                at += nbytes
        block.shape, block.strides = x.shape, x.strides(x.rows * x.row)
        return block


def _cast(x: Assembled) -> ManagedTensor:
    """Return the matrix of columns of several data types, each cast to the requested one."""
    numpy: Any = library_named("numpy")
    block = ManagedTensor.allocate((len(x.parts), x.rows), x.dtype)
    for row, (label, part, library) in zip(numpy.wrap(block), x.parts, strict=True):
        found, info = routed(part, library, numpy, Request(cast=x.parts_cast))
        try:
            row[...] = execute(part, found, info)
        except ConversionError as error:  # a value that would change
            raise ConversionError(f"column {label!r}: {error}") from None
    block.shape, block.strides = x.shape, x.strides(x.rows)
    return block


def whole(x: Assembled, shared: bool = False) -> ManagedTensor:
    """Return an array in pieces as one tensor; `shared`: without a copy.

    ConversionError if there is no such tensor, or only by a copy.
    """
    info = LIBRARY.describe(x)
    if info.refused:
        raise ConversionError(info.refused)
    if not info.pending:
        tensor = LIBRARY.export_described(x, info)
        tensor.immutable = x.immutable
        return tensor
    if shared:
        raise ConversionError(no_copy_allowed(pending_reason(info.pending)))
    return LIBRARY.resolve(x)


def bytes_at(address: int, nbytes: int) -> np.ndarray:
    """Return bytes at an address, which the caller keeps alive."""
    return np.asarray(Memory(address, (nbytes,), None, "|u1"))


def unpacked(piece: Piece, row: int) -> np.ndarray:
    """Return a byte for each bit of a piece, reading no byte after its last bit."""
    count = piece.rows * row and piece.bit + piece.rows * row  # there may be no memory
    packed = bytes_at(piece.data, (count + 7) // 8)
    return np.unpackbits(packed, count=count, bitorder="little")[piece.bit :]


LIBRARY = Pieces("arrow")
