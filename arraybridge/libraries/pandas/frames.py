"""Columns and frames of pandas, as the arrays that they hold; pyarrow is not needed for NumPy's.

A column over NumPy, a masked one without NA among them, is NumPy's array, read-only as pandas gives
it: with copy-on-write a column shares memory with others. A column over Arrow is Arrow's array. A
frame of one block is its matrix; of several, of one data type, is assembled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from ...dispatch.library import Library
from ...dispatch.records import NO_DTYPE
from ...dispatch.registry import library_named
from ...protocols.arrow import assembled
from ...protocols.assembled import Assembled, Piece, Pieces
from ...protocols.numpy_dtypes import CHARS, dlpack_dtype
from ..numpy.address import address_of

__all__ = ["opened"]

PANDAS = Pieces("pandas")
_COLUMNS = (pd.Series, pd.Index, ExtensionArray)


def opened(x: Any) -> tuple[object, Library] | None:
    """Return what stands for a column or a frame, and its library; None for another object."""
    if isinstance(x, pd.DataFrame):
        return _frame(x)
    if isinstance(x, _COLUMNS):
        return _column(x)
    return None


def _refused(rows: int, why: str) -> tuple[object, Library]:
    return Assembled(rows, NO_DTYPE, refused=why), PANDAS


def _column(x: Any, name: str = "x") -> tuple[object, Library]:
    """Return what stands for a column; ``name`` is what the caller calls it."""
    dtype = x.dtype
    if isinstance(dtype, np.dtype):
        if dtype.char in CHARS:
            return x.to_numpy(), library_named("numpy")
    elif hasattr(dtype, "pyarrow_dtype"):
        arrow = getattr(x, "array", x).__arrow_array__()
        library = library_named("pyarrow")
        why = library.describe(arrow).refused
        if why is None:
            return arrow, library
        if not _is_number(dtype) and "not a tensor dtype" not in why:
            return _refused(len(x), f"{why.rpartition(': ')[0]}: {_remedy(x, name)}")
    elif hasattr(dtype, "numpy_dtype") and dtype.kind in "biuf" and not x.isna().any():
        values = x.to_numpy(dtype.numpy_dtype, copy=False)
        if not isinstance(x, ExtensionArray):  # as of columns over NumPy: others may share it
            values = values.view()
            values.flags.writeable = False
        return values, library_named("numpy")
    if hasattr(dtype, "units"):  # pint-pandas
        return _refused(len(x), f"a column of {dtype} would lose its unit: pass x.pint.magnitude")
    if not _is_number(dtype):
        return _refused(len(x), f"pandas' {dtype} is not a tensor dtype: {_remedy(x, name)}")
    missing = int(x.isna().sum())
    return _refused(
        len(x),
        f"{missing} of {len(x)} elements {'is' if missing == 1 else 'are'} NA, which no tensor "
        f"holds: {_remedy(x, name, missing=True)}",
    )


def _is_number(dtype: Any) -> bool:
    """Whether a column of numbers may have NA."""
    return getattr(dtype, "na_value", None) is pd.NA and dtype.kind in "biuf"


def _remedy(x: Any, name: str = "x", missing: bool = False) -> str:
    from . import remedies  # when something is wrong

    if missing:
        return remedies.remedy_of_missing(x).replace("x.", f"{name}.")
    return remedies.remedy(x, name)


def _frame(x: pd.DataFrame) -> tuple[object, Library]:
    if x.size and _one_block(x):  # the quick question first
        return x.to_numpy(), library_named("numpy")
    dtypes = list(x.dtypes)
    if not dtypes:
        return _refused(len(x), "a frame without columns has no data type: pass one with columns")
    first = dtypes[0]
    if any(dtype != first for dtype in dtypes):
        return _several(x), PANDAS
    numbers = isinstance(first, np.dtype) and first.char in CHARS
    if numbers and not len(x):
        return x.to_numpy(), library_named("numpy")
    columns: list[tuple[Piece, ...]] = []
    owners: list[object] = []
    kind, bits, immutable = NO_DTYPE, False, True
    for number, name in enumerate(x.columns):
        column = x.iloc[:, number]
        array, library = _column(column, _code_of(x, number))
        if library is PANDAS:
            why = str(array.refused)  # type: ignore[attr-defined]
            if _is_number(first):  # for the whole frame
                why = f"{why.rpartition(': ')[0]}: {_remedy(x, missing=True)}"
            return _refused(len(x), f"column {name!r}: {why}")
        if isinstance(array, np.ndarray):
            kind = dlpack_dtype(array.dtype.newbyteorder("=")) or NO_DTYPE
            immutable = False  # pandas writes to it
            if not array.dtype.isnative:
                return _refused(
                    len(x),
                    "its bytes are in the other order: pass "
                    f"x.astype('{array.dtype.newbyteorder('=')}')",
                )
            columns.append((Piece(address_of(array), 0, len(array), array.strides[0]),))
        else:
            part = assembled(array)
            if part.refused or part.inner:
                code = _code_of(x, number)
                return _refused(
                    len(x), f"column {name!r} is a matrix: convert it by itself, {code}"
                )
            kind, bits = part.dtype, part.bits
            columns += part.columns
        owners.append(array)
    rows = len(x)
    found = tuple(columns) if rows else ((),) * len(dtypes)
    return Assembled(rows, kind, found, True, bits=bits, owner=owners, immutable=immutable), PANDAS


def _several(x: pd.DataFrame) -> Assembled:
    """Return a frame of several data types: why it is no matrix, what to do, and its columns."""
    labels, dtypes = list(x.columns), list(x.dtypes)
    told = dict(zip(map(str, reversed(dtypes)), reversed(labels), strict=True))
    some = ", ".join(f"{name!r} {dtype}" for dtype, name in reversed(told.items()))
    why = f"the columns have several data types ({some}), and a matrix has one: "
    found = [_column(x.iloc[:, number], _code_of(x, number)) for number in range(len(labels))]
    whole = [
        library is not PANDAS and library.describe(column).ndim == 1 for column, library in found
    ]
    if any(whole):
        why += f"pass columns of one type, such as {_code_of(x, whole.index(True), frame=True)}"
        if all(whole):
            why += ", or cast them, dtype='float64' or x.astype('float64')"
    else:
        why += _remedy(x.iloc[:, 0], _code_of(x, 0))
    parts: list[tuple[Any, Any, Library]] = []
    column: Any
    for label, (column, library), dtype in zip(labels, found, dtypes, strict=True):
        if library is PANDAS and _is_number(dtype):  # what is done about the frame is better
            column = column.advised(_remedy(x, missing=True), "")
        parts.append((label, column, library))
    columns: tuple[tuple[Piece, ...], ...] = ((),) * len(parts)
    return Assembled(len(x), columns=columns, frame=True, refused=why, parts=tuple(parts))


def _code_of(x: pd.DataFrame, number: int, frame: bool = False, called: str = "x") -> str:
    """Return the code of a column, or with `frame` of the frame of it alone."""
    name = x.columns[number]
    if not isinstance(name, str | int) or list(x.columns).count(name) > 1:
        return f"{called}.iloc[:, {[number] if frame else number}]"
    return f"{called}[[{name!r}]]" if frame else f"{called}.get({name!r})"


def _one_block(x: pd.DataFrame) -> bool:
    """Whether a frame lies in one block of numbers: then its matrix is a view."""
    column = x.iloc[:, 0]
    if not isinstance(column.dtype, np.dtype) or column.dtype.char not in CHARS:
        return False
    probe = x.iloc[:1].to_numpy()  # a row: of several blocks it is a copy, with a common type
    return address_of(probe) == address_of(column.to_numpy())
