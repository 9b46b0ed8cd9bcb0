"""Data frames and their columns: pandas, polars, DuckDB, nanoarrow, arro3, both ways."""

import datetime
import gc
import time
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arraybridge as ab
from arraybridge.core.registry import forget
from tests.support.optional import optional
from tests.support.probe import aligned
from tests.support.processes import python

pytestmark = pytest.mark.heavy

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
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
    "pandas on Arrow": lambda x: pd.Series(x, dtype=pd.ArrowDtype(pa.from_numpy_dtype(x.dtype))),
    "polars": pl.Series,
    "Arrow chunks": lambda x: pa.chunked_array([x]),
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
    "Arrow": pa.table,
    "Arrow batch": pa.record_batch,
    "arro3": lambda columns: arro3.Table.from_pydict(
        {name: arro3.Array.from_arrow(ab.from_dlpack(x)) for name, x in columns.items()}
    ),
    "DuckDB": lambda columns: _relation(pl.DataFrame(columns)),
}


def _masked(dtype):
    return {"bool": "boolean", "float32": "Float32", "float64": "Float64"}.get(
        dtype.name, dtype.name.replace("int", "Int").replace("uI", "UI")
    )


def _relation(frame):
    return duckdb.sql("from frame")


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("dtype", NUMBERS)
def test_columns_of_numbers_are_views(column, dtype):
    values = np.arange(1, 9).astype(dtype)
    x = COLUMNS[column](values)
    view = ab.convert(x, "numpy", copy=False)
    assert (view.dtype, view.tolist()) == (dtype, values.tolist())
    assert ab.convert(x, "numpy", copy=False).ctypes.data == view.ctypes.data
    assert ab.explain(x, "numpy").kind == "view"
    assert ab.inspect(x).shape == (8,)
    if column != "pandas array":
        assert not view.flags.writeable
        if torch:
            assert ab.convert(x, "torch").data_ptr() != view.ctypes.data
            alias = ab.convert(x, "torch", alias_readonly=True)
            assert alias.data_ptr() == view.ctypes.data


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("dtype", ["int32", "float64", "bool"])
def test_frames_of_one_type_are_matrices(frame, dtype):
    values = np.random.default_rng(0).integers(0, 2, (7, 3)).astype(dtype)
    x = FRAMES[frame]({name: values[:, i].copy() for i, name in enumerate("abc")})
    found = ab.convert(x, "numpy")
    assert found.dtype == dtype
    assert np.array_equal(found, values)
    assert np.array_equal(ab.convert(x, "torch"), values)


def test_a_pandas_frame_of_one_block_is_a_view():
    values = np.arange(12.0).reshape(4, 3)
    x = pd.DataFrame(values, columns=list("abc"))
    found = ab.convert(x, "numpy", copy=False)
    assert np.array_equal(found, values)
    assert not found.flags.writeable
    assert np.shares_memory(found, x["a"].to_numpy())
    x["d"] = 5.0  # another block
    assert ab.explain(x, "numpy").why == "its columns are stored separately"
    with pytest.raises(ab.ConversionError, match="columns are stored separately"):
        ab.convert(x, "numpy", copy=False)
    repeated = pd.Series(np.broadcast_to(np.float64(1.5), 1000), copy=False)  # one element
    backwards = pd.Series(np.arange(1000.0)[::-1], copy=False)
    apart = pd.concat([repeated, backwards, repeated], axis=1)
    for frame in (x, x.iloc[::2], x.iloc[:0], apart):
        assert np.array_equal(ab.convert(frame, "numpy"), frame.to_numpy())


@pytest.mark.parametrize("dtype", ["float64", "Float64"])
def test_frames_of_many_columns_take_linear_time(dtype):
    """It once took the square of their number: 30 s for 4,000."""

    def seconds(count):
        columns = {str(i): pd.Series([1.0, 2.0], dtype=dtype) for i in range(count)}
        x = pd.DataFrame(columns, copy=False)
        start = time.perf_counter()
        assert ab.convert(x, "numpy").shape == (2, count)
        return time.perf_counter() - start

    seconds(8)
    few, many = min(seconds(200) for _ in range(3)), seconds(3200)
    assert many < 16 * 4 * few


