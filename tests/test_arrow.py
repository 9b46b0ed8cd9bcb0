"""Arrow's PyCapsule interface: what comes in, what goes out, and who releases it."""

from __future__ import annotations

import ctypes
import gc
import json
import struct
import sys
import threading
import weakref

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arraybridge as ab
from arraybridge.dlpack import Device, DeviceType, MalformedTensorError

from .support.arrow import Made, OnDevice, Streamed
from .support.optional import optional
from .support.probe import described
from .support.processes import python

torch = optional("torch")

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


@pytest.mark.parametrize("start", [0, 3, 8, 11])
@pytest.mark.parametrize("stop", [0, 1, 8, 21])
def test_booleans_are_unpacked(start, stop):
    x = pa.array([i % 3 == 0 for i in range(32)])[start : start + stop]
    known, found = both(x)
    assert found.dtype == bool
    assert found.tolist() == known.tolist() == x.to_pylist()
    assert ab.convert(Capsules(x), "torch").tolist() == x.to_pylist()
    if stop:
        with pytest.raises(ab.ConversionError, match="packed eight to a byte"):
            ab.convert(Capsules(x), "numpy", copy=False)


def test_nulls_are_refused():
    x = pa.array([1.0, None, 3.0, None])
    for part, count in ((x, "2 of 4 elements are"), (x[:2], "1 of 2 elements is")):
        for given_ in (part, Capsules(part), Chunks(pa.chunked_array([part]))):
            with pytest.raises(ab.ConversionError, match=f"{count} null, which no tensor holds"):
                ab.convert(given_, "numpy")
            assert ab.explain(given_, "numpy").kind == "refuse"
    assert ab.convert(Capsules(x[2:3]), "numpy").tolist() == [3.0]


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
    for twice in (pa.chunked_array([x, x]),):
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
        assert ab.explain(apart, "numpy").why == "its columns lie apart"
        assert np.array_equal(ab.convert(apart, "numpy"), data.reshape(4, 6).T[:, [0, 2, 3]])
        even = table.select(["d", "b"])  # backwards
        assert ab.explain(even, "numpy").kind == "kernel"
        with pytest.raises(ab.ConversionError, match="columns lie apart"):
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
        assert found.flags.f_contiguous  # columns stay whole
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

    @pytest.mark.parametrize("error", [b"it broke", None])
    def test_an_error_is_told_and_all_is_released(self, error):
        x = Streamed({}, [{}, 5, {}], error)
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
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert sorted(x.released) == ["array", "schema"]
    ab.convert(x, "numpy")
    assert sorted(x.released) == ["array", "array", "schema", "schema"]
    if torch:
        tensor = ab.convert(x, "torch", alias_readonly=True)
        assert len(x.released) == 4
        del tensor
        gc.collect()
        assert len(x.released) == 6


def _metadata(**entries):
    found = struct.pack("<i", len(entries))
    for name, value in entries.items():
        key = b"ARROW:extension:" + name.encode()
        found += struct.pack("<i", len(key)) + key + struct.pack("<i", len(value)) + value
    return found


LISTS = {"format": b"+w:2", "children": [{}]}
TENSOR = _metadata(name=b"arrow.fixed_shape_tensor", metadata=b'{"shape": [2]}')


