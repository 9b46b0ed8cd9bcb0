"""Data frames and their columns: pandas, polars, DuckDB, nanoarrow, arro3, both ways."""

import datetime
import gc
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arraybridge as ab
from arraybridge.core.registry import forget
from tests.support.optional import optional
from tests.support.processes import python

pytestmark = pytest.mark.heavy

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")
na = pytest.importorskip("nanoarrow")
arro3 = pytest.importorskip("arro3.core")
torch = optional("torch")

NUMBERS = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64".split()

# What makes a column of NumPy's array, and what of several columns a frame.
COLUMNS = {
    "pandas": pd.Series,
    "pandas index": pd.Index,
    "pandas array": lambda x: pd.Series(x).array,
    "pandas masked": lambda x: pd.Series(pd.array(x, dtype=_masked(x.dtype))),
    "pandas on Arrow": lambda x: pd.Series(x, dtype=_on_arrow(x.dtype)),
    "polars": pl.Series,
    "nanoarrow": lambda x: na.Array(ab.from_dlpack(x)),
    "arro3": lambda x: arro3.Array.from_arrow(ab.from_dlpack(x)),
    "arro3 chunks": lambda x: arro3.ChunkedArray([arro3.Array.from_arrow(ab.from_dlpack(x))]),
}
FRAMES = {
    "pandas": pd.DataFrame,
    "pandas masked": lambda columns: pd.DataFrame(
        {name: pd.array(x, dtype=_masked(x.dtype)) for name, x in columns.items()}
    ),
    "polars": pl.DataFrame,
    "arro3": lambda columns: arro3.Table.from_pydict(
        {name: arro3.Array.from_arrow(ab.from_dlpack(x)) for name, x in columns.items()}
    ),
    "DuckDB": lambda columns: _relation(pl.DataFrame(columns)),
}


def _masked(dtype):
    return {"bool": "boolean", "float32": "Float32", "float64": "Float64"}.get(
        dtype.name, dtype.name.replace("int", "Int").replace("uI", "UI")
    )


def _on_arrow(dtype):
    return pd.ArrowDtype(pytest.importorskip("pyarrow").from_numpy_dtype(dtype))


def _relation(frame):
    return duckdb.sql("from frame")


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("dtype", NUMBERS)
def test_columns_of_numbers_are_views(column, dtype):
    values = np.arange(1, 9).astype(dtype)
    x = COLUMNS[column](values)
    view = ab.convert(x, "numpy", copy=False)
    assert (view.dtype, view.tolist()) == (dtype, values.tolist())
    again = ab.convert(x, "numpy", copy=False)
    assert again.ctypes.data == view.ctypes.data
    assert ab.explain(x, "numpy").kind == "view"
    assert ab.inspect(x).shape == (8,)
    if column != "pandas array":
        assert not view.flags.writeable
        if torch:
            tensor = ab.convert(x, "torch")
            assert tensor.data_ptr() != view.ctypes.data
            alias = ab.convert(x, "torch", alias_readonly=True)
            assert alias.data_ptr() == view.ctypes.data


@pytest.mark.parametrize("column", COLUMNS)
def test_booleans(column):
    values = np.array([True, False, True])
    x = COLUMNS[column](values)
    found = ab.convert(x, "numpy")
    assert (found.dtype, found.tolist()) == (bool, values.tolist())
    assert ab.convert(x, "torch").tolist() == values.tolist()


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("dtype", ["int32", "float64", "bool"])
def test_frames_of_one_type_are_matrices(frame, dtype):
    values = np.random.default_rng(0).integers(0, 2, (7, 3)).astype(dtype)
    x = FRAMES[frame]({name: values[:, i].copy() for i, name in enumerate("abc")})
    found = ab.convert(x, "numpy")
    assert found.dtype == dtype
    assert np.array_equal(found, values)
    assert np.array_equal(ab.convert(x, "torch"), values)


def test_columns_of_a_pandas_frame_of_one_block_are_a_view():
    values = np.arange(12.0).reshape(4, 3)
    x = pd.DataFrame(values, columns=list("abc"))
    found = ab.convert(x, "numpy", copy=False)
    assert np.array_equal(found, values)
    assert not found.flags.writeable
    assert np.shares_memory(found, x["a"].to_numpy())
    x["d"] = 5.0  # another block
    assert ab.explain(x, "numpy").why == "its columns are stored separately"
    assert ab.convert(x, "numpy").tolist() == x.to_numpy().tolist()
    with pytest.raises(ab.ConversionError, match="columns are stored separately"):
        ab.convert(x, "numpy", copy=False)
    strided = pd.DataFrame(np.arange(12.0).reshape(4, 3), copy=False)
    strided[3] = 1.0
    assert np.array_equal(ab.convert(strided, "numpy"), strided.to_numpy())
    part = x.iloc[::2]
    assert np.array_equal(ab.convert(part, "numpy"), part.to_numpy())
    assert ab.convert(x.iloc[:0], "numpy").shape == (0, 4)
    repeated = pd.Series(np.broadcast_to(np.float64(1.5), 1000), copy=False)  # one element
    backwards = pd.Series(np.arange(1000.0)[::-1], copy=False)
    apart = pd.concat([repeated, backwards, repeated], axis=1)
    assert np.array_equal(ab.convert(apart, "numpy"), apart.to_numpy())