DAY = datetime.date(2020, 1, 1)
REFUSED = {
    "pandas text": pd.Series(["a"]),
    "pandas objects": pd.Series([1, "a"], dtype=object),
    "pandas dates": pd.Series([DAY, DAY], dtype="datetime64[s]"),
    "pandas categories": pd.Series(["a"], dtype="category"),
    "pandas intervals": pd.IntervalIndex.from_breaks([0, 1]),
    "pandas levels": pd.MultiIndex.from_tuples([(1, 2)]),
    "pandas sparse": pd.Series(pd.arrays.SparseArray([1, 0])),
    "pandas NA": pd.Series([1, None], dtype="Int64"),
    "pandas NA on Arrow": pd.Series([1, None], dtype="int64[pyarrow]"),
    "pandas text on Arrow": pd.Series(["a"], dtype="string[pyarrow]"),
    "pandas dates on Arrow": pd.Series([DAY], dtype=pd.ArrowDtype(pa.date32())),
    "polars text": pl.Series(["a"]),
    "polars dates": pl.Series([DAY]),
    "polars null": pl.Series([1, None]),
    "polars nothing": pl.Series([None]),
    "polars decimals": pl.Series(["1.5"]).cast(pl.Decimal(5, 2)),
    "polars lists": pl.Series([[1], [2, 3]]),
    "polars null in lists": pl.Series([[1, None]], dtype=pl.Array(pl.Int64, 2)),
    "polars objects": pl.Series([object()], dtype=pl.Object),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_no_tensor_holds_is_refused(what):
    x = REFUSED[what]
    frame = None
    if not isinstance(x, pd.Index):
        frame = type(x).__module__.startswith("pandas") and pd.DataFrame({"b": x, "a": x})
        frame = pl.DataFrame({"b": x, "a": x}) if frame is False else frame
    for each in (x,) if frame is None else (x, frame):
        for terms in ({}, {"dtype": "float64"}):
            with pytest.raises(
                ab.ConversionError, match=r"null|not a tensor dtype|cannot read"
            ) as caught:
                ab.convert(each, "numpy", **terms)
            why = str(caught.value)
            assert ab.explain(each, "numpy", **terms).why == why
            assert why.startswith("column 'b': ") == (each is frame)


def test_a_refused_column_has_its_data_type():
    for x in (pd.Series([1, None], dtype="Int64"), pl.Series([1, None]), pa.array([1, None])):
        assert ab.inspect(x).dtype_name == "int64"
    assert ab.inspect(pd.DataFrame({"a": pd.array([1, None], "Int8")})).dtype_name == "int8"
    with pytest.raises(ab.ConversionError, match="dst cannot be written: the columns have several"):
        ab.copyto(pd.DataFrame({"a": [1.0], "b": [1]}), np.ones((1, 2)))


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        *((each, each.__name__.lower()) for each in (pl.Float64, pl.Float32, pl.Int8, pl.UInt64)),
        (pl.Float64(), "float64"),
        (pl.Boolean, "bool"),
        (pd.Int16Dtype(), "int16"),
        (pd.BooleanDtype(), "bool"),
        (pd.ArrowDtype(pa.float32()), "float32"),
        (pa.float64(), "float64"),
    ],
)
def test_data_types_of_columns_are_data_types(dtype, name):
    assert ab.convert(np.ones(2), "numpy", dtype=dtype, casting="unsafe").dtype == name


@pytest.mark.parametrize("dtype", [pl.String, pl.Date(), pd.CategoricalDtype(), pd.StringDtype()])
def test_data_types_of_no_numbers_are_refused(dtype):
    with pytest.raises(TypeError, match="dtype must be a data type"):
        ab.convert(np.ones(2), "numpy", dtype=dtype)


