"""The CUDA array interface: read, checked and written without a device."""

from __future__ import annotations

import gc
import itertools
import weakref

import numpy as np
import pytest

import arraybridge as ab
from arraybridge import dlpack
from arraybridge.kernels.cuda import driver
from arraybridge.protocols import cuda_array_interface as cai
from tests.support import stub_driver
from tests.support.stub_driver import Stub


class Producer:
    """An object of no known library that has the interface."""

    def __init__(self, **fields):
        self.__cuda_array_interface__ = {
            "shape": (3, 4),
            "typestr": "<f4",
            "data": (0x7F0000000000, False),
            "version": 3,
        } | fields


@pytest.fixture(autouse=True)
def _no_driver(monkeypatch):
    monkeypatch.setattr(driver, "_NAMES", ("no-such-driver",))
    driver.install(None)
    yield
    driver.install(None)


def test_a_description_needs_no_driver() -> None:
    info = ab.inspect(Producer(strides=(-32, 8), data=(0x7F0000001000, True)))
    assert info.library == "cuda_array_interface"
    assert (info.shape, info.strides) == ((3, 4), (-8, 2))
    assert info.dtype == dlpack.DataType.named("float32")
    assert (info.data, info.device, info.readonly) == (0x7F0000001000, (2, 0), True)


@pytest.mark.parametrize(
    "typestr", "|b1 |i1 <i2 <i4 <i8 |u1 <u2 <u4 <u8 <f2 <f4 <f8 <c8 <c16".split()
)
def test_types_there_and_back(typestr: str) -> None:
    tensor = cai.tensor_of(Producer(typestr=typestr))
    assert tensor.dtype.name == np.dtype(typestr).name
    assert cai.interface_of(tensor)["typestr"] == typestr


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"version": 4}, "a version up to 3"),
        ({"version": "3"}, "malformed"),
        ({"shape": (3.0, 4)}, "malformed"),
        ({"shape": (-3, 4)}, "negative"),
        ({"strides": (4,)}, "strides"),
        ({"data": 17}, "malformed"),
        ({"data": (None, False)}, "malformed"),
        ({"data": (0, False)}, "NULL"),
        ({"typestr": "what"}, "typestr"),
        ({"stream": 0}, "a stream other than 0"),
        ({"shape": (2**40, 2**40)}, "overflow"),
        ({"data": (2**64 - 8, False)}, "address space"),
    ],
)
def test_malformed(fields: dict, message: str) -> None:
    with pytest.raises(dlpack.MalformedTensorError, match=message):
        cai.tensor_of(Producer(**fields))


@pytest.mark.parametrize(
    ("fields", "remedy"),
    [
        ({"mask": Producer()}, "fill it first"),
        ({"typestr": ">f4"}, "swap their bytes"),
        ({"typestr": "|V8"}, "fields or bytes"),
        ({"strides": (16, 3)}, "contiguous first"),
    ],
)
def test_refused_with_the_remedy(fields: dict, remedy: str) -> None:
    with pytest.raises(ab.ConversionError, match=remedy):
        cai.tensor_of(Producer(**fields))


def test_the_producer_lives_as_long_as_what_was_exported() -> None:
    producer = Producer()
    alive = weakref.ref(producer)
    capsule = ab.from_dlpack(producer).__dlpack__(max_version=(1, 0))
    del producer
    gc.collect()
    assert alive() is not None
    assert dlpack.peek(capsule).device == (2, 0)
    del capsule
    gc.collect()
    assert alive() is None


