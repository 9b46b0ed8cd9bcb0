"""Columns and frames of pandas, as the arrays inside them.

A column over NumPy, or a masked one without NA, is NumPy's array, read-only as pandas returns it:
under copy-on-write, columns share memory. A column over Arrow is Arrow's array. A frame of one
block is its matrix.
"""

from typing import Any

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from ..core.library import Library
from ..core.registry import library_named
from ..ndarrays import CHARS
from ..protocols.frames import frame, no_numbers, nulls, refused


def opened(x: Any) -> tuple[object, Library] | None:
    """Return what a column or a frame converts as, and its library; None for another object."""
    if isinstance(x, pd.Series | pd.Index | ExtensionArray):
        return _column(x)
    if not isinstance(x, pd.DataFrame):
        return None
    if x.size and _is_one_block(x):
        return x.to_numpy(), library_named("numpy")
    return frame(len(x), ((label, *_column(column)) for label, column in x.items()))


def _column(x: Any) -> tuple[object, Library]:
    dtype = x.dtype
    if isinstance(dtype, np.dtype):
        if dtype.char in CHARS:
            return x.to_numpy(), library_named("numpy")
        return refused(x, no_numbers(f"pandas' {dtype}"))
    missing = int(x.isna().sum()) if getattr(dtype, "na_value", None) is pd.NA else 0
    if missing:
        return refused(x, nulls(missing, len(x)))
    if hasattr(dtype, "pyarrow_dtype"):
        return getattr(x, "array", x).__arrow_array__(), library_named("pyarrow")
    if getattr(getattr(dtype, "numpy_dtype", None), "char", "O") not in CHARS:
        return refused(x, no_numbers(f"pandas' {dtype}"))
    values = x.to_numpy(dtype.numpy_dtype, copy=False)
    if not isinstance(x, ExtensionArray):  # may be shared, as columns over NumPy are
        values = values.view()
        values.flags.writeable = False
    return values, library_named("numpy")


def _is_one_block(x: pd.DataFrame) -> bool:
    """Whether a frame is one block of numbers, so that its matrix is a view."""
    column = x.iloc[:, 0]
    if not isinstance(column.dtype, np.dtype) or column.dtype.char not in CHARS:
        return False
    row = x.iloc[:1].to_numpy()  # of several blocks, a copy
    return np.may_share_memory(row, column.to_numpy())
