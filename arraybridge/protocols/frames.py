"""Data frames and their columns as arrays: pandas', polars', pyarrow's, and others through Arrow.

A column is the NumPy or Arrow array inside it. A frame of one block is a view; other frames become
a matrix by one copy, column by column (Fortran order, as in frames). pyarrow reads every object
with Arrow's PyCapsule interface.

``adapt``, ``unify`` and trees pass frames on as they are, since a function may want one; ``adapt``
also columns. ``convert``, ``from_dlpack`` and ``asarray`` accept them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..core.cast_rules import keeps, of_column
from ..core.library import Library, array_itself
from ..core.records import (
    NO_DTYPE,
    Accepts,
    ConversionError,
    TensorInfo,
    no_copy_allowed,
    pending_reason,
)
from ..core.registry import frames_of, library_named, package_of
from ..core.request import Cast, Request
from ..core.table import OBSERVERS, entry_of, notify_copy, plan_for
from ..dlpack import CPU, DataType, ManagedTensor, c_strides

METHODS = ("__arrow_c_array__", "__arrow_c_stream__")


Column = tuple[Any, Any, Library]  # its label, an array, and the library of that


class Frame(NamedTuple):
    """The columns of a frame, each with its label and its library; see `frame`."""

    rows: int
    columns: tuple[Column, ...] | None = None  # None for a refused column
    dtype: DataType = NO_DTYPE
    refused: str | None = None
    kinds: Mapping[DataType, Column] = {}  # if there are several: the first column of each
    to: Cast | None = None  # the cast of the columns

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rows and, for a frame, of columns."""
        return (self.rows,) if self.columns is None else (self.rows, len(self.columns))

    def cast(self, cast: Cast) -> Frame:
        """Return a matrix of one data type, if a cast requests it, or a refused frame."""
        if not self.kinds:
            return self
        cast, wanted = cast._replace(order=None), set()
        numpy = library_named("numpy")
        for dtype, (label, column, library) in self.kinds.items():
            wanted.add(cast.wanted(dtype))
            found = plan_for(column, library, numpy, Request(cast=cast))
            if found.kind == "refuse" and cast.dtype is not None:
                return self._replace(refused=f"column {label!r}: {found.why}")
        if len(wanted) != 1:
            return self
        return self._replace(dtype=wanted.pop(), refused=None, to=cast)


class Frames(Library):
    """Frames, and columns that no tensor holds."""

    name = "frame"
    accepts = Accepts(library="frame", tested="1.5", dtypes=frozenset())

    def owns(self, array_type: type) -> bool:
        return array_type is Frame

    def describe(self, x: Frame | ManagedTensor) -> TensorInfo:
        if isinstance(x, ManagedTensor):  # the result of resolve
            return TensorInfo.of_tensor(x, self.name)
        shape = x.shape
        empty = x.refused is not None or 0 in shape
        strides = c_strides(shape) if empty else (1, x.rows)
        pending = () if empty else ("kinds" if x.to else "columns",)
        return TensorInfo(
            self.name, 0, 0, shape, strides, x.dtype, CPU, True,
            pending=pending, refused=x.refused,
        )  # fmt: skip

    memory_owner = array_itself

    def resolve(self, x: Frame) -> ManagedTensor:
        numpy: Any = library_named("numpy")
        columns, request = x.columns or (), Request(cast=x.to)
        checked = x.to is not None and x.to.casting == "same_value"
        block = ManagedTensor.allocate((len(columns), x.rows), x.dtype)
        for row, (label, column, library) in zip(numpy.wrap(block), columns, strict=True):
            start = 0
            for part in getattr(column, "chunks", (column,)):
                if checked or not isinstance(part, np.ndarray):
                    try:
                        part = entry_of(type(part), library, numpy, request).run(part)
                    except ConversionError as error:  # a value that would change
                        raise ConversionError(f"column {label!r}: {error}") from None
                numpy.computing.assign(row[start : start + len(part)], part)
                start += len(part)
        block.shape, block.strides = x.shape, (1, x.rows) if x.rows else c_strides(x.shape)
        return block


LIBRARY = Frames()


