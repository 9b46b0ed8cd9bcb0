"""Arrow's PyCapsule interface: what comes in, what goes out, and who releases it."""

import gc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arraybridge as ab
from tests.support.arrow import Capsules, Chunks, Made, Streamed
from tests.support.optional import optional
from tests.support.threads import in_threads

torch = optional("torch")

NUMBERS = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64".split()


def both(x):
    """What pyarrow's own objects become, and what the same becomes by capsules."""
    return ab.convert(x, "numpy"), ab.convert(Capsules(x), "numpy")


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("start", [0, 3])
def test_numbers_are_a_view(dtype, start):
    x = pa.array(np.arange(10).astype(dtype))[start:]
    known, found = both(x)
    assert found.dtype == known.dtype == dtype
    assert found.tolist() == known.tolist()
    assert found.ctypes.data == known.ctypes.data
    assert not found.flags.writeable
    assert ab.explain(Capsules(x), "numpy").kind == "view"
    info = ab.inspect(Capsules(x))
    assert (info.library, info.shape, info.readonly) == ("arrow", (10 - start,), True)


def test_nulls_are_refused():
    x = pa.array([1.0, None, 3.0, None])
    for part, count in ((x, "2 of 4 elements are"), (x[:2], "1 of 2 elements is")):
        for given_ in (part, Capsules(part), Chunks(pa.chunked_array([part]))):
            with pytest.raises(ab.ConversionError, match=f"{count} null, which no tensor holds"):
                ab.convert(given_, "numpy")
            assert ab.explain(given_, "numpy").kind == "refuse"
    for part in (x[2:3], Capsules(x[2:3])):
        assert ab.convert(part, "numpy").tolist() == [3.0]


@pytest.mark.parametrize(
    "x",
    [
        pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int16(), 2)),
        pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int16(), 2))[1:],
        pa.array([[[1.0], [2.0]]] * 3, pa.list_(pa.list_(pa.float32(), 1), 2))[1:2],
        pa.array([[True, False, True]] * 5, pa.list_(pa.bool_(), 3))[1:4],
        pa.array([[]] * 3, pa.list_(pa.int8(), 0)),
        pa.array([], pa.list_(pa.int8(), 4)),
        pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(24.0).reshape(2, 3, 4))[1:],
        pa.ExtensionArray.from_storage(
            pa.fixed_shape_tensor(pa.int32(), [2, 3], permutation=[1, 0]),
            pa.array([list(range(6)), list(range(6, 12))], pa.list_(pa.int32(), 6)),
        ),
    ],
    ids=lambda x: f"{x.type}"[:40],
)
def test_lists_of_one_size_are_axes(x):
    known, found = both(x)
    assert found.shape == known.shape
    assert found.dtype == known.dtype
    assert np.array_equal(found, known)
    if hasattr(x, "to_numpy_ndarray"):
        assert np.array_equal(found, x.to_numpy_ndarray())
    else:
        assert found.tolist() == x.to_pylist()
    if found.size and found.dtype != bool:
        assert (found.ctypes.data, found.strides) == (known.ctypes.data, known.strides)
        assert not known.flags.writeable
    twice = pa.chunked_array([x, x])
    for given_ in (twice, Chunks(twice)):
        assert np.array_equal(ab.convert(given_, "numpy"), np.concatenate([known, known]))


@pytest.mark.parametrize(
    "x",
    [
        pa.array([[1, None], [3, 4]], pa.list_(pa.int8(), 2)),
        pa.array([[1, 2], None], pa.list_(pa.int8(), 2)),
        pa.ExtensionArray.from_storage(
            pa.fixed_shape_tensor(pa.int32(), [2]),
            pa.array([[1, None], [3, 4]], pa.list_(pa.int32(), 2)),
        ),
    ],
    ids=["inside", "a list", "a tensor"],
)
def test_nulls_inside_are_seen(x):
    for given_ in (x, Capsules(x)):
        with pytest.raises(ab.ConversionError, match="null, which no tensor holds"):
            ab.convert(given_, "numpy")


@pytest.mark.parametrize(
    "x",
    [
        pa.array(["a"]),
        pa.array([b"a"]),
        pa.nulls(2),
        pa.array([1], pa.timestamp("us", "UTC")),
        pa.array([1], pa.duration("ns")),
        pa.array([1], pa.date32()),
        pa.array([1], pa.time64("ns")),
        pa.array([1], pa.decimal128(5)),
        pa.array([1], pa.decimal256(50)),
        pa.array(["a"]).dictionary_encode(),
        pa.array([[1]]),
        pa.array([[1]], pa.large_list(pa.int8())),
        pa.array([{"a": [1]}]),
        pa.array([b"ab"], pa.binary(2)),
        pa.RunEndEncodedArray.from_arrays([2, 3], [1, 2]),
        pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0], pa.int8())),
        pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
        pa.array([["a"]], pa.list_(pa.string(), 1)),
    ],
    ids=lambda x: str(x.type)[:40],
)
def test_what_is_no_number_is_refused(x):
    for given_ in (x, Capsules(x)):
        with pytest.raises(ab.ConversionError, match="is not a tensor dtype: "):
            ab.convert(given_, "numpy")
        assert ab.explain(given_, "torch").kind == "refuse"