def test_what_one_instance_is_says_nothing_of_the_next():
    """What opens a class is kept; each of its instances is looked at."""
    whole, holes = pl.Series([1.0, 2.0]), pl.Series([1.0, None])
    parts = pl.concat([whole, whole], rechunk=False)
    for _ in range(2):
        assert ab.convert(whole, "numpy", copy=False).tolist() == [1, 2]
        assert "several chunks" in ab.explain(parts, "numpy").why
        assert ab.convert(parts, "numpy").tolist() == [1, 2, 1, 2]
        with pytest.raises(ab.ConversionError):
            ab.convert(holes, "numpy")
        assert ab.convert(pl.DataFrame({"a": [1.0]}), "numpy").tolist() == [[1]]
        forget()


def test_a_scalar_is_no_array():
    for x in (pd.NA, pd.Timestamp(0), pl.col("a")):
        with pytest.raises(TypeError, match="is not an array"):
            ab.convert(x, "numpy")


def test_a_query_runs_when_it_is_converted_not_when_it_is_looked_at():
    x = duckdb.sql("select i::DOUBLE as a, i * 2.0::DOUBLE as b from range(5000) t(i)")
    for look in (ab.inspect, lambda x: ab.explain(x, "numpy")):
        with pytest.raises(ab.ConversionError, match=r"query.*pyarrow\.table\(x\)"):
            look(x)
    assert ab.inspect(pa.table(x)).shape == (5000, 2)  # the remedy
    assert ab.convert(x, "torch")[-1].tolist() == [4999, 9998]
    with pytest.raises(ab.ConversionError, match="column 'a': 1 of 2 elements is null"):
        ab.convert(duckdb.sql("select unnest([1, null]) as a"), "numpy")


@pytest.mark.parametrize("shape", [(6,), (3, 2)])
def test_exports_share_memory(shape):
    values = np.arange(6.0).reshape(shape)
    x = ab.from_dlpack(values)
    frame = ab.tree.columns({"a": x})
    assert duckdb.sql("select count(a) from frame").fetchall() == [(len(values),)]
    for made in (
        *(pl.Series(x), na.Array(x), arro3.Array.from_arrow(x), pl.DataFrame({"a": x})["a"]),
        *(pl.DataFrame(frame)["a"], arro3.Table.from_arrow(frame)["a"]),
    ):
        back = ab.convert(made, "numpy")
        assert np.array_equal(back, values)
        assert np.shares_memory(back, values)
    if len(shape) == 1:
        assert pd.DataFrame.from_arrow(frame)["a"].tolist() == values.tolist()


def test_memory_outlives_the_frame():
    class Owner:
        pass

    values, owner = np.arange(1000.0), Owner()
    alive = weakref.ref(owner)
    x = ab.from_pointer(values.ctypes.data, 1000, "float64", device="cpu", owner=owner)
    frame = pl.DataFrame({"a": x})
    held = [
        ab.convert(frame["a"], "numpy"),
        ab.convert(frame["a"], "torch", alias_readonly=True),
    ]
    del frame, x, owner
    while held:
        gc.collect()
        assert alive() is not None
        assert held.pop()[-1] == 999
    gc.collect()
    assert alive() is None


def test_frames_pass_through_adapt_and_unify():
    for x in (pd.Series([1.0]), pd.DataFrame({"a": [1.0]}), pl.Series([1.0]), pl.DataFrame()):
        assert ab.adapt("numpy")(lambda y: y)(x) is x
        with pytest.raises(TypeError, match=r"arraybridge\.asarray\(x, like='numpy'\)$"):
            ab.namespace(x)
    for name, made in FRAMES.items():
        x = made({"a": np.arange(2.0)})
        assert ab.unify(np.ones(1), x)[2] is x, name
        assert ab.tree.convert({"x": x}, "numpy")["x"] is x, name


