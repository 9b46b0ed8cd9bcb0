"""A column of every type that pandas, polars and Arrow have, with and without nulls."""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Row = tuple[str, Callable[[], Any]]

NUMBERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
DAY, LATER = datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)
TIME, SPAN = datetime.datetime(2020, 1, 1), datetime.timedelta(1)
PRICE = decimal.Decimal("1.5")


def of_numpy() -> Iterator[Row]:
    """Arrays of NumPy, for pandas."""
    for name in ["bool", *NUMBERS, "longdouble", "complex64", "complex128", "clongdouble", ">f4"]:
        yield name, lambda name=name: np.array([1, 0, 1], name)
    for kind in "Mm":
        for unit in ("s", "ms", "us", "ns"):
            code = f"{kind}8[{unit}]"
            yield code, lambda code=code: np.array([5, 6], code)
        yield f"{kind} NaT", lambda kind=kind: np.array(["NaT", 5], f"{kind}8[s]")
    objects = {
        "numbers": [1, 2.5],
        "complex": [1j, 2.5],
        "text": ["1", "2"],
        "words": ["a", "b"],
        "both": [1, "2"],
        "mixed": [1, "a"],
        "None": [1.0, None],
        "word or None": ["a", None],
        "dates": [DAY, None],
        "times": [TIME],
        "spans": [SPAN],
        "decimals": [PRICE],
        "bytes": [b"1"],
    }
    for name, values in objects.items():
        yield f"object {name}", lambda values=values: np.array(values, object)
    lists = np.empty(2, object)
    lists[:] = [[1, 2], [3]]
    yield "object lists", lists.copy


def of_pandas() -> Iterator[Row]:
    """Columns of pandas' own types."""
    import pandas as pd

    times = {"periods": pd.PeriodIndex, "zoned": pd.DatetimeIndex}
    for name, make in times.items():
        options = {"freq": "D"} if name == "periods" else {"tz": "UTC"}
        for end in ("2021", None):
            yield (
                f"{name} {end}",
                lambda make=make, end=end, o=options: make(["2020", end], **o).array,
            )
    yield "intervals", lambda: pd.interval_range(0, 2).array
    yield "intervals of floats", lambda: pd.interval_range(0.5, 2.5).array
    yield "intervals of times", lambda: pd.interval_range(pd.Timestamp("2020"), periods=2).array
    yield "intervals, NA", lambda: pd.arrays.IntervalArray.from_tuples([(0.0, 1.0), np.nan])
    for values in (["a", "b"], [1, 2], ["a", None]):
        yield f"categories {values}", lambda values=values: pd.Categorical(values)
    for sparse in ([0.0, 1.0], [0, 1], [True, False]):
        yield f"sparse {sparse}", lambda sparse=sparse: pd.arrays.SparseArray(sparse)
    for dtype in ("str", "string", "string[python]"):
        for text in (["1", "2"], ["a", "b"], ["1", None], ["a", None]):
            yield f"{dtype} {text}", lambda d=dtype, text=text: pd.array(text, dtype=d)
    masked = [name.replace("int", "Int").replace("uI", "UI") for name in NUMBERS[:8]]
    for dtype in (*masked, "Float32", "Float64", "boolean"):
        for last in (1, None):
            yield f"{dtype} {last}", lambda d=dtype, last=last: pd.array([1, 0, last], dtype=d)
    for name, made in of_arrow():

        def over_arrow(made: Callable[[], Any] = made) -> Any:
            array = made()
            return pd.array(array, dtype=pd.ArrowDtype(array.type))

        yield f"Arrow's {name}", over_arrow