def test_nothing_is_written_through_a_column():
    """Copy-on-write: what pandas gives is read-only, and so is a view of it."""
    for dtype in ("float64", "Float64"):
        x = pd.Series([1.0, 2.0], dtype=dtype)
        view = ab.convert(x, "numpy")
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 7
        ab.convert(x, "torch")[0] = 7
        assert x.tolist() == [1, 2]


def test_columns_of_duckdb_are_not_told_what_to_do_in_polars():
    for query in ("select 1::decimal(5, 2) a", "select date '2020-01-01' a"):
        with pytest.raises(ab.ConversionError, match="cast it to ") as caught:
            ab.convert(duckdb.sql(query), "numpy")
        assert "polars" not in str(caught.value)


def test_a_unit_in_a_column_is_not_dropped():
    class Units(pd.api.extensions.ExtensionDtype):
        name, type, units = "pint[m]", float, "m"

        @classmethod
        def construct_array_type(cls):
            return Quantities

    class Quantities(pd.api.extensions.ExtensionArray):
        dtype = Units()

        def __len__(self):
            return 2

    with pytest.raises(ab.ConversionError, match=r"would lose its unit: pass x.pint.magnitude"):
        ab.convert(Quantities(), "numpy")


def test_what_one_instance_is_says_nothing_of_the_next():
    """What opens a class is kept; each of its instances is looked at."""
    whole, holes = pl.Series([1.0, 2.0]), pl.Series([1.0, None])
    parts, dates = pl.concat([whole, whole], rechunk=False), pl.Series([datetime.date.today()])
    frames = pl.DataFrame({"a": [1.0]}), pl.DataFrame({"a": [1.0, None]})
    for _ in range(2):
        assert ab.convert(whole, "numpy", copy=False).tolist() == [1, 2]
        assert ab.convert(parts, "numpy").tolist() == [1, 2, 1, 2]
        assert ab.convert(frames[0], "numpy").tolist() == [[1]]
        for refused in (holes, dates, frames[1]):
            with pytest.raises(ab.ConversionError):
                ab.convert(refused, "numpy")
        assert ab.convert(pd.Series([1.0]), "numpy").tolist() == [1]
        with pytest.raises(ab.ConversionError):
            ab.convert(pd.Series([1, None], dtype="Int64"), "numpy")
        forget()


def test_a_scalar_of_pandas_is_no_array():
    for x in (pd.NA, pd.Timestamp(0), pl.col("a")):
        with pytest.raises(TypeError, match="is not an array"):
            ab.convert(x, "numpy")


class TestPolars:
    def test_arrays_are_axes(self):
        values = np.arange(24.0).reshape(2, 3, 4)
        x = pl.Series(values)
        found = ab.convert(x, "numpy", copy=False)
        assert np.array_equal(found, values)
        back = pl.Series(ab.from_dlpack(values))
        assert back.dtype == pl.Array(pl.Float64, (3, 4))
        assert np.array_equal(back.to_numpy(), values)

    def test_chunks_are_copied_once(self):
        x = pl.concat([pl.Series([1.0, 2.0]), pl.Series([3.0])], rechunk=False)
        assert x.n_chunks() == 2
        assert "several chunks" in ab.explain(x, "numpy").why
        assert ab.convert(x, "torch").tolist() == [1, 2, 3]

    def test_text_is_refused(self):
        with pytest.raises(ab.ConversionError, match="string_view is not a tensor dtype"):
            ab.convert(pl.Series(["a"]), "numpy")


class TestDuckDB:
    def test_a_query_runs_when_it_is_converted(self):
        x = duckdb.sql("select i::DOUBLE as a, i * 2.0::DOUBLE as b from range(5000) t(i)")
        found = ab.convert(x, "torch")
        assert found.shape == (5000, 2)
        assert found[-1].tolist() == [4999, 9998]

    def test_and_not_when_it_is_looked_at(self):
        x = duckdb.sql("select 1 as a")
        for look in (ab.inspect, lambda x: ab.explain(x, "numpy")):
            with pytest.raises(ab.ConversionError, match=r"query.*pyarrow\.table\(x\)"):
                look(x)
        import pyarrow

        assert ab.inspect(eval("pyarrow.table(x)", {"pyarrow": pyarrow, "x": x})).shape == (1, 1)

    def test_nulls_are_refused(self):
        with pytest.raises(ab.ConversionError, match="column 'a': 1 of 2 elements is null"):
            ab.convert(duckdb.sql("select unnest([1, null]) as a"), "numpy")

    def test_it_scans_an_exported_column(self):
        array = ab.from_dlpack(np.arange(100.0))
        frame = pl.DataFrame({"a": array})  # noqa: F841 - DuckDB finds it by its name
        assert duckdb.sql("select sum(a) from frame").fetchall() == [(4950.0,)]


