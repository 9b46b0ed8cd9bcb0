"""Arrow's PyCapsule interface, the other way: exports, and ``pyarrow.Array`` as a target."""

import gc
import weakref

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import arraybridge as ab
from arraybridge.dlpack import Device, DeviceType
from tests.support.arrow import Capsules, Chunks
from tests.support.probe import described
from tests.support.threads import in_threads

NUMBERS = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64".split()


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
            with pytest.raises(ab.ConversionError, match=r"Arrow|arrow (has no|supports)"):
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

    @pytest.mark.parametrize("taken", [False, True])
    def test_capsules_that_nobody_takes_and_arrays_on_another_thread_are_released(self, taken):
        class Owner:
            pass

        array, owner = np.arange(6.0).reshape(2, 3), Owner()
        alive = weakref.ref(owner)
        x = ab.from_pointer(array.ctypes.data, (2, 3), "float64", device="cpu", owner=owner)
        held = [x.__arrow_c_array__(), x.__arrow_c_device_array__(), x.__arrow_c_schema__()]
        if taken:
            held = [pa.array(x)]
        del owner, x
        gc.collect()
        assert alive() is not None
        in_threads(list.clear, [held])
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


class TestTarget:
    def test_an_array_is_one_already(self):
        for x in (pa.array([1]), pa.array([True]), pa.array(["a"]), pa.array([1, None])):
            assert ab.convert(x, "pyarrow.Array") is x
            assert ab.explain(x, "pyarrow.Array").why == "nothing to convert"

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
    streamed = Chunks(ab.from_dlpack(values[start:]))
    for x in (arrow, Capsules(arrow), Chunks(pa.chunked_array([arrow])), streamed):
        found = ab.convert(x, "numpy")
        assert (found.dtype, found.shape) == (dtype, values[start:].shape)
        assert np.array_equal(found, values[start:])
