"""What to pass instead of a column of pandas that no tensor holds, by its data type and its NA."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype, is_numeric_dtype

from ...protocols.arrow_types import spells_number

__all__ = ["remedy", "remedy_of_missing"]

_DATES = {"date", "datetime", "datetime64"}
_SPANS = {"timedelta", "timedelta64"}


def remedy_of_missing(x: Any) -> str:
    """Return what to do about a column, or a frame of columns, of numbers and NA."""
    kinds = x.dtypes.array if isinstance(x, pd.DataFrame) else [x.dtype]
    value = "False" if all(pd.api.types.is_bool_dtype(kind) for kind in kinds) else "value"
    if value == "False" and isinstance(x, pd.Index):  # whose fillna makes objects
        return "pass x.dropna()"
    return f"pass x.fillna({value}) or x.dropna()"


def remedy(x: Any, name: str = "x") -> str:
    """Return what to do about a column; ``name`` is what the code calls it."""
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
    missing = bool(x.isna().any())
    kept = f"{name}.dropna()" if missing else name
    if getattr(dtype, "kind", "") in "mM" or isinstance(dtype, pd.PeriodDtype):
        return f"pass its integers, {kept}.astype('int64')"
    values = x.dropna() if missing else x
    if isinstance(dtype, pd.StringDtype):
        return _of_text(x, name, kept, values)
    if getattr(dtype, "kind", "") != "O":
        return f"convert it to numbers first, {kept}.astype('{_standard(dtype)}')"
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
        return f"pass the elements of its lists in a row, numpy.concatenate({kept}.tolist())"
    try:
        pd.factorize(x)
    except TypeError:  # of what has no hash
        return "make numbers of its elements first"
    return f"pass codes, pandas.factorize({name})[0]"


def _of_series(x: Any, name: str, accessor: str) -> str:
    """Return what has the methods of an accessor: indices and arrays have them themselves."""
    return f"{name}.{accessor}" if isinstance(x, pd.Series) else name


def _standard(dtype: Any) -> str:
    return "complex128" if getattr(dtype, "kind", "") == "c" else "float64"


def _of_text(x: Any, name: str, kept: str, values: Any) -> str:
    codes = _of_series(x, f"{name}.astype('category')", "cat")
    told = f"pass codes, {codes}.codes"
    if len(values) and spells_number(values[:1].tolist()[0]):
        told += f", or the numbers that it spells, pandas.to_numeric({kept})"
    return told


def _of_arrow(x: Any, name: str) -> str:
    """Return what to do about a column over Arrow: pandas' own functions, where it has such."""
    import pyarrow as pa

    from ..pyarrow.remedies import remedy as of_array

    kind = x.dtype.pyarrow_dtype
    kept = f"{name}.dropna()" if x.isna().any() else name
    if pa.types.is_decimal(kind):
        return f"convert it to numbers first, {kept}.astype('float64')"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _of_text(x, name, kept, x.dropna())
    array = getattr(x, "array", x).__arrow_array__()
    chunks = [chunk for chunk in array.chunks if len(chunk)]
    chunk = max(chunks, key=lambda c: c.null_count) if chunks else array.combine_chunks()
    name += ".array" if hasattr(x, "array") else ""
    return of_array(chunk, f"{name}.__arrow_array__().combine_chunks()")