@pytest.mark.parametrize(
    ("schema", "array"),
    [
        ({}, {"length": -1}),
        ({}, {"offset": -1}),
        ({}, {"length": 2**62}),
        ({}, {"offset": 2**62}),
        ({}, {"n_buffers": 1}),
        ({}, {"n_buffers": 3}),
        ({}, {"n_buffers": -1}),
        ({}, {"buffers": None}),
        ({}, {"buffers": None, "n_buffers": 2}),
        ({}, {"buffers": (None, None)}),
        ({}, {"null_count": 1}),
        ({}, {"null_count": 4}),
        ({}, {"null_count": -2}),
        ({"n_children": 1}, {}),
        ({"n_children": -1}, {}),
        ({"n_children": 2**40}, {}),
        ({"format": None}, {}),
        ({"format": b""}, {}),
        ({"format": b"+w:"}, {}),
        ({"format": b"+w:-1", "children": [{}]}, {}),
        ({"format": b"+w:9" + b"9" * 30, "children": [{}]}, {}),
        ({"format": b"+w:2"}, {"buffers": (None,)}),
        (LISTS, {"buffers": (None,)}),
        (LISTS, {"buffers": (None,), "children": [{}]}),
        (LISTS, {"buffers": (None,), "children": [{"length": 6}, {"length": 6}]}),
        (LISTS, {"buffers": (None,), "n_children": 1}),
        (LISTS, {"children": [{"length": 6}]}),
        (LISTS, {"buffers": (None,), "offset": 1, "children": [{"length": 7}]}),
        ({"format": b"+s", "children": [{}, {}]}, {"buffers": (None,), "children": [{}]}),
        ({"format": b"+s", "children": [{}]}, {"buffers": (None,), "children": [{"length": 2}]}),
        ({"format": b"+s", "children": [{}]}, {"buffers": (), "children": [{}]}),
        ({"metadata": struct.pack("<i", -1)}, {}),
        ({"metadata": struct.pack("<ii", 1, -1)}, {}),
        ({"metadata": TENSOR}, {}),
        (LISTS | {"metadata": _metadata(name=b"arrow.fixed_shape_tensor")}, {}),
        (LISTS | {"metadata": TENSOR.replace(b"[2]", b"[3]")}, {}),
        (LISTS | {"metadata": TENSOR.replace(b"[2]", b"2  ")}, {}),
    ],
    ids=repr,
)
def test_what_contradicts_the_format_is_an_error_and_released(schema, array):
    x = Made(schema, array)
    with pytest.raises(MalformedTensorError):
        ab.convert(x, "numpy")
    gc.collect()
    assert sorted(set(x.released)) == ["array", "schema"] or x.released == ["schema", "array"]
    assert x.released.count("array") == x.released.count("schema") == 1


LISTS_OF_TWO = {"buffers": (None,), "children": [{"length": 6, "buffers": (None, bytes(48))}]}


@pytest.mark.parametrize("shape", [b"[2]", b"[3]", b"[1]", b"[-2]", b"[]"])
def test_a_tensor_fills_its_lists(shape):
    told = _metadata(name=b"arrow.fixed_shape_tensor", metadata=b'{"shape": ' + shape + b"}")
    x = Made(LISTS | {"metadata": told}, LISTS_OF_TWO)
    if shape == b"[2]":
        assert ab.convert(x, "numpy").shape == (3, 2)
        return
    with pytest.raises(MalformedTensorError, match="is stored in lists of 2 elements"):
        ab.convert(x, "numpy")


def test_an_error_that_is_kept_keeps_no_memory():
    x = Made({}, {"n_buffers": 1})
    with pytest.raises(MalformedTensorError) as caught:
        ab.convert(x, "numpy")
    assert sorted(x.released) == ["array", "schema"]
    assert caught.value.__traceback__ is not None


def test_a_type_nested_without_end_is_an_error():
    schema: dict = {}
    for _ in range(70):
        schema = {"format": b"+w:1", "children": [schema]}
    with pytest.raises(MalformedTensorError, match="deeper than 64"):
        ab.convert(Made(schema, {"buffers": (None,)}), "numpy")


def test_a_null_count_that_is_not_known_is_counted():
    data = np.arange(20).tobytes()
    bitmap = bytes([0xFF, 0xFF, 0x0F])
    x = Made({}, {"length": 20, "null_count": -1, "buffers": (bitmap, data)})
    assert ab.convert(x, "numpy").tolist() == list(range(20))
    x = Made({}, {"length": 17, "offset": 3, "null_count": -1, "buffers": (b"\xf8\xff\x0e", data)})
    with pytest.raises(ab.ConversionError, match="1 of 17 elements is null"):
        ab.convert(x, "numpy")
    x = Made({}, {"null_count": -1})
    assert ab.convert(x, "numpy").tolist() == [1, 1, 1]


@pytest.mark.skipif(sys.platform != "linux", reason="pages that fault, by mprotect")
def test_bitmaps_and_bits_are_read_to_their_last_byte_and_no_further():
    python("from tests.support.arrow import check_ends; check_ends()")


@pytest.mark.parametrize("given_", [None, (), (1, 2), "capsules"])
def test_what_is_no_pair_of_capsules_is_an_error(given_):
    class Odd:
        def __len__(self):
            return 0

        def __arrow_c_array__(self, requested_schema=None):
            return given_

    with pytest.raises(TypeError, match=r"[cC]apsule"):
        ab.convert(Odd(), "numpy")


def test_a_capsule_is_consumed_once():
    class Stale(Capsules):
        def __init__(self, x):
            self.capsules = x.__arrow_c_array__()

        def __arrow_c_array__(self, requested_schema=None):
            return self.capsules

        def __len__(self):
            return 2

    x = Stale(pa.array([1, 2]))
    assert ab.convert(x, "numpy").tolist() == [1, 2]
    with pytest.raises(MalformedTensorError, match="already"):
        ab.convert(x, "numpy")


