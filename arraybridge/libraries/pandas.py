"""Columns and frames of pandas, as the arrays inside them; pyarrow is not needed for NumPy's.

A column over NumPy, or a masked one without NA, is NumPy's array, read-only as pandas returns it:
under copy-on-write, columns share memory. A column over Arrow is Arrow's array. A frame of one
block is its matrix; one of several blocks and one data type is assembled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray
from pandas.api.types import infer_dtype, is_numeric_dtype

from ..core.library import Library
from ..core.records import NO_DTYPE
from ..core.registry import library_named
from ..ndarrays import CHARS, address_of, dlpack_dtype
from ..protocols.arrow import assembled
from ..protocols.arrow_types import spells_number
from ..protocols.assembled import Assembled, Piece, Pieces

PANDAS = Pieces("pandas")
_COLUMNS = (pd.Series, pd.Index, ExtensionArray)


def opened(x: Any) -> tuple[object, Library] | None:
    """Return what a column or a frame converts as, and its library; None for another object."""
    if isinstance(x, pd.DataFrame):
        return _frame(x)
    if isinstance(x, _COLUMNS):
        return _column(x)
    return None


def _refused(rows: int, why: str) -> tuple[object, Library]:
    return Assembled(rows, NO_DTYPE, refused=why), PANDAS


def _column(x: Any, name: str = "x") -> tuple[object, Library]:
    """Return what a column converts as; ``name`` is the caller's name for it."""
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
            return _refused(len(x), f"{why.rpartition(': ')[0]}: {remedy(x, name)}")
    elif hasattr(dtype, "numpy_dtype") and dtype.kind in "biuf" and not x.isna().any():
        values = x.to_numpy(dtype.numpy_dtype, copy=False)
        if not isinstance(x, ExtensionArray):  # may be shared, as columns over NumPy are
            values = values.view()
            values.flags.writeable = False
        return values, library_named("numpy")
    if hasattr(dtype, "units"):  # pint-pandas
        return _refused(len(x), f"a column of {dtype} would lose its unit: pass x.pint.magnitude")
    if not _is_number(dtype):
        return _refused(len(x), f"pandas' {dtype} is not a tensor dtype: {remedy(x, name)}")
    missing = int(x.isna().sum())
    return _refused(
        len(x),
        f"{missing} of {len(x)} elements {'is' if missing == 1 else 'are'} NA, which no tensor "
        f"holds: {remedy_of_missing(x, name)}",
    )


def _is_number(dtype: Any) -> bool:
    """Whether a column of numbers may have NA."""
    return getattr(dtype, "na_value", None) is pd.NA and dtype.kind in "biuf"


def _frame(x: pd.DataFrame) -> tuple[object, Library]:
    if x.size and _one_block(x):  # the quick check first
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
                why = f"{why.rpartition(': ')[0]}: {remedy_of_missing(x)}"
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
    label_of = dict(zip(map(str, reversed(dtypes)), reversed(labels), strict=True))
    some = ", ".join(f"{name!r} {dtype}" for dtype, name in reversed(label_of.items()))
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
        why += remedy(x.iloc[:, 0], _code_of(x, 0))
    parts: list[tuple[Any, Any, Library]] = []
    column: Any
    for label, (column, library), dtype in zip(labels, found, dtypes, strict=True):
        if library is PANDAS and _is_number(dtype):  # the remedy for the whole frame is better
            column = column.advised(remedy_of_missing(x), "")
        parts.append((label, column, library))
    columns: tuple[tuple[Piece, ...], ...] = ((),) * len(parts)
    return Assembled(len(x), columns=columns, frame=True, refused=why, parts=tuple(parts))


def _code_of(x: pd.DataFrame, number: int, frame: bool = False, called: str = "x") -> str:
    """Return the code of a column or, with `frame`, of a frame of that column."""
    name = x.columns[number]
    if not isinstance(name, str | int) or list(x.columns).count(name) > 1:
        return f"{called}.iloc[:, {[number] if frame else number}]"
    return f"{called}[[{name!r}]]" if frame else f"{called}.get({name!r})"


def _one_block(x: pd.DataFrame) -> bool:
    """Whether a frame is one block of numbers, so that its matrix is a view."""
    column = x.iloc[:, 0]
    if not isinstance(column.dtype, np.dtype) or column.dtype.char not in CHARS:
        return False
    probe = x.iloc[:1].to_numpy()  # a row of several blocks is a copy of a common type
    return address_of(probe) == address_of(column.to_numpy())


# What to pass instead of a column that no tensor holds, by its data type and its NA.

