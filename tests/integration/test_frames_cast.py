"""Frames whose columns have several data types, as the matrix of the one that is asked for."""

import numpy as np
import pytest

import arraybridge as ab
from tests.support.optional import optional

pytestmark = pytest.mark.heavy

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")
torch = optional("torch")

COLUMNS = {"a": [1, 2, 3], "b": [0.5, 1.5, 2.5], "c": [True, False, True]}
VALUES = [[1, 0.5, 1], [2, 1.5, 0], [3, 2.5, 1]]


def _relation():
    frame = pl.DataFrame(COLUMNS)  # noqa: F841 - DuckDB finds it by its name
    return duckdb.sql("from frame").to_arrow_table()


FRAMES = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas masked": lambda: pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas on Arrow": lambda: pd.DataFrame(COLUMNS).convert_dtypes(dtype_backend="pyarrow"),
    "pandas mixed": lambda: pd.DataFrame(COLUMNS).astype({"a": "Int64", "b": "float[pyarrow]"}),
    "pandas swapped": lambda: pd.DataFrame(COLUMNS).astype({"a": ">i4", "b": "<f2"}),
    "pandas, every second": lambda: pd.DataFrame(COLUMNS).loc[[0, 0, 1, 0, 2]].iloc[[0, 2, 4]],
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars chunks": lambda: pl.concat(
        [pl.DataFrame(COLUMNS)[:1], pl.DataFrame(COLUMNS)[1:]], rechunk=False
    ),
    "Arrow": lambda: pa.table(COLUMNS),
    "Arrow batch": lambda: pa.record_batch(COLUMNS),
    "DuckDB": _relation,
}


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("target", ["numpy", "torch", "jax", "pyarrow"])
def test_one_data_type_for_all(frame, target):
    pytest.importorskip(target)
    for terms in ({}, {"order": "C"}, {"order": "F"}, {"copy": True}, {"device": "cpu"}):
        x = FRAMES[frame]()
        if target == "jax" and terms.get("order") == "F":
            continue
        route = ab.explain(x, target, dtype="float32", **terms)
        found = ab.convert(x, target, dtype="float32", **terms)
        assert (route.kind, route.nbytes) == ("kernel", 36)
        info = ab.inspect(found)
        assert (info.dtype.name, info.shape) == ("float32", (3, 3))
        assert np.asarray(ab.convert(found, "numpy")).tolist() == VALUES
        order = terms.get("order")
        assert order is None or (info.c_contiguous if order == "C" else info.f_contiguous)
    assert np.asarray(ab.asarray(x, like=target, dtype="float32")).tolist() == VALUES


@pytest.mark.parametrize("frame", FRAMES)
def test_the_rule_of_casting_holds_for_each_column(frame):
    x = FRAMES[frame]()

    def refused(**terms):
        with pytest.raises(ab.ConversionError) as caught:
            ab.convert(x, "numpy", **terms)
        try:
            route = ab.explain(x, "numpy", **terms)
        except ab.ConversionError as error:
            return str(error), str(error)
        return str(caught.value), route.why if route.kind == "refuse" else str(caught.value)

    for terms, words in (
        ({}, "several data types"),
        ({"order": "C"}, "several data types"),
        ({"dtype": "float32", "copy": False}, "copy=False"),
        ({"dtype": "int32"}, "column 'b': casting='same_kind' does not allow float"),
        ({"dtype": "float32", "casting": "no"}, "column 'a': casting='no' does not allow int"),
        ({"dtype": "int32", "casting": "same_value"}, "column 'b': casting='same_value', but 0.5"),
    ):
        message, why = refused(**terms)
        assert words in message
        assert why == message
    cut = ab.convert(x, "numpy", dtype="int32", casting="unsafe")
    assert cut.tolist() == [[int(value) for value in row] for row in VALUES]


def test_a_table_of_data_types():
    x = pl.DataFrame(COLUMNS)
    found = ab.convert(x, "numpy", dtype={"int64": "float64", "bool": "float64"})
    assert found.tolist() == VALUES
    with pytest.raises(ab.ConversionError, match="several data types"):
        ab.convert(x, "numpy", dtype={"int64": "float64"})


def test_the_data_type_that_is_advised_holds_every_integer():
    x = pd.DataFrame({"a": pd.Series([1, 2], dtype="Int32"), "b": [2**53 + 1, 4]})
    with pytest.raises(ab.ConversionError, match=r"pass dtype='int64'$"):
        ab.convert(x, "numpy")
    assert ab.convert(x, "numpy", dtype="int64").tolist() == [[1, 2**53 + 1], [2, 4]]


def test_no_rows():
    for x in (pl.DataFrame(COLUMNS)[:0], pd.DataFrame(COLUMNS)[:0], pa.table(COLUMNS)[:0]):
        for terms in ({}, {"order": "C"}):
            found = ab.convert(x, "torch", dtype="float32", **terms)
            assert (found.shape, found.dtype) == ((0, 3), torch.float32)
