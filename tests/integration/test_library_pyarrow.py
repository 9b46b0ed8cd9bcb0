"""Apache Arrow: tensors of numbers as a target; tensors, arrays and chunks of them as sources."""

import numpy as np
import pyarrow as pa
import pytest

import arraybridge as ab
from arraybridge.dlpack import Device, DeviceType
from arraybridge.libraries.pyarrow import LIBRARY
from tests.support.arrays import layouts, same
from tests.support.optional import optional
from tests.support.probe import DTYPES, Shown, described, every_byte
from tests.support.producers import Managed, Producer

torch = optional("torch")

ACCEPTS = LIBRARY.accepts
own_door = pa.Tensor.from_dlpack


class TestTheRecordIsWhatTheImporterDoes:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_dtypes(self, dtype):
        tensor = every_byte(dtype)
        if dtype in ACCEPTS.dtypes:
            info = LIBRARY.describe(own_door(Shown(tensor)))
            assert (info.dtype, info.data) == (tensor.dtype, tensor.data)
        else:
            with pytest.raises(pa.ArrowException, match=r"unsupported|Only type with one lane"):
                own_door(Shown(tensor))

    @pytest.mark.parametrize("layout", layouts())
    def test_strides_and_alignment(self, layout):
        array = layouts()[layout]
        if layout == "negative":
            with pytest.raises(pa.ArrowInvalid, match="negative strides"):
                own_door(Shown(described(array)))
            assert "negative strides" in ab.explain(array, "pyarrow").why
            return
        x = own_door(Shown(described(array)))
        assert same(x.to_numpy(), array)
        assert LIBRARY.describe(x).shape == array.shape
        if array.size:
            assert np.shares_memory(x.to_numpy(), array)
        assert ab.explain(array, "pyarrow").kind == "view"

    def test_rank_64(self):
        array = np.zeros((1,) * 64)
        assert own_door(Shown(described(array))).ndim == ACCEPTS.ndim[1] == 64

    @pytest.mark.parametrize("readonly", [True, False])
    def test_readonly_is_kept(self, readonly):
        x = own_door(Shown(described(np.arange(3.0), readonly=readonly)))
        assert x.is_mutable is not readonly
        assert LIBRARY.describe(x).readonly is readonly
        assert ACCEPTS.readonly

    def test_legacy_capsules_are_refused(self):
        with pytest.raises(ValueError, match="incorrect name"):
            own_door(Shown(described(np.arange(3.0)), versioned=False))

    @pytest.mark.parametrize("kind", ["CUDA", "CUDA_HOST", "ONEAPI"])
    def test_other_devices_are_refused(self, kind):
        tensor = described(np.ones(3), device=Device(DeviceType[kind], 0))
        with pytest.raises(pa.ArrowNotImplementedError, match="CPU device"):
            own_door(Shown(tensor))
        assert DeviceType[kind] not in ACCEPTS.devices

    def test_byte_offset_is_kept(self):
        managed = Managed(byte_offset=8)
        x = own_door(Producer(managed))
        assert LIBRARY.describe(x).data == managed.struct.dl_tensor.data + 8


class TestArrays:
    def test_nulls_are_counted(self):
        x = pa.array([1.0, None, 3.0])
        with pytest.raises(ab.ConversionError, match=r"1 of 3 .*fill_null\(value\).*drop_null"):
            ab.convert(x, "numpy")
        with pytest.raises(ab.ConversionError, match="convert it to numbers"):
            ab.convert(pa.nulls(2), "numpy")

    def test_a_slice_starts_at_its_offset(self):
        x = pa.array(range(10), pa.int16())[3:7]
        assert x.offset == 3
        for _ in range(2):
            view = ab.convert(x, "numpy")
            assert view.tolist() == [3, 4, 5, 6]
            assert view.ctypes.data == x.buffers()[1].address + 6
        assert ab.inspect(x).data == x.buffers()[1].address + 6
        assert ab.convert(x, "torch").tolist() == [3, 4, 5, 6]

    def test_immutable_even_where_the_buffer_is_not(self):
        x = pa.array(np.arange(3.0))
        assert x.buffers()[1].is_mutable
        assert ab.inspect(x).readonly
        copied = ab.convert(x, "torch")
        copied[0] = 7
        assert x[0].as_py() == 0
        alias = ab.convert(x, "torch", alias_readonly=True)
        assert alias.data_ptr() == x.buffers()[1].address

    @pytest.mark.parametrize("start", [0, 3, 8, 11])
    def test_packed_booleans_are_copied(self, start):
        values = [i % 3 == 0 for i in range(21)]
        x = pa.array(values)[start:]
        assert ab.inspect(x).pending == ("bitpacked",)
        assert ab.inspect(x).data == x.buffers()[1].address + start // 8
        route = ab.explain(x, "numpy")
        assert (route.kind, route.nbytes) == ("kernel", 21 - start)
        result = ab.convert(x, "numpy")
        assert result.dtype == bool
        assert result.tolist() == values[start:]
        assert result.flags.writeable
        assert ab.convert(x, "torch").tolist() == values[start:]
        assert ab.contiguous(x) is x
        with pytest.raises(ab.ConversionError, match="packed eight to a byte"):
            ab.convert(x, "numpy", copy=False)

    def test_empty(self):
        for x in (pa.array([], pa.int32()), pa.chunked_array([], pa.int32())):
            assert same(ab.convert(x, "numpy"), np.zeros(0, "i4"))
            assert ab.convert(x, "torch").shape == (0,)


class TestChunks:
    def test_one_is_a_view(self):
        x = pa.chunked_array([[], [1, 2, 3], []], pa.int64())
        view = ab.convert(x, "numpy", copy=False)
        assert view.tolist() == [1, 2, 3]
        assert view.ctypes.data == x.chunk(1).buffers()[1].address

    @pytest.mark.parametrize("to", ["numpy", "torch"])
    def test_several_are_copied_once(self, to):
        x = pa.chunked_array([[1.0, 2.0], [3.0]])
        route = ab.explain(x, to)
        assert (route.kind, route.nbytes) == ("kernel", 24)
        assert "several chunks" in route.why
        result = ab.convert(x, to)
        assert result.tolist() == [1, 2, 3]
        result[0] = 7
        assert x[0].as_py() == 1.0
        with pytest.raises(ab.ConversionError, match="several chunks"):
            ab.convert(x, to, copy=False)

    def test_stay_in_arrow(self):
        x = pa.chunked_array([[1.0, 2.0], [3.0]])
        assert ab.convert(x, "pyarrow") is x
        assert ab.contiguous(x).to_pylist() == [1, 2, 3]
        assert ab.convert(x, "pyarrow", copy=True).to_numpy().tolist() == [1, 2, 3]


def test_a_buffer_is_bytes():
    view = ab.convert(pa.py_buffer(b"abc"), "numpy")
    assert view.tolist() == [97, 98, 99]
    assert not view.flags.writeable