class TestFrames:
    def test_of_one_type_are_matrices(self):
        table = pa.table({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0]})
        for x in (table, table.to_batches()[0], Chunks(table), table.to_reader()):
            found = ab.convert(x, "numpy")
            assert found.tolist() == [[1, 4], [2, 5], [3, 6]]

    def test_adjacent_columns_are_a_view(self):
        data = np.arange(24.0)
        whole = pa.array(data)
        names = list("abcd")
        table = pa.table([whole[i * 6 : i * 6 + 6] for i in range(4)], names=names)
        found = ab.convert(table, "numpy", copy=False)
        assert np.shares_memory(found, data)
        assert np.array_equal(found, data.reshape(4, 6).T)
        assert not found.flags.writeable
        apart = table.select(["a", "c", "d"])
        assert ab.explain(apart, "numpy").why == "its columns are stored separately"
        assert np.array_equal(ab.convert(apart, "numpy"), data.reshape(4, 6).T[:, [0, 2, 3]])
        even = table.select(["d", "b"])  # backwards
        assert ab.explain(even, "numpy").kind == "kernel"
        with pytest.raises(ab.ConversionError, match="columns are stored separately"):
            ab.convert(even, "numpy", copy=False)

    @pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "int32", "float64"])
    @pytest.mark.parametrize("rows", [0, 1, 5, 5000])
    @pytest.mark.parametrize("chunks", [1, 3])
    def test_columns_apart_are_assembled(self, dtype, rows, chunks):
        values = np.random.default_rng(0).integers(0, 2, (rows, 3)).astype(dtype)
        part = pa.table({name: pa.array(values[:, i].copy()) for i, name in enumerate("abc")})
        table = pa.concat_tables([part] * chunks)
        found = ab.convert(table, "numpy")
        assert (found.dtype, found.shape) == (dtype, (rows * chunks, 3))
        assert np.array_equal(found, np.concatenate([values] * chunks))
        if torch:
            assert np.array_equal(ab.convert(table, "torch"), found)
        assert ab.convert(table, "numpy", order="C").flags.c_contiguous
        # Columns stay whole; a few bytes apart where they happen to have been allocated so.
        assert 0 in found.shape or found.strides[0] == found.itemsize
        assert np.array_equal(ab.convert(table.select(["a"]), "numpy"), found[:, :1])

    def test_lists_in_columns(self):
        lists = pa.array([[1, 2], [3, 4]], pa.list_(pa.int8(), 2))
        found = ab.convert(pa.table({"a": lists, "b": lists}), "numpy")
        assert found.tolist() == [[[1, 2], [1, 2]], [[3, 4], [3, 4]]]

    @pytest.mark.parametrize(
        ("table", "why"),
        [
            (pa.table({"a": [1], "b": [1.0]}), r"\('a' int64, 'b' float64\), and a matrix has one"),
            (pa.table({"a": [1, None], "b": [1, 2]}), "column 'a': 1 of 2 elements is null"),
            (pa.table({"a": [1], "b": ["x"]}), "column 'b': Arrow's string is not"),
            (pa.table({}), "without columns"),
        ],
        ids=["types", "nulls", "text", "none"],
    )
    def test_others_are_refused(self, table, why):
        with pytest.raises(ab.ConversionError, match=why):
            ab.convert(table, "numpy")
        assert ab.explain(table, "numpy").kind == "refuse"

    def test_with_an_offset_and_struct_nulls(self):
        x = pa.StructArray.from_arrays([pa.array([1, 2, 3]), pa.array([4, 5, 6])], ["a", "b"])
        assert ab.convert(Capsules(x[1:]), "numpy").tolist() == [[2, 5], [3, 6]]
        masked = pa.StructArray.from_arrays(
            [pa.array([1, 2]), pa.array([4, 5])], ["a", "b"], mask=pa.array([False, True])
        )
        with pytest.raises(ab.ConversionError, match="null"):
            ab.convert(Capsules(masked), "numpy")