@pytest.mark.parametrize("column", COLUMNS)
def test_columns_are_arrays_of_trees_and_of_unify(column):
    x, like = COLUMNS[column](np.arange(3.0)), torch.ones(3)
    made = ab.tree.convert({"x": [x], "when": pd.Timestamp(0), "expr": pl.col("a")}, "torch")
    assert made["x"][0].tolist() == [0, 1, 2]
    assert type(made["when"]) is pd.Timestamp
    assert type(made["expr"]) is pl.Expr
    assert ab.tree.explain({"x": x}, "numpy").views == ["x"]
    assert [type(y) for y in ab.unify(like, x)[1:]] == [torch.Tensor] * 2
    if not isinstance(x, pa.ChunkedArray):  # a column is no model if there is an array
        assert [type(y) for y in ab.unify(x, like)[1:]] == [torch.Tensor] * 2
        assert type(ab.unify(x)[1]) is np.ndarray
    assert ab.asarray(x, like="torch").tolist() == [0, 1, 2]


def test_numbers_need_no_pyarrow():
    python(
        "import sys\n"
        "sys.modules['pyarrow'] = None\n"
        "import numpy as np, pandas as pd, polars as pl\n"
        "import arraybridge as ab\n"
        "assert ab.convert(pd.Series([1], dtype='Int64'), 'numpy').tolist() == [1]\n"
        "assert ab.convert(pd.DataFrame({'a': [1.0], 'b': [2.0]}), 'numpy').tolist() == [[1, 2]]\n"
        "assert ab.convert(pl.Series([1, 2]), 'numpy').tolist() == [1, 2]\n"
        "assert ab.convert(pl.DataFrame({'a': [1], 'b': [2]}), 'numpy').tolist() == [[1, 2]]\n"
        "try:\n"
        "    ab.convert(pl.DataFrame({'a': [True]}), 'numpy')\n"
        "except ImportError as error:\n"
        "    assert 'pip install' in str(error)\n"
    )


# Columns of pandas may still be written; those of polars and Arrow may not.


@pytest.fixture(params=["jax", "tensorflow"])
def target(request):
    pytest.importorskip(request.param)
    return request.param


def _ones(n):
    return pd.Series(np.ones(n, "f4"))


def _frame(n):
    return pd.DataFrame(np.ones((n, 2), "f4"), columns=["a", "b"])


def _set(x, value):
    x.iloc[:] = value


def _set_in_place(x, value):
    x *= value


def _set_frame(x, value):
    x.iloc[:, :] = value


# What is converted, of what, and how pandas writes to that.
WRITTEN = {
    "column": (lambda x: x, _ones, _set),
    "in place": (lambda x: x, _ones, _set_in_place),
    "Array": (ab.from_dlpack, _ones, _set),
    "masked": (lambda x: x, lambda n: _ones(n).astype("Float32"), _set),
    "on Arrow": (lambda x: x, lambda n: _ones(n).astype("float[pyarrow]"), _set),
    "frame": (lambda x: x, _frame, _set_frame),
    "frame of columns": (lambda x: x, lambda n: pd.DataFrame({"a": _ones(n)}), _set_frame),
}


@pytest.mark.parametrize("how", WRITTEN)
def test_what_pandas_writes_later_is_not_seen(target, how):
    """Hundreds of them, since malloc decides which are aligned as JAX wants it."""
    shown, make, write = WRITTEN[how]
    kept = []
    for n in range(16, 116):
        x = make(n)
        seen = shown(x)
        route = ab.explain(seen, target)
        j = ab.convert(seen, target)
        shared = ab.inspect(j).pointer == ab.inspect(seen).pointer
        assert shared == (route.kind == "view")
        assert how == "on Arrow" or not shared
        kept.append((x, j))
    for x, _ in kept:
        write(x, 7)
    for _, j in kept:
        np.testing.assert_array_equal(np.asarray(j), 1)


