"""Arrow's PyCapsule interface, both ways, through pyarrow."""

import gc
import weakref

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import arraybridge as ab
from arraybridge.dlpack import Device, DeviceType
from tests.support.probe import described
from tests.support.threads import in_threads

NUMBERS = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64".split()


class Capsules:
    """An array of pyarrow's by its capsules alone, as of a library that nobody knows."""

    def __init__(self, x):
        self.x = x

    def __arrow_c_array__(self, requested_schema=None):
        return self.x.__arrow_c_array__(requested_schema)

    def __len__(self):
        return len(self.x)


class Chunks(Capsules):
    __arrow_c_array__ = None

    def __arrow_c_stream__(self, requested_schema=None):
        return self.x.__arrow_c_stream__(requested_schema)


class Once:
    """A stream without a length, which reading consumes."""

    __arrow_c_stream__ = Chunks.__arrow_c_stream__

    def __init__(self, x):
        self.x = x


def readers(x):
    """An array of pyarrow's and the objects that give the same capsules."""
    return x, Capsules(x), Chunks(pa.chunked_array([x]))


LISTS = pa.list_(pa.list_(pa.int16(), 3), 2)
ROWS = [[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [10, 11, 12]]]


@pytest.mark.parametrize("x", readers(pa.array(ROWS * 2, LISTS)[1:3]))
def test_lists_of_one_size_are_axes(x):
    view = ab.convert(x, "numpy", copy=False)
    assert view.shape == (2, 2, 3)
    assert view.tolist() == ROWS[::-1]


REFUSED = {
    "null": (pa.array([1, None]), "1 of 2 elements is null"),
    "null list": (pa.array([[1], None], pa.list_(pa.int8(), 1)), "is null"),
    "null in a list": (pa.array([[1], [None]], pa.list_(pa.int8(), 1)), "is null"),
    "null truth": (pa.array([True, None]), "is null"),
    "nothing": (pa.nulls(2), "not a tensor dtype"),
    "text": (pa.array(["a"]), "string is not a tensor dtype"),
    "dates": (pa.array([1], pa.date32()), "date32.* is not a tensor dtype"),
    "decimals": (pa.array([1], pa.decimal128(5)), "decimal128.* is not a tensor dtype"),
    "lists": (pa.array([[1], [2, 3]]), "list.* is not a tensor dtype"),
    "words in lists": (pa.array([["a"]], pa.list_(pa.string(), 1)), "not a tensor dtype"),
    "categories": (pa.array(["a"]).dictionary_encode(), "dictionary.* is not a tensor dtype"),
    "uuids": (pa.array([b"0" * 16], pa.uuid()), "not a tensor dtype"),
    "null in a frame": (pa.table({"a": [1, None]}).to_batches()[0], "column 'a': 1 of 2 elem"),
    "text in a frame": (pa.record_batch({"a": [1], "b": ["x"]}), "column 'b': Arrow's string"),
    "a list in a frame": (pa.record_batch({"a": pa.array(ROWS, LISTS)}), "an array of 3 axes"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_no_tensor_holds_is_refused(why):
    x, words = REFUSED[why]
    for each in (x, Capsules(x)):
        with pytest.raises(ab.ConversionError, match=words) as caught:
            ab.convert(each, "numpy")
        assert ab.explain(each, "numpy").why == str(caught.value)


def test_a_stream_is_read_once_and_not_to_be_looked_at():
    reader = pa.table({"a": [1.5], "b": [2.5]}).to_reader()
    with pytest.raises(ab.ConversionError, match=r"read only once.*pyarrow\.table\(x\)"):
        ab.inspect(Once(reader))
    assert ab.convert(Once(reader), "numpy").tolist() == [[1.5, 2.5]]


class TestExports:
    """`Array.__arrow_c_array__` and the target ``"pyarrow.Array"``, which it calls."""

    @pytest.mark.parametrize("dtype", NUMBERS)
    @pytest.mark.parametrize("shape", [(3,), (2, 3, 4), (0,), (0, 2), (2, 0)])
    def test_memory_is_shared(self, dtype, shape):
        array = np.ones(shape, dtype)
        arrow = pa.array(ab.from_dlpack(array))
        arrow.validate(full=True)
        assert arrow.to_pylist() == array.tolist()
        back = ab.convert(arrow, "numpy")
        assert (back.shape, back.dtype) == (shape, dtype)
        assert not array.size or np.shares_memory(back, array)

    def test_every_route_is_what_explain_says(self):
        array = np.arange(6.0).reshape(2, 3)
        for given_, kind in ((array, "view"), (array.T, "copy"), (array > 1, "copy")):
            assert ab.explain(given_, "pyarrow.Array").kind == kind
            copied = ab.convert(given_, "pyarrow.Array", copy=True)
            for arrow in (ab.convert(given_, "pyarrow.Array"), copied):
                assert type(arrow) is pa.FixedSizeListArray
                assert arrow.to_pylist() == given_.tolist()
            assert not np.shares_memory(ab.convert(copied, "numpy"), array)
            if kind == "copy":
                with pytest.raises(ab.ConversionError):
                    ab.convert(given_, "pyarrow.Array", copy=False)

    def test_what_arrow_lacks_is_refused(self):
        gpu = described(np.ones(3), device=Device(DeviceType.CUDA, 1))
        for array in (np.ones(()), np.ones(2, complex), gpu):
            with pytest.raises(ab.ConversionError):
                ab.from_dlpack(array).__arrow_c_array__()

    def test_memory_lives_as_long_as_the_consumer(self):
        class Owner:
            pass

        for shape in ((6,), (2, 3)):
            array, owner = np.arange(6.0), Owner()
            alive = weakref.ref(owner)
            x = ab.from_pointer(array.ctypes.data, shape, "float64", device="cpu", owner=owner)
            held = [pa.array(x)[:1]]
            if len(shape) == 2:
                held = [held[0].values]  # a child that outlives its parent
            held += x.__arrow_c_array__()
            del owner, x
            gc.collect()
            assert alive() is not None
            in_threads(list.clear, [held])
            gc.collect()
            assert alive() is None

    def test_columns_of_a_table(self):
        x, y = np.arange(3.0), np.ones((3, 2), "f4")
        table = ab.tree.columns({"x": x, "y": ab.from_dlpack(y), "z": x > 1})
        assert table.to_pydict() == {"x": x.tolist(), "y": y.tolist(), "z": (x > 1).tolist()}
        assert np.shares_memory(ab.convert(table["x"], "numpy"), x)
        with pytest.raises(ab.ConversionError, match="column 'x': "):
            ab.tree.columns({"x": np.ones(2, complex)})
        with pytest.raises(TypeError, match="column 'x': "):
            ab.tree.columns({"x": "text"})
        with pytest.raises(ValueError, match="length"):
            ab.tree.columns({"x": x, "y": x[:2]})


@settings(deadline=None)
@given(
    st.sampled_from([*NUMBERS, "bool"]),
    st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple),
    st.integers(0, 3),
    st.integers(0, 2**32 - 1),
)
def test_round_trips(dtype, shape, start, seed):
    values = np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)
    arrow = pa.array(ab.from_dlpack(values))[start:]
    halves = pa.chunked_array([arrow[:2], arrow[2:]])
    for x in (*readers(arrow), halves, Chunks(halves)):
        found = ab.convert(x, "numpy")
        assert (found.dtype, found.shape) == (dtype, values[start:].shape)
        assert np.array_equal(found, values[start:])
