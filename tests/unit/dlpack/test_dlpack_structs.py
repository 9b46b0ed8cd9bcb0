"""The structs, data types and devices of dlpack.h 1.3."""

from __future__ import annotations

import copy
import ctypes
import pickle
import re
from pathlib import Path

import pytest

from arraybridge import dlpack
from arraybridge.dlpack import DataType, DataTypeCode, Device, DeviceType, ManagedTensor
from arraybridge.dlpack.types import BY_NAME, LEGAL_BITS

# A struct, its size, and the offsets of its fields.
LAYOUT = """
DLPackVersion 8 major 0 minor 4
DLDevice 8 device_type 0 device_id 4
DLDataType 4 code 0 bits 1 lanes 2
DLTensor 48 data 0 device 8 ndim 16 dtype 20 shape 24 strides 32 byte_offset 40
DLManagedTensor 64 dl_tensor 0 manager_ctx 48 deleter 56
DLManagedTensorVersioned 80 version 0 manager_ctx 8 deleter 16 flags 24 dl_tensor 32
DLPackExchangeAPI 56 managed_tensor_allocator 16 managed_tensor_from_py_object_no_sync 24
    managed_tensor_to_py_object_no_sync 32 dltensor_from_py_object_no_sync 40 current_work_stream 48
""".replace("\n    ", " ").strip()


@pytest.mark.parametrize("line", LAYOUT.splitlines(), ids=lambda line: line.split()[0])
def test_sizes_and_offsets(line):
    name, size, *fields = line.split()
    struct = getattr(dlpack, name)
    assert ctypes.sizeof(struct) == int(size)
    found = {field: str(getattr(struct, field).offset) for field in fields[::2]}
    assert found == dict(zip(fields[::2], fields[1::2], strict=True))


@pytest.fixture(scope="module")
def header() -> str:
    """dlpack.h itself, as TVM-FFI carries it."""
    tvm_ffi = pytest.importorskip("tvm_ffi")
    found = [*Path(tvm_ffi.__file__).parent.rglob("dlpack.h")]
    if not found:
        pytest.skip("this tvm_ffi carries no dlpack.h")
    text = found[0].read_text(encoding="utf-8")
    version = tuple(
        int(re.search(rf"#define DLPACK_{part}_VERSION (\d+)", text)[1])
        for part in ("MAJOR", "MINOR")
    )
    if version != dlpack.VERSION:
        pytest.skip(f"this tvm_ffi carries dlpack.h {version}")
    return text


@pytest.mark.parametrize("enum", [DeviceType, DataTypeCode])
def test_codes_are_those_of_the_header(header, enum):
    body = re.search(rf"enum[^{{;]*\{{([^}}]*)\}} DL{enum.__name__};", header)[1]
    codes = [int(code) for code in re.findall(r"kDL\w+ = (\d+)U?,", body)]
    later = [DeviceType.TPU, DeviceType.TPU_HOST] if enum is DeviceType else []
    assert [*codes, *later] == [*enum]


def test_flags_are_those_of_the_header(header):
    for name in ("READ_ONLY", "IS_COPIED", "IS_SUBBYTE_TYPE_PADDED"):
        shift = re.search(rf"DLPACK_FLAG_BITMASK_{name} \(1UL << (\d)UL\)", header)[1]
        assert getattr(dlpack, f"FLAG_{name}") == 1 << int(shift)


# Data types


@pytest.mark.parametrize(
    ("triple", "name", "itemsize", "packed", "padded"),
    [  # packed and padded: bytes of 7 elements
        ((0, 8, 1), "int8", 1, 7, 7),
        ((2, 32, 4), "float32x4", 16, 112, 112),
        ((4, 16, 1), "bfloat16", 2, 14, 14),
        ((5, 32, 1), "complex32", 4, 28, 28),
        ((6, 8, 1), "bool", 1, 7, 7),
        ((0, 4, 1), "int4", 1, 4, 7),
        ((1, 1, 1), "uint1", 1, 1, 7),
        ((15, 6, 1), "float6_e2m3fn", 1, 6, 7),
        ((17, 4, 1), "float4_e2m1fn", 1, 4, 7),
        ((17, 4, 3), "float4_e2m1fnx3", 2, 11, 14),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_data_types(triple, name, itemsize, packed, padded):
    dtype = DataType(*triple)
    assert dtype == triple
    assert (dtype.name, str(dtype), repr(dtype)) == (name, name, f"DataType({name!r})")
    assert dtype.itemsize == itemsize
    assert (dtype.nbytes(7), dtype.nbytes(7, padded=True)) == (packed, padded)
    assert dtype.subbyte == (packed != padded)
    tensor = ManagedTensor.adopt(4096, (7,), dtype, owner=None)
    assert tensor.nbytes == packed
    assert ManagedTensor.adopt(4096, (7,), dtype, owner=None, padded=True).nbytes == padded


def test_names_are_unique_and_found():
    assert len(BY_NAME) == sum(map(len, LEGAL_BITS.values()))
    for name, dtype in BY_NAME.items():
        assert DataType.named(name) is dtype
        assert dtype.name == name


@pytest.mark.parametrize(
    "value",
    [*BY_NAME.values(), DataType(2, 32, 4), DataType(40, 8), DataType(0, 7), DataType(5, 64, 3)]
    + [Device(code, index) for code in (*DeviceType, 99) for index in (0, 3)],
)
def test_what_is_printed_can_be_evaluated_and_pickled(value):
    for again in (eval(repr(value)), pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
        assert again == value
        assert type(again) is type(value)


def test_names_make_them():
    assert DataType("float32") == (2, 32, 1)
    assert DataType("float32x4") == DataType.named("float32x4") == (2, 32, 4)
    assert Device("cuda:1") == Device("cuda", 1) == Device("gpu", id=1) == (2, 1)
    assert type(Device("cpu").type) is DeviceType
    for wrong in ("nowhere", "cuda:x", "device", "device1x", "device99:", "device99:x", "device0"):
        with pytest.raises(ValueError, match="unknown device"):
            Device(wrong)
    with pytest.raises(ValueError, match="unknown device 'cuda:1:2'"):
        Device("cuda:1", 2)


# Devices


@pytest.mark.parametrize(
    ("spec", "pair", "text"),
    [
        ("cpu", (1, 0), "cpu"),
        ("cuda", (2, 0), "cuda:0"),
        ("gpu:1", (2, 1), "cuda:1"),
        ("cuda_host:2", (3, 2), "cuda_host:2"),
        ((1, 0), (1, 0), "cpu"),
        ((1, None), (1, 0), "cpu"),  # Paddle's
        ((10, 4), (10, 4), "rocm:4"),
        ((99, 1), (99, 1), "device99:1"),
        (Device(7, 1), (7, 1), "vulkan:1"),
    ],
)
def test_devices(spec, pair, text):
    device = Device.parse(spec)
    assert type(device) is Device
    assert device == pair
    assert hash(device) == hash(pair)
    assert (str(device), repr(device)) == (text, f"Device({text!r})")
    assert Device.parse(device) is device
