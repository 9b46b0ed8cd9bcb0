"""Arrays in pieces: the chunks of a column, the columns of a frame, and booleans in bits.

One piece is a view, and so are columns that lie next to each other at an equal distance; all else
is assembled by one copy, in C order.
"""

from __future__ import annotations

import numpy as np

from ..dispatch.library import Library
from ..dispatch.records import NO_DTYPE, Accepts, ConversionError, TensorInfo
from ..dlpack import CPU, DataType, Device, ManagedTensor, c_strides
from ..kernels.cpu import flat
from ..named import NamedTuple

__all__ = ["LIBRARY", "Assembled", "Piece", "bytes_at"]

_BLOCK = 1 << 18  # bytes of the result that are filled column by column: they stay in the cache
_GAP = 64  # bytes between neighbours in one buffer: padding, not the rest of the heap


class Piece(NamedTuple):
    """Rows of one column that lie together.

    Attributes
    ----------
    data : int
        Address of the first element; of the byte that has it, if it is a bit.
    bit : int
        Which bit of that byte it is.
    rows : int
    step : int
        Bytes from one row to the next, where it is not the size of a row.
    """

    data: int
    bit: int
    rows: int
    step: int = 0


class Assembled(NamedTuple):
    """What is known of an array in pieces.

    Attributes
    ----------
    rows : int
    dtype : DataType
    columns : tuple of tuple of Piece
        Those that have rows.
    frame : bool
        Whether the columns are an axis; otherwise there is one.
    inner, steps : tuple of int
        Extents and strides, in elements, of what is within a row of a column.
    row : int
        Elements of such a row.
    bits : bool
        Whether the elements are packed eight to a byte.
    device : Device
    readonly : bool
    refused : str or None
    owner : object
        Keeps all of the memory.
    """

    rows: int
    dtype: DataType = NO_DTYPE
    columns: tuple[tuple[Piece, ...], ...] = ()
    frame: bool = False
    inner: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    row: int = 1
    bits: bool = False
    device: Device = CPU
    readonly: bool = True
    refused: str | None = None
    owner: object = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents: rows, columns of a frame, then what is within a row."""
        return (self.rows, *((len(self.columns),) if self.frame else ()), *self.inner)

    def distance(self) -> int | None:
        """Return the elements from one column to the next; None where they lie apart."""
        itemsize = self.dtype.itemsize
        if any(column[0].step not in (0, itemsize * self.row) for column in self.columns):
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


class Pieces(Library):
    """Arrays in pieces, of any library that has such."""

    exports_description = True
    accepts = Accepts(library="arrow", tested="1.5", dtypes=frozenset())

    def __init__(self, name: str) -> None:
        self.name = name

    def owns(self, array_type: type) -> bool:
        return array_type is Assembled

    def describe(self, x: Assembled | ManagedTensor) -> TensorInfo:
        if isinstance(x, ManagedTensor):  # what resolve makes
            return TensorInfo.of_tensor(x, self.name)
        shape = x.shape
        data, strides = 0, c_strides(shape)
        pending: tuple[str, ...] = ()
        if x.rows and x.columns and x.refused is None:
            data = x.columns[0][0].data
            if x.bits:
                pending += ("bitpacked",)
            if any(len(column) > 1 for column in x.columns):
                pending += ("chunks",)
            elif not x.bits:
                step = x.distance()
                if step is None:
                    pending += ("columns",)
                else:
                    strides = (x.row, *((step,) if x.frame else ()), *x.steps)
        return TensorInfo(
            self.name, data, 0, shape, strides, x.dtype, x.device, x.readonly,
            pending=pending, refused=x.refused,
        )  # fmt: skip

    def resolve(self, x: Assembled) -> ManagedTensor:
        if not x.device.host:
            raise ConversionError(
                f"its pieces are on {x.device}: combine them there first, by the library that "
                "made them"
            )
        count = len(x.columns)
        if x.bits and count == 1 and len(x.columns[0]) == 1:
            made = _unpacked(x.columns[0][0], x.row)
            return _shaped(x, made.ctypes.data, made)
        block = ManagedTensor.allocate((x.rows, count * x.row), x.dtype)
        if x.bits:
            _fill_with_bits(x, bytes_at(block.pointer, block.nbytes))
        elif count == 1 and not any(piece.step for piece in x.columns[0]):
            at, fresh = block.pointer, block.owner.fresh
            for piece in x.columns[0]:
                nbytes = piece.rows * x.row * x.dtype.itemsize
                flat.copy(at, piece.data, nbytes, fresh)
                at += nbytes
        else:  # also of one column with a step
            _interleave(x, bytes_at(block.pointer, block.nbytes))
        return _shaped(x, block.pointer, block.owner, block)


def _shaped(
    x: Assembled, data: int, owner: object, block: ManagedTensor | None = None
) -> ManagedTensor:
    """Return the tensor on rows that are filled; the block itself where that is it."""
    shape, wide = x.shape, len(x.columns) * x.row
    strides = (wide, *((x.row,) if x.frame else ()), *x.steps)
    if block is not None and strides == c_strides(shape):
        block.shape, block.strides = shape, strides
        return block
    return ManagedTensor.adopt(data, shape, x.dtype, owner=owner, strides=strides, copied=True)


class _Memory:
    """Memory at an address, for NumPy."""

    __slots__ = ("__array_interface__",)

    def __init__(self, address: int, count: int, typestr: str, step: int | None = None) -> None:
        self.__array_interface__ = {
            "data": (address, False),
            "shape": (count,),
            "strides": None if step is None else (step,),
            "typestr": typestr,
            "version": 3,
        }


def bytes_at(address: int, nbytes: int) -> np.ndarray:
    """Return bytes at an address, which the caller keeps alive."""
    return np.asarray(_Memory(address, nbytes, "|u1"))


def _unpacked(piece: Piece, row: int) -> np.ndarray:
    """Return a byte for each bit of a piece; no byte behind its last bit is read."""
    count = piece.bit + piece.rows * row
    packed = bytes_at(piece.data, (count + 7) // 8)
    return np.unpackbits(packed, count=count, bitorder="little")[piece.bit :]


def _fill_with_bits(x: Assembled, block: np.ndarray) -> None:
    block = block.reshape(x.rows, len(x.columns), x.row)
    for number, column in enumerate(x.columns):
        first = 0
        for piece in column:
            last = first + piece.rows
            block[first:last, number] = _unpacked(piece, x.row).reshape(piece.rows, x.row)
            first = last


def _interleave(x: Assembled, block: np.ndarray) -> None:
    """Fill a block whose rows go through all columns, so many rows at a time."""
    wide = x.row * x.dtype.itemsize
    word = x.dtype.itemsize if x.row == 1 and x.dtype.itemsize in (1, 2, 4, 8) else 0
    dtype = np.dtype(f"u{word}" if word else f"V{wide}")
    rows = block.view(dtype).reshape(x.rows, len(x.columns))
    columns = [
        [(np.asarray(_Memory(p.data, p.rows, dtype.str, p.step or wide)), p.rows) for p in column]
        for column in x.columns
    ]
    many = max(256, _BLOCK // (wide * len(columns)))
    if all(len(column) == 1 for column in columns):
        for first in range(0, x.rows, many):
            part = rows[first : first + many]
            for number, ((values, _),) in enumerate(columns):
                part[:, number] = values[first : first + many]
        return
    for number, column in enumerate(columns):
        first = 0
        for values, count in column:
            rows[first : first + count, number] = values
            first += count


LIBRARY = Pieces("arrow")