class TestInterfaceOf:
    def tensor(self, **fields) -> dlpack.ManagedTensor:
        given = {"device": ab.Device(2, 1), "owner": self} | fields
        dtype = dlpack.DataType.named(given.pop("dtype", "float32"))
        return dlpack.ManagedTensor.adopt(0x1000, given.pop("shape", (3, 4)), dtype, **given)

    def test_contiguous_has_no_strides(self) -> None:
        assert cai.interface_of(self.tensor(readonly=True), stream=7) == {
            "shape": (3, 4),
            "typestr": "<f4",
            "data": (0x1000, True),
            "strides": None,
            "stream": 7,
            "version": 3,
        }

    def test_strides_are_in_bytes_and_an_offset_is_in_the_pointer(self) -> None:
        interface = cai.interface_of(self.tensor(strides=(1, -3), byte_offset=64))
        assert interface["strides"] == (4, -12)
        assert interface["data"] == (0x1040, False)

    @pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "int4", "complex32"])
    def test_no_type_string(self, dtype: str) -> None:
        with pytest.raises(ab.ConversionError, match="pass its bits"):
            cai.interface_of(self.tensor(dtype=dtype, padded=True))

    @pytest.mark.parametrize("device", ["cpu", "oneapi:0", "rocm:0"])
    def test_no_other_device(self, device: str) -> None:
        with pytest.raises(ab.ConversionError, match=device):
            cai.interface_of(self.tensor(device=ab.Device.parse(device)))


POINTER = Producer().__cuda_array_interface__["data"][0]


@pytest.fixture
def stub():
    with stub_driver.installed(Stub((9, 0), (9, 0))) as stub:
        yield stub


def test_the_memory_that_was_described_is_exported(stub) -> None:
    """An object may have other memory at each look."""
    sizes = itertools.count(1)

    class Growing(Producer):
        def __getattribute__(self, name):
            found = super().__getattribute__(name)
            grows = name == "__cuda_array_interface__"
            return found | {"shape": (next(sizes),)} if grows else found

    x = cai.LIBRARY.alias(Growing())
    assert cai.LIBRARY.describe(x).shape == cai.LIBRARY.export(x, 1).shape


def test_the_driver_tells_the_device(stub) -> None:
    assert ab.inspect(Producer()).device == (2, 0)  # not CUDA's memory
    memory = range(POINTER, POINTER + 4096)
    stub.pointers[memory] = 1
    assert ab.inspect(Producer()).device == (2, 1)
    stub.managed.add(memory)
    assert ab.inspect(Producer()).device == (13, 1)
    stub.pointers[memory] = -2  # CU_DEVICE_INVALID
    assert ab.inspect(Producer()).device == (13, 0)


def test_the_consumers_stream_waits_for_the_producers(stub) -> None:
    stub.pointers[range(POINTER, POINTER + 4096)] = 1
    theirs, ours = stub.stream(1), stub.stream(1)
    cai.LIBRARY.export(Producer(stream=theirs), ours)
    (event,) = stub.events
    assert [(call.name, call.arguments) for call in stub.called(*ORDER)] == [
        ("cuCtxPushCurrent", (stub.context(1),)),
        ("cuEventRecord", (event, theirs)),
        ("cuStreamWaitEvent", (ours, event, 0)),
    ]
    assert stub.stack == []


ORDER = ("cuCtxPushCurrent", "cuEventRecord", "cuStreamWaitEvent")


@pytest.mark.parametrize(("producer", "consumer"), [(None, 5), (5, 5), (5, -1), (1, None)])
def test_nothing_to_wait_for(stub, producer: int | None, consumer: int | None) -> None:
    cai.LIBRARY.export(Producer(stream=producer), consumer)
    assert not stub.called(*ORDER)


def test_looking_waits_for_nothing(stub) -> None:
    ab.inspect(Producer(stream=77))
    ab.explain(Producer(stream=77), "numpy")
    assert not stub.called(*ORDER)


@pytest.mark.parametrize("failing", ["cuCtxPushCurrent", "cuEventCreate", "cuStreamWaitEvent"])
def test_a_refusal_of_the_driver_is_named(stub, failing: str) -> None:
    stub.fail[failing] = 2
    with pytest.raises(ab.ConversionError, match=failing):
        cai.order(stub.stream(), stub.stream(), ab.Device(2, 0))
    assert stub.stack == []