def test_what_polars_and_arrow_promise_is_shared(target):
    views = 0
    for n in range(1000, 1100):
        values = np.ones(n, "f4")
        if n % 2:
            values = aligned(values)
        for x in (
            *(pl.Series(values), pl.Series(values).to_numpy(), pl.DataFrame({"a": values})),
            pa.array(values),  # its `to_numpy` is the writable array itself
            *(ab.from_dlpack(pl.Series(values)), ab.from_dlpack(pa.array(values))),
            pa.chunked_array([values]),
        ):
            route = ab.explain(x, target)
            assert route.kind == "view" or "aligned" in route.why
            shared = ab.inspect(ab.convert(x, target)).pointer == ab.inspect(x).pointer
            assert shared == (route.kind == "view")
            views += shared
    assert views


# Columns of several data types, as the matrix of the one that is asked for.

SEVERAL = {"a": [1, 2, 3], "b": [0.5, 1.5, 2.5], "c": [True, False, True]}
VALUES = [[1, 0.5, 1], [2, 1.5, 0], [3, 2.5, 1]]


MIXED = {
    "pandas": lambda: pd.DataFrame(SEVERAL),
    "pandas on Arrow": lambda: pd.DataFrame(SEVERAL).convert_dtypes(dtype_backend="pyarrow"),
    "pandas mixed": lambda: pd.DataFrame(SEVERAL).astype({"a": "Int64", "b": "float[pyarrow]"}),
    "pandas swapped": lambda: pd.DataFrame(SEVERAL).astype({"a": ">i4", "b": "<f2"}),
    "pandas, every second": lambda: pd.DataFrame(SEVERAL).loc[[0, 0, 1, 0, 2]].iloc[[0, 2, 4]],
    "polars": lambda: pl.DataFrame(SEVERAL),
    "polars chunks": lambda: pl.concat(
        [pl.DataFrame(SEVERAL)[:1], pl.DataFrame(SEVERAL)[1:]], rechunk=False
    ),
    "Arrow": lambda: pa.table(SEVERAL),
}


@pytest.mark.parametrize("frame", MIXED)
@pytest.mark.parametrize("target", ["numpy", "torch"])
def test_columns_of_several_data_types(frame, target):
    for terms in ({}, {"order": "C"}, {"order": "F"}, {"copy": True}, {"device": "cpu"}):
        x = MIXED[frame]()
        route = ab.explain(x, target, dtype="float32", **terms)
        found = ab.convert(x, target, dtype="float32", **terms)
        assert (route.kind, route.nbytes) == ("copy", 36)
        info = ab.inspect(found)
        assert (info.dtype.name, info.shape) == ("float32", (3, 3))
        assert np.asarray(ab.convert(found, "numpy")).tolist() == VALUES
        order = terms.get("order")
        assert order is None or (info.c_contiguous if order == "C" else info.f_contiguous)
    assert np.asarray(ab.asarray(x, like=target, dtype="float32")).tolist() == VALUES


@pytest.mark.parametrize("frame", MIXED)
def test_the_rule_of_casting_holds_for_each_column(frame):
    x = MIXED[frame]()

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


def test_several_data_types_and_no_rows():
    for x in (pl.DataFrame(SEVERAL)[:0], pd.DataFrame(SEVERAL)[:0], pa.table(SEVERAL)[:0]):
        for terms in ({}, {"order": "C"}):
            found = ab.convert(x, "torch", dtype="float32", **terms)
            assert (found.shape, found.dtype) == ((0, 3), torch.float32)


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
    lists = pl.concat([pl.Series(ab.from_dlpack(part)) for part in parts], rechunk=False)
    pandas = pd.concat([pd.DataFrame(part) for part in parts])
    for x in (frame, frame.to_arrow(), lists, pandas):
        assert np.array_equal(ab.convert(x, "numpy"), whole)
    assert np.array_equal(ab.convert(frame["0"], "numpy"), whole[:, 0])
