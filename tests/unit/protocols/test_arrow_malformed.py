"""Arrow's PyCapsule interface from producers that are wrong, elsewhere, or exhausted."""

from __future__ import annotations

import ctypes
import gc
import json
import struct
import sys

import numpy as np
import pyarrow as pa
import pytest

import arraybridge as ab
from arraybridge.dlpack import Device, DeviceType, MalformedTensorError
from tests.support.arrow import Made, OnDevice, Streamed
from tests.support.processes import python


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


def test_booleans_in_lists_of_nothing_may_have_no_memory():
    child = {"length": 0, "offset": 1, "buffers": (None, None)}
    array = {"length": 3, "buffers": (None,), "children": [child]}
    x = Made({"format": b"+w:0", "children": [{"format": b"b"}]}, array)
    assert ab.convert(x, "numpy").shape == (3, 0)


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


@pytest.mark.parametrize("method", ["__arrow_c_array__", "__arrow_c_device_array__"])
def test_a_capsule_is_consumed_once(method):
    x = pa.array([1, 2])
    capsule = getattr(x, method)()[1]

    class Stale:
        __len__ = x.__len__

    setattr(Stale, method, lambda _: (x.type.__arrow_c_schema__(), capsule))
    assert ab.convert(Stale(), "numpy").tolist() == [1, 2]
    with pytest.raises(MalformedTensorError, match="already"):
        ab.convert(Stale(), "numpy")


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
        for count, why in ((1, "1 of 3"), (-1, "is in device memory")):
            x = OnDevice(
                {}, {"null_count": count, "buffers": (64, 4096)}, {"device_type": 2, "device_id": 0}
            )
            assert why in ab.explain(x, "torch").why

    def test_a_stream_lies_in_one_place(self):
        from arraybridge.protocols.arrow_memory import DeviceArray, DeviceStream, Stream

        class Mixed(Streamed):
            __arrow_c_stream__ = None

            def fill(self, struct, fields, root=True):
                if root:
                    device = DeviceArray.from_address(ctypes.addressof(struct))
                    device.device_type = 1 if fields["length"] else 2
                super().fill(struct, fields, root)

            def __arrow_c_device_stream__(self, requested_schema=None, **_):
                capsule = Streamed.__arrow_c_stream__(self)  # destroys nothing
                struct, plain = DeviceStream(), self.kept[-1]
                for name, _ in Stream._fields_:
                    setattr(struct, name, getattr(plain, name))
                struct.release = self.releasing(DeviceStream, "stream")
                self.kept.append(capsule)
                return self.capsule(struct, b"arrow_device_array_stream")

        for arrays in ([{"length": 3}, {"length": 0}], [{"length": 0}, {"length": 3}]):
            x = Mixed({}, arrays)
            with pytest.raises(ab.ConversionError, match="combine them first"):
                ab.convert(x, "numpy")
            assert sorted(x.released) == ["array", "array", "schema", "stream"]

    def test_unknown(self):
        with pytest.raises(MalformedTensorError):
            ab.convert(OnDevice({}, {}, {"device_type": 77, "device_id": 0}), "numpy")


def test_metadata_of_other_kinds_changes_nothing():
    kind = pa.schema([pa.field("a", pa.int64(), metadata={"unit": "m", "x": json.dumps([1])})])
    table = pa.table([[1, 2]], schema=kind)
    assert ab.convert(table, "numpy").tolist() == [[1], [2]]


def test_structs_have_the_sizes_of_the_format():
    from arraybridge.protocols import arrow_memory as memory

    sizes = [ctypes.sizeof(getattr(memory, name)) for name in ("Schema", "Array", "DeviceArray")]
    assert sizes == [72, 80, 128]
    assert ctypes.sizeof(memory.Stream) == 40