class TestStreams:
    def test_one_that_is_read_once_is_converted_and_not_looked_at(self):
        table = pa.table({"a": [1, 2]})
        for look in (ab.inspect, lambda x: ab.explain(x, "numpy")):
            reader = table.to_reader()
            with pytest.raises(ab.ConversionError, match="can be read only once"):
                look(reader)
            assert ab.convert(reader, "numpy").tolist() == [[1], [2]]

    def test_no_chunks(self):
        x = Streamed({}, [])
        found = ab.convert(x, "numpy")
        assert (found.dtype, found.shape) == ("int64", (0,))
        assert sorted(x.released) == ["schema", "stream"]

    @pytest.mark.parametrize("failure", [5, (5, {})])
    @pytest.mark.parametrize("error", [b"it broke", None])
    def test_an_error_is_told_and_all_is_released(self, error, failure):
        x = Streamed({}, [{}, failure, {}], error)
        told = "it broke" if error else "no reason is given"
        with pytest.raises(ab.ConversionError, match=f"error 5: {told}"):
            ab.convert(x, "numpy")
        gc.collect()
        assert sorted(x.released) == ["array", "schema", "stream"]

    def test_chunks_live_as_long_as_the_view(self):
        x = Streamed({}, [{}])
        view = ab.convert(x, "numpy")
        assert x.released == ["stream"]
        part = view[1:]
        del view
        gc.collect()
        assert x.released == ["stream"]
        assert part.tolist() == [1, 1]
        del part
        gc.collect()
        assert sorted(x.released) == ["array", "schema", "stream"]


def test_a_view_is_released_once_by_any_thread():
    x = Made({}, {})
    held = [ab.convert(x, "numpy")]
    assert not x.released
    in_threads(list.clear, [held])
    assert sorted(x.released) == ["array", "schema"]
    ab.convert(x, "numpy")
    assert sorted(x.released) == ["array", "array", "schema", "schema"]
    if torch:
        tensor = ab.convert(x, "torch", alias_readonly=True)
        assert len(x.released) == 4
        del tensor
        gc.collect()
        assert len(x.released) == 6


class TestElsewhere:
    """What else takes columns and frames, and what they are there."""

    @pytest.mark.parametrize("dtype", ["bool", "float64"])
    def test_contiguous_and_from_dlpack(self, dtype):
        values = np.array([[0, 1], [1, 1], [0, 0]], dtype)
        column = Capsules(pa.array(values[:, 1]))
        table = pa.table({"a": values[:, 0].copy(), "b": values[:, 1].copy()})
        for x, expected in ((column, values[:, 1]), (table, values)):
            array = ab.from_dlpack(x)
            assert isinstance(array, ab.Array)
            assert (array.library, array.native) == ("dlpack", None)
            assert np.array_equal(np.asarray(array), expected)
            made = ab.contiguous(x)
            assert np.array_equal(np.asarray(made), expected)
            to = np.zeros(expected.shape, dtype)
            ab.copyto(to, x)
            assert np.array_equal(to, expected)
        if dtype == "bool":
            with pytest.raises(ab.ConversionError, match="copy=False"):
                ab.from_dlpack(column, copy=False)
        else:
            assert ab.from_dlpack(column, copy=False).readonly

    @pytest.mark.parametrize("library", ["numpy", "torch", "jax"])
    def test_asarray_refuses_nulls(self, library):
        if library != "numpy":
            pytest.importorskip(library)
        xp = __import__(f"arraybridge.xp.{library}", fromlist=["asarray"])
        assert xp.asarray(Capsules(pa.array([1.0], "float32"))).shape == (1,)
        for x in (Capsules(pa.array([1, None])), pa.table({"a": [1, None]})):
            with pytest.raises(ab.ConversionError, match="null"):
                xp.asarray(x)

    def test_casts(self):
        x = Capsules(pa.array([1, 2]))
        assert ab.convert(x, "numpy", dtype="float32").dtype == "float32"
        assert ab.explain(x, "numpy", dtype="float32").kind == "kernel"

    def test_a_class_is_looked_at_again_after_a_library_was_registered(self):
        from arraybridge.core.registry import forget

        x = Capsules(pa.array([1, 2]))
        for _ in range(2):
            assert ab.convert(x, "numpy").tolist() == [1, 2]
            forget()


@given(st.lists(st.lists(st.booleans(), max_size=20), max_size=4), st.integers(0, 9))
def test_booleans_in_chunks(parts, start):
    chunks = [pa.array([False] * start + part, pa.bool_())[start:] for part in parts]
    x = pa.chunked_array(chunks, pa.bool_())
    for given_ in (x, Chunks(x)):
        assert ab.convert(given_, "numpy").tolist() == [value for part in parts for value in part]
