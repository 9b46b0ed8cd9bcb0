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
from pandas.api.types import is_numeric_dtype

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


def _column(x: Any) -> tuple[object, Library]:
    dtype = x.dtype
    if isinstance(dtype, np.dtype):
        if dtype.char in CHARS:
            return x.to_numpy(), library_named("numpy")
        return _refused(len(x), _no_number(x))
    if hasattr(dtype, "pyarrow_dtype"):
        missing = int(x.isna().sum())
        if not missing:
            arrow = getattr(x, "array", x).__arrow_array__()
            library = library_named("pyarrow")
            if library.describe(arrow).refused is None:
                return arrow, library
            return _refused(len(x), _no_number(x))
    elif getattr(dtype, "numpy_dtype", None) is not None and dtype.kind in "biuf":
        missing = int(x.isna().sum())
        if not missing:
            values = x.to_numpy(dtype.numpy_dtype, copy=False)
            if not isinstance(x, ExtensionArray):  # as of columns over NumPy: others may share it
                values = values.view()
                values.flags.writeable = False
            return values, library_named("numpy")
    else:
        return _refused(len(x), _no_number(x))
    return _refused(
        len(x),
        f"{missing} of {len(x)} elements {'is' if missing == 1 else 'are'} NA, which no tensor "
        "holds: pass x.fillna(value) or x.dropna()",
    )


def _no_number(x: Any) -> str:
    """Return why a column has no tensor, and what to do."""
    dtype = x.dtype
    if hasattr(dtype, "units"):  # pint-pandas
        return f"a column of {dtype} would lose its unit: pass x.pint.magnitude"
    remedy = "convert it to numbers first, x.astype('float64')"
    for kind, told in (
        (pd.CategoricalDtype, "pass its codes, x.cat.codes"),
        (pd.SparseDtype, "pass x.sparse.to_dense()"),
        (pd.DatetimeTZDtype, "pass its integers, x.astype('int64')"),
        (pd.PeriodDtype, "pass its integers, x.astype('int64')"),
        (pd.IntervalDtype, "pass its ends, x.array.left and x.array.right"),
        (
            pd.StringDtype,
            "pass codes, x.astype('category').cat.codes, or the numbers that it spells, "
            "pandas.to_numeric(x)",
        ),
    ):
        if isinstance(dtype, kind):
            remedy = told
    if getattr(dtype, "kind", "") in "mM":
        remedy = "pass its integers, x.astype('int64')"
    return f"pandas' {dtype} is not a tensor dtype: {remedy}"


def _frame(x: pd.DataFrame) -> tuple[object, Library]:
    if x.size and _one_block(x):  # the quick question first
        return x.to_numpy(), library_named("numpy")
    dtypes = list(x.dtypes)
    if not dtypes:
        return _refused(len(x), "a frame without columns has no data type: pass one with columns")
    first = dtypes[0]
    if any(dtype != first for dtype in dtypes):
        told = dict(zip(map(str, reversed(dtypes)), reversed(list(x.columns)), strict=True))
        some = ", ".join(f"{name!r} {dtype}" for dtype, name in reversed(told.items()))
        number = next((c for c, d in x.dtypes.items() if is_numeric_dtype(d)), None)
        if number is None:
            remedy = "pass its columns one by one"
        else:
            remedy = f"pass columns of one type, such as x[[{number!r}]]"
        if all(map(is_numeric_dtype, dtypes)):
            remedy += ", or cast them first, x.astype('float64')"
        return _refused(
            len(x),
            f"the columns have several data types ({some}), and a matrix has one: {remedy}",
        )
    numbers = isinstance(first, np.dtype) and first.char in CHARS
    if numbers and not len(x):
        return x.to_numpy(), library_named("numpy")
    columns: list[tuple[Piece, ...]] = []
    owners: list[object] = []
    kind, bits = NO_DTYPE, False
    for number, name in enumerate(x.columns):
        array, library = _column(x.iloc[:, number])
        if library is PANDAS:
            return _refused(len(x), f"column {name!r}: {array.refused}")  # type: ignore[attr-defined]
        if isinstance(array, np.ndarray):
            kind = dlpack_dtype(array.dtype.newbyteorder("=")) or NO_DTYPE
            if not array.dtype.isnative:
                return _refused(
                    len(x), "its bytes are in the other order: pass x.astype(...) of this machine's"
                )
            columns.append((Piece(address_of(array), 0, len(array), array.strides[0]),))
        else:
            part = assembled(array)
            if part.refused or part.inner:
                return _refused(len(x), f"column {name!r}: convert it by itself, x[{name!r}]")
            kind, bits = part.dtype, part.bits
            columns += part.columns
        owners.append(array)
    rows = len(x)
    found = tuple(columns) if rows else ((),) * len(dtypes)
    return Assembled(rows, kind, found, True, bits=bits, owner=owners), PANDAS


def _one_block(x: pd.DataFrame) -> bool:
    """Whether a frame lies in one block of numbers: then its matrix is a view."""
    column = x.iloc[:, 0]
    if not isinstance(column.dtype, np.dtype) or column.dtype.char not in CHARS:
        return False
    probe = x.iloc[:1].to_numpy()  # a row: of several blocks it is a copy, with a common type
    return address_of(probe) == address_of(column.to_numpy())