def frame(rows: int, columns: Iterable[Column]) -> tuple[Frame, Library]:
    """Return what a frame converts as: of columns, each a label, an array and its library."""
    return _frame(rows, tuple(columns)), LIBRARY


def _frame(rows: int, columns: tuple[Column, ...]) -> Frame:
    """Return a frame, which says if it is no matrix."""
    kinds: dict[DataType, Column] = {}
    for each in columns:
        label, column, library = each
        info = library.describe(column)
        why = info.refused
        if why is None and info.ndim != 1:
            why = f"it is an array of {info.ndim} axes: convert it by itself"
        if why is not None:
            return Frame(rows, columns, info.dtype, f"column {label!r}: {why}")
        kinds.setdefault(info.dtype, each)
    if not kinds:
        return Frame(rows, columns, refused="a frame without columns has no data type")
    if len(kinds) == 1:
        return Frame(rows, columns, next(iter(kinds)))
    some = ", ".join(f"{label!r} {dtype.name}" for dtype, (label, _, _) in kinds.items())
    common = DataType.named(np.result_type(*(dtype.name for dtype in kinds)).name)
    why = f"the columns have several data types ({some}), and a matrix has one: "
    why += f"pass dtype={common.name!r}"
    if not all(keeps(dtype, common) for dtype in kinds):
        why += ", casting='same_value', which raises if a number would change"
    return Frame(rows, columns, common, why, kinds)


def refused(x: Any, why: str) -> tuple[Frame, Library]:
    """Return what a column converts as that no tensor holds."""
    return Frame(len(x), dtype=of_column(x.dtype) or NO_DTYPE, refused=why), LIBRARY


def nulls(count: int, length: int) -> str:
    """Return why a column with nulls is refused."""
    are = "is" if count == 1 else "are"
    return f"{count} of {length} elements {are} null, which no tensor holds: fill or drop them"


def no_numbers(what: str) -> str:
    """Return why a column of text, dates and the like is refused."""
    objects = what.lower().endswith("object")
    return f"{what} is not a tensor dtype: " + (
        "stack its arrays or numbers, arraybridge.asarray([*x], like='numpy'), or cast decimals "
        "to float64"
        if objects
        else "make it numbers first, such as the integers of dates, the codes of categories and "
        "text, decimals as float64, the elements of lists"
    )


def whole(x: Frame, shared: bool = False) -> ManagedTensor:
    """Return a frame as one tensor, `shared` without a copy; ConversionError if there is none."""
    info = LIBRARY.describe(x)
    if info.refused:
        raise ConversionError(info.refused)
    if shared and info.pending:
        raise ConversionError(no_copy_allowed(pending_reason(info.pending)))
    if OBSERVERS and info.pending:
        notify_copy(pending_reason(info.pending), info)
    return LIBRARY.resolve(x)


def is_frame(cls: type) -> bool:
    """Whether instances of a class are frames, or columns of them."""
    return speaks_arrow(cls) or frames_of(cls) is not None


def speaks_arrow(cls: type) -> bool:
    """Whether instances are read through Arrow's interface: not files, nor what has labels."""
    speaks = any(getattr(cls, method, None) is not None for method in METHODS)
    return speaks and package_of(cls) not in ("awkward", "xarray")


def opened_frame(x: Any, looking: bool = False) -> tuple[object, Library] | None:
    """Return what a frame or column converts as, and its library; None for another object.

    If it is only described (`looking`), reading that would consume or compute it is refused.
    """
    cls = type(x)
    own = frames_of(cls)
    found = None if own is None else own(x)
    if found is None and speaks_arrow(cls):
        if looking:
            _check_readable(cls)
        pyarrow: Any = library_named("pyarrow")
        found = pyarrow.read(x)
    return found


def _check_readable(cls: type) -> None:
    """Raise for instances that reading would consume or compute."""
    once = not hasattr(cls, "__len__") or hasattr(cls, "execute") or hasattr(cls, "fetchall")
    if getattr(cls, "__arrow_c_array__", None) is not None or not once:
        return
    raise ConversionError(
        f"{package_of(cls)}.{cls.__qualname__} can be read only once, or is a query, which would "
        "run: convert it, or look at a table of it, pyarrow.table(x)"
    )
