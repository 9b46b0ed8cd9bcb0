"""Columns of every type: each is converted, or refused with code that works as it is written."""

from __future__ import annotations

import numpy as np
import pytest

import arraybridge as ab
from tests.docs import test_remedies as remedies
from tests.support import frame_types

pytestmark = pytest.mark.heavy

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

NAMES = {"pandas": pd, "polars": pl}


def check(x, expected=None):
    return remedies.check(x, expected=expected, **NAMES)


def rows(make):
    return [pytest.param(made, id=name) for name, made in make()]


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("make", [*rows(frame_types.of_numpy), *rows(frame_types.of_pandas)])
def test_pandas(make):
    x = pd.Series(make())
    check(x, x.tolist())
    check(x.array, x.tolist())
    if x.dtype not in (np.float16, np.longdouble, np.clongdouble):
        check(pd.Index(x), x.tolist())
    check(pd.DataFrame({"a": x}))
    check(pd.DataFrame({"a": x, "b": x}))
    check(pd.DataFrame({"a": x, "b": [1.5] * len(x)}))
    check(pd.concat([pd.DataFrame({"a": x})] * 2, axis=1))  # two of one name


def test_pandas_without_columns_of_numbers():
    for x in (
        pd.MultiIndex.from_tuples([(1, 2), (3, 4)]),
        pd.MultiIndex.from_tuples([("a", 2), ("b", 4)]),
        pd.MultiIndex.from_tuples([("a", "b"), ("b", "c")]),
        pd.DataFrame({"a": pd.Categorical(["x"]), "b": ["y"]}),
        pd.DataFrame({"it's": [1], "b": ["x"]}),
        pd.DataFrame({("a", 1): [1], ("b", 2): [2.5]}),
        pd.DataFrame({frame_types.DAY: [1], "b": ["x"]}),
        pd.DataFrame({frame_types.DAY: ["y"], "b": [b"x"]}),
        pd.DataFrame([[1, 2.5]], columns=["a", "a"]),
        pd.DataFrame({"a": np.ones(2, ">f4"), "b": np.ones(2, ">f4")}),
    ):
        check(x)


@pytest.mark.parametrize("make", rows(frame_types.of_polars))
def test_polars(make):
    x = make()
    numbers = isinstance(x.dtype, pl.Array) or x.dtype.is_numeric()
    check(x, x.to_list() if numbers else None)
    check(x[1:], x[1:].to_list() if numbers else None)
    check(pl.concat([x, x], rechunk=False), x.to_list() * 2 if numbers else None)
    check(x.to_frame())
    check(pl.DataFrame([x, x.alias("w")]))
    check(pl.DataFrame([x, pl.Series("w", [1.5] * len(x))]))
    check(pl.concat([x.to_frame()] * 2, rechunk=False))


def test_nulls_and_what_is_within_them_are_counted_once():
    array = pl.Series([[1, 2], None], dtype=pl.Array(pl.Int32, 2))
    nested = pl.Series([[[1, 2], [3, None]], None], dtype=pl.Array(pl.Int32, (2, 2)))
    struct = pl.Series([{"a": 1}, None])
    for x, count in (
        (pd.Series([1, None, 3], dtype="Int64"), "1 of 3"),
        (pd.DataFrame({"a": pd.array([1, None])}), "column 'a': 1 of 2"),
        (pl.Series([1, None, None]), "2 of 3"),
        (array, "2 of 4"),
        (nested, "5 of 8"),
        (struct, "1 of 2"),
        (array.to_frame(), "2 of 4"),
        (pl.concat([array, array], rechunk=False), "4 of 8"),
        (pa.table({"a": pa.array([[1, 2], None], pa.list_(pa.int32(), 2))}), "2 of 4"),
        (pa.table({"a": pa.array([[1, None], None], pa.list_(pa.int32(), 2))}), "3 of 4"),
    ):
        assert f"{count} elements" in ab.explain(x, "numpy").why