@pytest.mark.parametrize("shape", [(6,), (3, 2)])
def test_exports_share_memory(shape):
    values = np.arange(6.0).reshape(shape)
    x = ab.from_dlpack(values)
    for made in (
        pl.Series(x),
        na.Array(x),
        arro3.Array.from_arrow(x),
        pl.DataFrame({"a": x})["a"],
        pd.Series.from_arrow(x) if hasattr(pd.Series, "from_arrow") and len(shape) == 1 else None,
    ):
        if made is None:
            continue
        back = ab.convert(made, "numpy")
        assert np.array_equal(back, values)
        assert type(made).__module__.startswith("pandas") or np.shares_memory(back, values)


def test_memory_outlives_the_frame():
    class Owner:
        pass

    values, owner = np.arange(1000.0), Owner()
    alive = weakref.ref(owner)
    x = ab.from_pointer(values.ctypes.data, 1000, "float64", device="cpu", owner=owner)
    frame = pl.DataFrame({"a": x})
    view = ab.convert(frame["a"], "numpy")
    tensor = ab.convert(frame["a"], "torch", alias_readonly=True)
    del frame, x, owner
    gc.collect()
    assert alive() is not None
    assert view[-1] == tensor[-1] == 999
    del view
    gc.collect()
    assert alive() is not None
    del tensor
    gc.collect()
    assert alive() is None


def test_frames_pass_through_adapt_and_unify():
    for x in (pd.Series([1.0]), pd.DataFrame({"a": [1.0]}), pl.Series([1.0]), pl.DataFrame()):
        assert ab.adapt("numpy")(lambda y: y)(x) is x
        assert ab.unify(np.ones(1), x)[2] is x
        with pytest.raises(TypeError, match=r"pass arraybridge\.convert\(x, 'numpy'\)$"):
            ab.namespace(x)


@pytest.mark.filterwarnings("ignore:Arrow output on a DB-API result makes an extra copy")
def test_what_to_pass_for_relations_results_and_queries():
    relation = duckdb.sql("select 1.5::DOUBLE as a")
    with pytest.raises(TypeError, match=r"pass arraybridge\.convert\(x, 'numpy'\)$"):
        ab.namespace(relation)
    assert ab.convert(relation, "numpy").tolist() == [[1.5]]
    with duckdb.connect() as x:
        x.execute("select 1.5::DOUBLE as a")
        for function in (ab.namespace, lambda x: ab.convert(x, "numpy")):
            with pytest.raises(TypeError, match=r"pass x\.to_arrow_table\(\)$"):
                function(x)
        assert ab.convert(x.to_arrow_table(), "numpy").tolist() == [[1.5]]
    with pytest.raises(TypeError, match=r"pass x\.collect\(\)$"):
        ab.namespace(pl.LazyFrame({"a": [1.5]}))


def test_pyarrow_is_not_needed():
    python(
        "import sys\n"
        "sys.modules['pyarrow'] = None\n"
        "import numpy as np, pandas as pd, polars as pl\n"
        "import arraybridge as ab\n"
        "assert ab.convert(pd.Series([1.0]), 'numpy').tolist() == [1]\n"
        "assert ab.convert(pd.Series([1], dtype='Int64'), 'numpy').tolist() == [1]\n"
        "assert ab.convert(pd.DataFrame({'a': [1.0], 'b': [2.0]}), 'numpy').tolist() == [[1, 2]]\n"
        "assert ab.convert(pl.Series([1, 2]), 'numpy').tolist() == [1, 2]\n"
        "assert ab.convert(pl.DataFrame({'a': [True]}), 'numpy').tolist() == [[True]]\n"
        "assert pl.Series(ab.from_dlpack(np.ones(2))).to_list() == [1, 1]\n"
    )


def test_what_is_held_at_the_end_is_left_alone():
    python(
        "import numpy as np, polars as pl, arraybridge as ab\n"
        "held = pl.Series(ab.from_dlpack(np.ones((3, 2))))\n"
        "view = ab.convert(pl.Series([1, 2]), 'numpy')\n"
    )


@given(
    st.sampled_from([*NUMBERS, "bool"]),
    st.lists(st.integers(0, 5), min_size=1, max_size=4),
    st.integers(1, 4),
    st.integers(0, 2**32 - 1),
)
def test_round_trips(dtype, lengths, width, seed):
    rng = np.random.default_rng(seed)
    parts = [rng.integers(0, 100, (n, width)).astype(dtype) for n in lengths]
    whole = np.concatenate(parts)
    frames = [
        pl.DataFrame({f"{i}": ab.from_dlpack(part[:, i].copy()) for i in range(width)})
        for part in parts
    ]
    frame = pl.concat(frames, rechunk=False)
    assert np.array_equal(ab.convert(frame, "numpy"), whole)
    assert np.array_equal(ab.convert(frame["0"], "numpy"), whole[:, 0])
    lists = pl.concat([pl.Series(ab.from_dlpack(part)) for part in parts], rechunk=False)
    assert np.array_equal(ab.convert(lists, "numpy"), whole)
    pandas = pd.concat([pd.DataFrame(part) for part in parts])
    assert np.array_equal(ab.convert(pandas, "numpy"), whole)
