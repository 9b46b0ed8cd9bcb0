"""Arrays as the columns of a table, for consumers of Arrow streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.records import ConversionError
from . import arrow_structs
from .arrow_export import Exported, exported
from .objects import as_source


class Columns:
    """A table of arrays by name, with ``__arrow_c_stream__``; made by `columns`."""

    __slots__ = ("_columns", "_rows")

    def __init__(self, columns: dict[str, Exported]) -> None:
        self._columns = columns
        self._rows = next(iter(columns.values())).shape[0]

    def __len__(self) -> int:
        return self._rows

    def __repr__(self) -> str:
        kinds = (
            f"{name!r}: {column.dtype.name}{''.join(f'[{size}]' for size in column.shape[1:])}"
            for name, column in self._columns.items()
        )
        return f"<{self._rows} rows of {{{', '.join(kinds)}}}>"

    def __arrow_c_schema__(self) -> object:
        """A capsule with the type: a struct with a field for each column."""
        fields = [column.__arrow_c_schema__(name) for name, column in self._columns.items()]
        return arrow_structs.table(fields)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """A capsule with a new stream of one batch, on the memory of the columns."""
        batch = list(map(Exported.elements, self._columns.values()))
        return arrow_structs.stream(self.__arrow_c_schema__, arrow_structs.table(batch, self._rows))


def columns(arrays: Mapping[str, Any], /) -> Columns:
    """Return a table whose columns are arrays, for DuckDB, polars, pandas and pyarrow.

    Parameters
    ----------
    arrays : mapping of str to array
        Arrays of any library on the CPU by column name, all of length n. An array of shape (n,) is
        a plain column; one of shape (n, ...) is a column of fixed-size lists.

    Returns
    -------
    Columns
        A table of length n with ``__arrow_c_stream__``. Arrays in C order become views; other
        arrays, and booleans, which Arrow packs eight to a byte, are copied. Do not write to the
        arrays while another program reads the table.

    Raises
    ------
    ConversionError
        If Arrow has no such dtype (complex64), or an array has no axes, is not on the host, or is
        not computed yet. The message names the column.
    TypeError
        If ``arrays`` is not a mapping, a name is not a str, or a value is not an array.
    ValueError
        If there is no column, or the lengths differ.

    Notes
    -----
    Implements the Arrow C stream interface through the Arrow PyCapsule Interface. Each consumer
    gets a new stream.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import polars as pl, torch
    >>> table = ab.tree.columns({"x": torch.arange(3), "y": torch.rand(3, 2)})
    >>> table
    <3 rows of {'x': int64, 'y': float32[2]}>
    >>> pl.DataFrame(table)["x"].sum()
    3
    """
    if not isinstance(arrays, Mapping):
        raise TypeError(
            f"columns takes arrays by name, {{'a': x, 'b': y}}, not {type(arrays).__name__}"
        )
    found: dict[str, Exported] = {}
    for name, x in arrays.items():
        if not isinstance(name, str) or b"\0" in name.encode():
            raise TypeError(f"the name of a column is a str without '\\0', not {name!r}")
        try:
            found[name] = exported(*as_source(x), of_array=hasattr(type(x), "__arraybridge__"))
        except (ConversionError, TypeError) as error:
            raise type(error)(f"column {name!r}: {error}") from error
    rows = {name: column.shape[0] for name, column in found.items()}
    if len(set(rows.values())) != 1:
        raise ValueError(
            f"the columns of a table have one length; got {rows}" if rows else "a table has columns"
        )
    return Columns(found)
