"""Arrays as the columns of an Arrow table."""

from collections.abc import Mapping
from typing import Any

from .conversion import convert
from .core.records import ConversionError
from .core.registry import library_named


def columns(arrays: Mapping[str, Any], /) -> Any:
    """Return a table whose columns are arrays, for DuckDB, polars, pandas and pyarrow.

    Parameters
    ----------
    arrays : mapping of str to array
        Arrays of any library on the CPU by column name, all of length n. An array of shape (n,) is
        a plain column; one of shape (n, ...) is a column of fixed-size lists.

    Returns
    -------
    pyarrow.Table
        A table of length n. Arrays in C order become views; other arrays, and booleans, which Arrow
        packs eight to a byte, are copied. Do not write to the arrays while another program reads
        the table.

    Raises
    ------
    ConversionError
        If Arrow has no such dtype (complex64), or an array has no axes, or is not on the host. The
        message names the column.
    TypeError
        If a value is not an array.
    ValueError
        If the lengths differ.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import polars as pl, torch
    >>> table = ab.tree.columns({"x": torch.arange(3), "y": torch.rand(3, 2)})
    >>> table.column_names
    ['x', 'y']
    >>> pl.DataFrame(table)["x"].sum()
    3
    """
    made = {}
    for name, x in arrays.items():
        try:
            made[name] = convert(x, "pyarrow.Array")
        except (ConversionError, TypeError) as error:
            raise type(error)(f"column {name!r}: {error}") from error
    pyarrow: Any = library_named("pyarrow")
    return pyarrow.table(made)