_DATES = {"date", "datetime", "datetime64"}
_SPANS = {"timedelta", "timedelta64"}


def remedy_of_missing(x: Any, name: str = "x") -> str:
    """Return what to do about numbers with NA in a column or a frame of columns."""
    kinds = x.dtypes.array if isinstance(x, pd.DataFrame) else [x.dtype]
    value = "False" if all(pd.api.types.is_bool_dtype(kind) for kind in kinds) else "value"
    if value == "False" and isinstance(x, pd.Index):  # its fillna makes objects
        return f"pass {name}.dropna()"
    return f"pass {name}.fillna({value}) or {name}.dropna()"


def remedy(x: Any, name: str = "x") -> str:
    """Return what to do about a column; ``name`` is its name in the code."""
    dtype = x.dtype
    if isinstance(x, pd.MultiIndex):
        number = next((at for at, kind in enumerate(x.dtypes) if is_numeric_dtype(kind)), None)
        if number is None:
            return f"pass codes of its levels one by one, {name}.codes[0]"
        return f"pass its levels one by one, {name}.get_level_values({number})"
    if hasattr(dtype, "pyarrow_dtype"):
        return _of_arrow(x, name)
    if isinstance(dtype, pd.CategoricalDtype):
        return f"pass its codes, {_of_series(x, name, 'cat')}.codes"
    if isinstance(dtype, pd.SparseDtype):
        dense = f"{name}.array" if isinstance(x, pd.Index) else _of_series(x, name, "sparse")
        return f"pass {dense}.to_dense()"
    if isinstance(dtype, pd.IntervalDtype):
        ends = name if not isinstance(x, pd.Series) else f"{name}.array"
        kept = "" if is_numeric_dtype(dtype.subtype) else ".astype('int64')"
        return f"pass its ends, {ends}.left{kept} and {ends}.right{kept}"
    missing, kind = bool(x.isna().any()), getattr(dtype, "kind", "")
    kept = f"{name}.dropna()" if missing else name
    if kind in "mM" or isinstance(dtype, pd.PeriodDtype):
        return f"pass its integers, {kept}.astype('int64')"
    values = x.dropna() if missing else x
    if isinstance(dtype, pd.StringDtype):
        return _of_text(x, name, kept, values)
    if kind != "O":
        standard = "complex128" if kind == "c" else "float64"
        return f"convert it to numbers first, {kept}.astype('{standard}')"
    found = infer_dtype(values)
    if found == "string":
        return _of_text(x, name, kept, values)
    for whole in ("float64", "complex128"):
        try:
            values.astype(whole)
        except (TypeError, ValueError):
            continue
        return f"convert it to numbers first, {kept}.astype('{whole}')"
    for some, function in ((_DATES, "to_datetime"), (_SPANS, "to_timedelta")):
        if found in some:
            return f"pass integers, pandas.{function}({kept}).astype('int64')"
    if len(values) and isinstance(values[:1].tolist()[0], list | tuple | np.ndarray):
        return f"pass the elements of its lists, concatenated, numpy.concatenate({kept}.tolist())"
    try:
        pd.factorize(x)
    except TypeError:  # an unhashable element
        return "convert its elements to numbers first"
    return f"pass codes, pandas.factorize({name})[0]"


def _of_series(x: Any, name: str, accessor: str) -> str:
    """Return the object with an accessor's methods; indices and arrays have them directly."""
    return f"{name}.{accessor}" if isinstance(x, pd.Series) else name


def _of_text(x: Any, name: str, kept: str, values: Any) -> str:
    codes = _of_series(x, f"{name}.astype('category')", "cat")
    advice = f"pass codes, {codes}.codes"
    if len(values) and spells_number(values[:1].tolist()[0]):
        advice += f", or the numbers that it spells, pandas.to_numeric({kept})"
    return advice


def _of_arrow(x: Any, name: str) -> str:
    """Return what to do about a column over Arrow, by pandas' own functions if possible."""
    import pyarrow as pa

    from .pyarrow import remedy as of_array
    from .pyarrow import telling_chunk

    kind = x.dtype.pyarrow_dtype
    kept = f"{name}.dropna()" if x.isna().any() else name
    if pa.types.is_decimal(kind):
        return f"convert it to numbers first, {kept}.astype('float64')"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _of_text(x, name, kept, x.dropna())
    chunk = telling_chunk(getattr(x, "array", x).__arrow_array__())
    name += ".array" if hasattr(x, "array") else ""
    return of_array(chunk, f"{name}.__arrow_array__().combine_chunks()")