def of_arrow() -> Iterator[Row]:
    """Arrays of pyarrow."""
    import pyarrow as pa

    rows: list[tuple[Any, list[Any]]] = [(getattr(pa, name)(), [1, 0, 1]) for name in NUMBERS[:8]]
    rows += [(pa.float32(), [1.0, 0.5]), (pa.float64(), [1.0, 0.5]), (pa.bool_(), [True, False])]
    rows += [(kind, [DAY, LATER]) for kind in (pa.date32(), pa.date64())]
    for unit in ("s", "ms", "us", "ns"):
        rows += [(kind(unit), [1, 2]) for kind in (pa.timestamp, pa.duration)]
        rows += [(pa.timestamp(unit, "UTC"), [1, 2])]
    rows += [(kind, [1, 2]) for kind in (pa.time32("s"), pa.time32("ms"), pa.time64("us"))]
    rows += [(pa.month_day_nano_interval(), [(1, 2, 3)])]
    decimals = ("decimal32", "decimal64", "decimal128", "decimal256")
    rows += [(getattr(pa, name)(5, 2), [PRICE]) for name in decimals if hasattr(pa, name)]
    for text in (["1", "2"], ["a", "b"], []):
        rows += [(kind, text) for kind in (pa.string(), pa.large_string(), pa.string_view())]
    binaries = (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2))
    rows += [(kind, [b"12", b"34"]) for kind in binaries]
    lists = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view, lambda t: pa.list_(t, 2)]
    for of in lists:
        rows += [
            (of(pa.int32()), [[1, 2], [3, 4]]),
            (of(pa.int32()), [[1, None], [3, 4]]),
            (of(pa.string()), [["a", "b"], ["c", "d"]]),
            (of(pa.bool_()), [[True, False], [True, True]]),
            (of(pa.date32()), [[1, 2], [3, 4]]),
        ]
    rows += [
        (pa.list_(pa.int32()), [[1], [2, 3]]),
        (pa.list_(pa.list_(pa.int32(), 2), 2), [[[1, 2], [3, 4]]]),
        (pa.list_(pa.list_(pa.int32(), 2)), [[[1, 2], [3, 4]]]),
        (pa.list_(pa.list_(pa.int32()), 2), [[[1, 2], [3]]]),
        (pa.struct({"a": pa.int64(), "b": pa.float64()}), [{"a": 1, "b": 2.5}]),
        (pa.struct({"a": pa.string(), "b": pa.int64()}), [{"a": "x", "b": 1}]),
        (pa.struct({"a": pa.string()}), [{"a": "x"}]),
        (pa.map_(pa.string(), pa.int32()), [[("a", 1)]]),
    ]
    for kind, values in rows:
        for more in ([], [None]):
            name = f"{kind} {values + more}"
            yield name, lambda kind=kind, v=values + more: pa.array(v, kind)
    yield "float16", lambda: pa.array(np.array([1, 2], "f2"))
    yield "nulls", lambda: pa.nulls(2)
    for words in (["a", "b"], ["1", None], [5, 6], [5, None], [b"a"], [DAY]):
        yield f"dictionary {words}", lambda words=words: pa.array(words).dictionary_encode()
    for values in ([1.0, 2.0], ["a", "b"]):
        yield (
            f"runs of {values}",
            lambda values=values: pa.RunEndEncodedArray.from_arrays([2, 3], values),
        )
    kinds, both = pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array([1.0, 2.0])]
    yield "sparse union", lambda: pa.UnionArray.from_sparse(kinds, both)
    places = pa.array([0, 0], pa.int32())
    yield "dense union", lambda: pa.UnionArray.from_dense(kinds, places, both)

    def stored(kind: Any, values: list[Any]) -> Any:
        return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))

    yield "bool8", lambda: stored(pa.bool8(), [1, 0])
    yield "uuid", lambda: stored(pa.uuid(), [uuid.UUID(int=5).bytes])
    yield "json", lambda: stored(pa.json_(), ["1"])
    for values in ([[1.0, 2.0]], [[1.0, 2.0], None], [[1.0, None], [2.0, 3.0]]):
        yield (
            f"tensors {values}",
            lambda values=values: stored(pa.fixed_shape_tensor(pa.float64(), [2]), values),
        )
    yield (
        "tensors of bools",
        lambda: stored(pa.fixed_shape_tensor(pa.bool_(), [2]), [[True, False]]),
    )


def of_polars() -> Iterator[Row]:
    """Columns of polars."""
    import polars as pl

    names = "Int8 Int16 Int32 Int64 Int128 UInt8 UInt16 UInt32 UInt64 UInt128 Float16 Float32"
    rows: list[tuple[Any, list[Any]]] = []
    for name in (*names.split(), "Float64"):
        if hasattr(pl, name):
            kind = getattr(pl, name)
            rows += [(kind, [1, 2]), (pl.Array(kind, 2), [[1, 2], [3, 4]])]
    rows += [
        (pl.Boolean, [True, False]),
        (pl.Array(pl.Boolean, 2), [[True, False]]),
        (pl.String, ["1", "2"]),
        (pl.String, ["a", "b"]),
        (pl.Binary, [b"12", b"34"]),
        (pl.Date, [DAY]),
        (pl.Time, [datetime.time(1)]),
        (pl.Categorical, ["a", "b"]),
        (pl.Enum(["a", "b"]), ["a", "b"]),
        (pl.Decimal(5, 2), [PRICE]),
        (pl.List(pl.Int64), [[1, 2], [3, 4]]),
        (pl.List(pl.Int64), [[1], [2, 3]]),
        (pl.List(pl.Int64), [[1, None], [2, 3]]),
        (pl.List(pl.String), [["a"], ["b"]]),
        (pl.List(pl.List(pl.Int64)), [[[1, 2]], [[3, 4]]]),
        (pl.List(pl.Array(pl.Int64, 2)), [[[1, 2]], [[3, 4]]]),
        (pl.Array(pl.Int32, 2), [[1, None], [2, 3]]),
        (pl.Array(pl.Int32, (2, 2)), [[[1, 2], [3, 4]]]),
        (pl.Array(pl.Int32, (2, 2)), [[[1, 2], [3, None]]]),
        (pl.Array(pl.String, 1), [["a"], ["b"]]),
        (pl.Array(pl.Date, 1), [[DAY]]),
        (pl.Array(pl.Categorical, 2), [["a", "b"]]),
        (pl.Array(pl.List(pl.Int64), 2), [[[1], [2, 3]]]),
        (pl.Array(pl.Struct({"a": pl.Int64}), 1), [[{"a": 1}]]),
        (pl.Struct({"a": pl.Int64, "b": pl.Float64}), [{"a": 1, "b": 2.5}]),
        (pl.Struct({"a": pl.Int64, "b": pl.Int64}), [{"a": 1, "b": 2}]),
        (pl.Struct({"a": pl.Int64}), [{"a": 1}, {"a": None}]),
        (pl.Struct({"a": pl.String}), [{"a": "x"}]),
        (pl.Null, [None]),
    ]
    for unit in ("ms", "us", "ns"):
        rows += [(pl.Datetime(unit), [TIME]), (pl.Duration(unit), [SPAN])]
        rows += [(pl.Datetime(unit, "UTC"), [TIME])]
    for kind, values in rows:
        for more in ([], [None]):
            name = f"{kind} {values + more}"
            yield name, lambda kind=kind, v=values + more: pl.Series("v", v, dtype=kind)
