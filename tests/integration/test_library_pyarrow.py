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
    """Views, copies and refusals of each kind are drawn by `tests/properties`."""

    @pytest.mark.parametrize("start", [0, 3, 8, 11])
    def test_packed_booleans_are_copied(self, start):
        values = [i % 3 == 0 for i in range(21)]
        x = pa.array(values)[start:]
        assert ab.inspect(x).pending == ("bitpacked",)
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

    def test_stay_in_arrow(self):
        x = pa.chunked_array([[1.0, 2.0], [3.0]])
        assert ab.convert(x, "pyarrow") is x
        assert ab.contiguous(x).to_pylist() == [1, 2, 3]
        assert ab.convert(x, "pyarrow", copy=True).to_numpy().tolist() == [1, 2, 3]


def test_a_buffer_is_bytes():
    view = ab.convert(pa.py_buffer(b"abc"), "numpy")
    assert view.tolist() == [97, 98, 99]
    assert not view.flags.writeable