class TestDevices:
    def test_host_memory(self):
        x = OnDevice({}, {}, {"device_type": 1, "device_id": -1})
        assert ab.inspect(x).device == Device(DeviceType.CPU)
        x.released.clear()
        view = ab.convert(x, "numpy")
        assert view.tolist() == [1, 1, 1]
        del view
        gc.collect()
        assert sorted(x.released) == ["array", "schema"]

    def test_elsewhere(self):
        x = OnDevice({}, {}, {"device_type": 2, "device_id": 1})
        assert ab.inspect(x).device == Device(DeviceType.CUDA, 1)
        assert "which numpy cannot address" in ab.explain(x, "numpy").why

    def test_nulls_that_only_the_device_knows(self):
        for count, why in ((1, "1 of 3"), (-1, "stands in device memory")):
            x = OnDevice(
                {}, {"null_count": count, "buffers": (64, 4096)}, {"device_type": 2, "device_id": 0}
            )
            assert why in ab.explain(x, "torch").why

    def test_unknown(self):
        with pytest.raises(MalformedTensorError):
            ab.convert(OnDevice({}, {}, {"device_type": 77, "device_id": 0}), "numpy")


class TestExports:
    @pytest.mark.parametrize("dtype", NUMBERS)
    @pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4), (0,), (0, 2), (2, 0)])
    def test_memory_is_shared(self, dtype, shape):
        array = np.ones(shape, dtype)
        x = ab.from_dlpack(array)
        arrow = pa.array(x)
        arrow.validate(full=True)
        assert arrow.to_pylist() == array.tolist()
        assert pa.field("", arrow.type) == pa.field(x).with_name("")
        back = ab.convert(arrow, "numpy")
        assert (back.shape, back.dtype) == (shape, dtype)
        if array.size:
            assert np.shares_memory(back, array)

    @pytest.mark.parametrize("shape", [(21,), (3, 7), (0,)])
    def test_booleans_are_packed_and_come_back(self, shape):
        array = np.random.default_rng(0).integers(0, 2, shape).astype(bool)
        for given_ in (array, np.asfortranarray(array), array[::-1]):
            for arrow in (pa.array(ab.from_dlpack(given_)), ab.convert(given_, "pyarrow.Array")):
                arrow.validate(full=True)
                assert arrow.to_pylist() == given_.tolist()
                assert np.array_equal(ab.convert(arrow, "numpy"), given_)

    def test_other_layouts_are_copied(self):
        array = np.arange(12.0).reshape(3, 4)
        for given_ in (array.T, array[::2], array[:, ::-1], array.astype(">f8")):
            arrow = pa.array(ab.from_dlpack(given_))
            assert arrow.to_pylist() == given_.tolist()

    @pytest.mark.parametrize("array", [np.ones(()), np.ones(2, complex)], ids=["0-d", "complex"])
    def test_what_arrow_lacks_is_refused(self, array):
        x = ab.from_dlpack(array)
        for ask in (x.__arrow_c_array__, x.__arrow_c_device_array__, x.__arrow_c_schema__):
            with pytest.raises(ab.ConversionError, match=r"Arrow|arrow has"):
                ask()

    def test_unknown_keywords(self):
        x = ab.from_dlpack(np.ones(2))
        x.__arrow_c_device_array__(stream=None)
        with pytest.raises(NotImplementedError, match="stream"):
            x.__arrow_c_device_array__(stream=1)

    def test_memory_lives_as_long_as_the_consumer(self):
        class Owner(np.ndarray):
            pass

        for shape in ((6,), (2, 3), (1, 2, 3)):
            array = np.arange(6.0).reshape(shape).view(Owner)
            owner = weakref.ref(array)
            arrow = pa.array(ab.from_dlpack(described(array)))
            part = arrow[:1]
            while isinstance(part, pa.FixedSizeListArray):
                part = part.values  # a child that outlives its parent
            del array, arrow
            gc.collect()
            assert owner() is not None
            assert part[0].as_py() == 0
            del part
            gc.collect()
            assert owner() is None

    def test_capsules_that_nobody_takes_are_released(self):
        array = np.arange(6.0).reshape(2, 3)

        class Owner:
            pass

        owner = Owner()
        alive = weakref.ref(owner)
        x = ab.from_pointer(array.ctypes.data, (2, 3), "float64", device="cpu", owner=owner)
        capsules = [x.__arrow_c_array__(), x.__arrow_c_device_array__(), x.__arrow_c_schema__()]
        del owner, x
        gc.collect()
        assert alive() is not None
        del capsules
        gc.collect()
        assert alive() is None

    def test_released_on_another_thread(self):
        class Owner:
            pass

        owner, array = Owner(), np.arange(3.0)
        alive = weakref.ref(owner)
        x = ab.from_pointer(array.ctypes.data, 3, "float64", device="cpu", owner=owner)
        held = [pa.array(x)]
        del owner, x
        thread = threading.Thread(target=held.clear)
        thread.start()
        thread.join()
        gc.collect()
        assert alive() is None

    def test_off_the_host(self):
        x = ab.from_dlpack(described(np.ones(3), device=Device(DeviceType.CUDA, 1)))
        with pytest.raises(ab.ConversionError, match="__arrow_c_device_array__"):
            x.__arrow_c_array__()
        _, capsule = x.__arrow_c_device_array__()
        from arraybridge.protocols.arrow_memory import DeviceArray, taken

        held = taken(capsule, DeviceArray)
        assert (held.struct.device_type, held.struct.device_id) == (2, 1)
        again = ab.inspect(
            type(
                "X",
                (),
                {
                    "__len__": lambda self: 3,
                    "__arrow_c_device_array__": lambda self, **_: x.__arrow_c_device_array__(),
                },
            )()
        )
        assert (again.device, again.data) == (Device(DeviceType.CUDA, 1), x.info.data)


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
        from arraybridge.dispatch.registry import forget

        x = Capsules(pa.array([1, 2]))
        for _ in range(2):
            assert ab.convert(x, "numpy").tolist() == [1, 2]
            forget()


