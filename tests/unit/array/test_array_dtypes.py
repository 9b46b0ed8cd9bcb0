"""The data types of Arrays: the library's own to the library, NumPy's to NumPy."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.array.dtypes import DType, DTypes
from arraybridge.dlpack import DataType
from arraybridge.ndarrays import EXTENDED, NATIVE
from tests.support.namespaces import each_face, namespaces

torch = pytest.importorskip("torch")
BY_ATTRIBUTE = np.lib.NumpyVersion(np.__version__) < "2.4.0"
TORCHS = sorted({str(x)[6:] for x in vars(torch).values() if isinstance(x, torch.dtype)})


def of(name: str) -> DType:
    dtype = ab.from_dlpack(torch.zeros(2, dtype=getattr(torch, name))).dtype
    assert isinstance(dtype, DType)
    return dtype


@pytest.mark.parametrize("name", NATIVE)
class TestOfTorch:
    def test_is_the_librarys_from_either_side(self, name):
        own, dtype = getattr(torch, name), of(name)
        assert dtype == own
        assert own == dtype
        assert hash(dtype) == hash(own)
        assert {own: 1}[dtype] == {dtype: 1}[own] == 1
        assert dtype in (own,)
        assert own in {dtype}
        assert dtype.native is own
        assert all(dtype != getattr(torch, other) for other in NATIVE if other != name)

    def test_is_numpys_to_numpy(self, name):
        dtype, numpys = of(name), np.dtype(name)
        assert np.dtype(dtype) is np.dtype(dtype)
        assert np.dtype(dtype) == numpys
        assert numpys == dtype
        assert dtype == numpys
        assert dtype == numpys.type
        assert np.zeros(2, dtype).dtype == numpys
        assert np.ones(2).astype(dtype).dtype == numpys
        assert np.result_type(dtype, "int8") == np.result_type(name, "int8")
        assert np.can_cast(dtype, "complex128")
        assert np.issubdtype(dtype, numpys.type)

    @pytest.mark.skipif(BY_ATTRIBUTE, reason="NumPy before 2.4 reads `dtype`, as an array has it")
    def test_is_no_array_to_numpy(self, name):
        dtype = of(name)
        assert not hasattr(dtype, "dtype")
        assert not np.iscomplexobj(dtype)
        np.testing.assert_equal(dtype, dtype)
        with pytest.raises(AssertionError):
            np.testing.assert_equal(dtype, of("bool" if name != "bool" else "int8"))

    def test_is_an_instance_to_numpys_world(self, name):
        dtype = of(name)
        assert isinstance(dtype, np.dtype)
        assert isinstance(dtype, type(np.dtype(name)))
        assert type(dtype) is DType

    def test_has_the_attributes_of_both(self, name):
        own, dtype, numpys = getattr(torch, name), of(name), np.dtype(name)
        assert (dtype.name, dtype.kind, dtype.itemsize) == (name, numpys.kind, numpys.itemsize)
        assert dtype.is_floating_point == own.is_floating_point
        assert str(dtype) == str(own)
        assert repr(dtype) == repr(own)
        for array_like in ("shape", "ndim", "size", "device", "__array_interface__"):
            assert not hasattr(dtype, array_like)

    def test_is_one_object(self, name):
        dtype = of(name)
        assert of(name) is dtype
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(dtype, protocol)) is dtype
        assert copy.copy(dtype) is copy.deepcopy(dtype) is dtype


def test_every_dtype_of_torch_has_one():
    for name in TORCHS:
        dtype = DType(getattr(torch, name))
        assert dtype == getattr(torch, name)
        assert dtype.name == name
        if name not in NATIVE + EXTENDED:
            assert dtype != np.dtype("float32")
            assert np.dtype("float32") != dtype
            assert not isinstance(dtype, np.dtype)
            # NumPy before 2.4 has words of its own.
            with pytest.raises(
                TypeError, match=rf"(NumPy has no dtype for|interpret) .?torch\.{name}"
            ):
                np.dtype(dtype)


@pytest.mark.parametrize("name", [n for n in EXTENDED if n in TORCHS])
def test_of_ml_dtypes(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert np.dtype(of(name)) == np.dtype(getattr(ml_dtypes, name))
    assert of(name).itemsize == getattr(torch, name).itemsize


def test_without_ml_dtypes_numpy_has_no_bfloat16(monkeypatch):
    monkeypatch.setattr("arraybridge.ndarrays._extended_dtype", lambda name: None)
    monkeypatch.setattr("arraybridge.ndarrays._numpy_dtypes", {})
    monkeypatch.setattr("arraybridge.array.dtypes._MADE", {})
    dtype = DType(torch.bfloat16)
    with pytest.raises(TypeError, match=r"NumPy has no dtype for torch.bfloat16: .*ml_dtypes"):
        _ = dtype.__numpy_dtype__
    assert dtype == torch.bfloat16
    assert dtype != np.dtype("float32")
    assert not hasattr(dtype, "kind")
    assert dtype.is_floating_point


def test_strangers_are_unequal():
    dtype = of("float32")
    for other in (None, "float32", "torch.float32", 1, float, torch, object(), DType):
        assert dtype != other
        assert other != dtype
    other = DType(DataType("float32"))
    assert dtype != other
    assert other != dtype
    assert dtype != np.dtype(">f4")
    assert dtype != np.dtype("M8[s]")


def test_torchs_own_functions_take_native():
    """Its parser asks for the very type."""
    with pytest.raises(TypeError, match=r"must be torch\.dtype, not DType"):
        torch.zeros(2, dtype=of("float32"))
    assert torch.zeros(2, dtype=of("int8").native).dtype == of("int8")


class TestFaces:
    """Every function that takes a data type is called with instances in `test_xp_dtypes`."""

    @each_face
    def test_questions_about_them(self, namespace):
        if namespace.library in ("array_api_strict", "jax"):  # has data types of its own; 64 bits
            return
        xp, dtype = namespace.xp, of("float32")
        x = xp.ones((2,), dtype=dtype)
        assert xp.isdtype(dtype, "real floating")
        assert xp.isdtype(dtype, (xp.int8, dtype))
        assert xp.finfo(dtype).bits == 32
        assert xp.iinfo(of("int8")).max == 127
        assert xp.can_cast(dtype, xp.float64)
        assert xp.can_cast(x, dtype)
        assert xp.result_type(dtype, x, xp.float64, 1) == xp.float64
        assert xp.mean(x, dtype=of("float64")).dtype == xp.float64

    def test_what_numpy_alone_has_is_not_taken(self):
        for xp in (namespace.xp for namespace in namespaces("torch")):
            assert xp.result_type(np.dtype("int8"), xp.zeros((2,))) == xp.float32
            for none in (np.dtype("M8[s]"), np.dtype("float128"), np.dtype(">f4"), np.str_):
                with pytest.raises(TypeError):
                    xp.zeros((2,), dtype=none)

    def test_each_face_gives_its_own(self):
        of_arrays, native = (namespace.xp for namespace in namespaces("torch"))
        for xp, kind in (of_arrays, DType), (native, torch.dtype):
            x = xp.ones((2,), dtype=xp.float32)
            info = xp.__array_namespace_info__()
            found = [
                xp.float32, x.dtype, xp.result_type(x, xp.int8), xp.finfo(x).dtype,
                xp.finfo(x.dtype).dtype, xp.iinfo(xp.int8).dtype,
                *info.dtypes().values(), *info.default_dtypes().values(),
            ]  # fmt: skip
            assert {type(each) for each in found} == {kind}
        assert of_arrays.finfo(of_arrays.float32) == torch.finfo(torch.float32)

    def test_torch_compile_follows_them(self):
        xp = namespaces("torch")[0].xp

        def function(x):
            y = x * 2
            if (
                y.dtype == xp.float32
                and y.dtype == x.dtype
                and xp.isdtype(x.dtype, "real floating")
            ):
                return xp.astype(x, xp.float64) + xp.zeros((2,), dtype=x.dtype)
            return x

        compiled = torch.compile(function, backend="eager", fullgraph=True)
        for name in ("float32", "int8"):
            x = xp.ones((2,), dtype=getattr(xp, name))
            assert compiled(x).dtype == function(x).dtype


class TestOfBareMemory:
    def test_is_dlpacks(self):
        memory = np.ones(3, "float32")
        x = ab.from_pointer(memory.ctypes.data, (3,), of("float32"), device="cpu", owner=memory)
        assert x.dtype == DataType("float32") == x.dtype
        assert x.dtype == (2, 32, 1)
        assert hash(x.dtype) == hash((2, 32, 1))
        assert np.dtype(x.dtype) == np.dtype("float32") == x.dtype
        assert (x.dtype.code, x.dtype.bits, str(x.dtype)) == (2, 32, "float32")
        assert x.dtype.__dlpack_data_type__() == of("float32").__dlpack_data_type__() == (2, 32, 1)
        assert pickle.loads(pickle.dumps(x.dtype)) is x.dtype

    def test_lanes_without_end_are_not_kept(self):
        from arraybridge.array import dtypes

        for lanes in range(2, 3 * dtypes._MOST):
            assert DType(DataType(2, 32, lanes)) == DType(DataType(2, 32, lanes))
        assert len(dtypes._MADE) <= dtypes._MOST
        assert DType(torch.float32) is of("float32")


def test_a_dtype_made_after_the_table_is_not_taken_for_another():
    table = DTypes([torch.float32])
    assert table.taken(of("float32")) is torch.float32
    assert table.taken(np.dtype("float32")) is torch.float32
    assert table.taken(DType(DataType("float32"))) is torch.float32
    for other in (of("int8"), np.dtype("int8"), np.dtype(">f4"), "float32", None, float):
        assert table.taken(other) is other