class TestTarget:
    def test_an_array_is_one_already(self):
        for x in (pa.array([1]), pa.array([True]), pa.array(["a"]), pa.array([1, None])):
            assert ab.convert(x, "pyarrow.Array") is x
            assert ab.explain(x, "pyarrow.Array").why == "it is one already"

    def test_every_route_is_what_explain_says(self):
        array = np.arange(6.0).reshape(2, 3)
        for given_, kind in ((array, "view"), (array.T, "kernel"), (array > 1, "kernel")):
            assert ab.explain(given_, "pyarrow.Array").kind == kind
            arrow = ab.convert(given_, "pyarrow.Array")
            assert type(arrow) is pa.FixedSizeListArray
            assert arrow.to_pylist() == given_.tolist()
            copied = ab.convert(given_, "pyarrow.Array", copy=True)
            assert copied.to_pylist() == given_.tolist()
            assert not np.shares_memory(ab.convert(copied, "numpy"), array)
            if kind == "kernel":
                with pytest.raises(ab.ConversionError):
                    ab.convert(given_, "pyarrow.Array", copy=False)

    def test_chunks_become_one(self):
        arrow = ab.convert(pa.chunked_array([[1], [2]]), "pyarrow.Array")
        assert arrow.to_pylist() == [1, 2]

    def test_no_name_is_guessed(self):
        with pytest.raises(ValueError, match="did you mean"):
            ab.convert(np.ones(2), "pyarrow.Arrays")


dtypes = st.sampled_from([*NUMBERS, "bool"])
shapes = st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple)


@given(dtypes, shapes, st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_round_trips(dtype, shape, start, seed):
    values = np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)
    arrow = pa.array(ab.from_dlpack(values))[start:]
    for x in (arrow, Capsules(arrow), Chunks(pa.chunked_array([arrow]))):
        found = ab.convert(x, "numpy")
        assert (found.dtype, found.shape) == (dtype, values[start:].shape)
        assert np.array_equal(found, values[start:])


@given(st.lists(st.lists(st.booleans(), max_size=20), max_size=4), st.integers(0, 9))
def test_booleans_in_chunks(parts, start):
    chunks = [pa.array([False] * start + part, pa.bool_())[start:] for part in parts]
    x = Chunks(pa.chunked_array(chunks, pa.bool_()))
    assert ab.convert(x, "numpy").tolist() == [value for part in parts for value in part]


def test_metadata_of_other_kinds_changes_nothing():
    kind = pa.schema([pa.field("a", pa.int64(), metadata={"unit": "m", "x": json.dumps([1])})])
    table = pa.table([[1, 2]], schema=kind)
    assert ab.convert(table, "numpy").tolist() == [[1], [2]]


def test_structs_have_the_sizes_of_the_format():
    from arraybridge.protocols import arrow_memory as memory

    sizes = [ctypes.sizeof(getattr(memory, name)) for name in ("Schema", "Array", "DeviceArray")]
    assert sizes == [72, 80, 128]
    assert ctypes.sizeof(memory.Stream) == 40
