"""The structs, data types and devices of dlpack.h 1.3, and their passage through the core."""

from __future__ import annotations

import copy
import ctypes
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

from arraybridge import dlpack
from arraybridge.dlpack import DataType, DataTypeCode, Device, DeviceType, ManagedTensor
from arraybridge.dlpack.dtypes import BY_NAME, LEGAL_BITS

from .support.producers import Managed, capsule_name

SIZES = {
    "DLPackVersion": 8,
    "DLDevice": 8,
    "DLDataType": 4,
    "DLTensor": 48,
    "DLManagedTensor": 64,
    "DLManagedTensorVersioned": 80,
    "DLPackExchangeAPI": 56,
}
OFFSETS = {
    ("DLTensor", "data"): 0,
    ("DLTensor", "device"): 8,
    ("DLTensor", "ndim"): 16,
    ("DLTensor", "dtype"): 20,
    ("DLTensor", "shape"): 24,
    ("DLTensor", "strides"): 32,
    ("DLTensor", "byte_offset"): 40,
    ("DLDataType", "bits"): 1,
    ("DLDataType", "lanes"): 2,
    ("DLManagedTensor", "manager_ctx"): 48,
    ("DLManagedTensor", "deleter"): 56,
    ("DLManagedTensorVersioned", "manager_ctx"): 8,
    ("DLManagedTensorVersioned", "deleter"): 16,
    ("DLManagedTensorVersioned", "flags"): 24,
    ("DLManagedTensorVersioned", "dl_tensor"): 32,
    ("DLPackExchangeAPI", "managed_tensor_allocator"): 16,
    ("DLPackExchangeAPI", "managed_tensor_from_py_object_no_sync"): 24,
    ("DLPackExchangeAPI", "managed_tensor_to_py_object_no_sync"): 32,
    ("DLPackExchangeAPI", "dltensor_from_py_object_no_sync"): 40,
    ("DLPackExchangeAPI", "current_work_stream"): 48,
}


@pytest.mark.parametrize(("name", "size"), SIZES.items())
def test_sizes(name, size):
    assert ctypes.sizeof(getattr(dlpack, name)) == size


@pytest.mark.parametrize(("field", "offset"), OFFSETS.items(), ids=map(".".join, OFFSETS))
def test_offsets(field, offset):
    struct, name = field
    assert getattr(getattr(dlpack, struct), name).offset == offset


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
    assert codes == [int(member) for member in enum]


def test_flags_are_those_of_the_header(header):
    for name in ("READ_ONLY", "IS_COPIED", "IS_SUBBYTE_TYPE_PADDED"):
        shift = re.search(rf"DLPACK_FLAG_BITMASK_{name} \(1UL << (\d)UL\)", header)[1]
        assert getattr(dlpack, f"FLAG_{name}") == 1 << int(shift)


# Data types


@pytest.mark.parametrize(
    ("triple", "name", "itemsize", "packed", "padded"),
    [  # packed and padded: bytes of 7 elements
        ((0, 8, 1), "int8", 1, 7, 7),
        ((1, 64, 1), "uint64", 8, 56, 56),
        ((2, 16, 1), "float16", 2, 14, 14),
        ((2, 32, 4), "float32x4", 16, 112, 112),
        ((4, 16, 1), "bfloat16", 2, 14, 14),
        ((5, 32, 1), "complex32", 4, 28, 28),
        ((5, 128, 1), "complex128", 16, 112, 112),
        ((6, 8, 1), "bool", 1, 7, 7),
        ((3, 64, 1), "handle64", 8, 56, 56),
        ((10, 8, 1), "float8_e4m3fn", 1, 7, 7),
        ((0, 4, 1), "int4", 1, 4, 7),
        ((1, 2, 1), "uint2", 1, 2, 7),
        ((1, 1, 1), "uint1", 1, 1, 7),
        ((15, 6, 1), "float6_e2m3fn", 1, 6, 7),
        ((17, 4, 1), "float4_e2m1fn", 1, 4, 7),
        ((17, 4, 2), "float4_e2m1fnx2", 1, 7, 7),
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


def test_every_code_has_a_name():
    assert {dtype.code for dtype in BY_NAME.values()} == set(DataTypeCode)


def test_unknown_name():
    for name in ("float33", "complexx4", "float32x0", "float32x1", "float32x65536", "x4"):
        with pytest.raises(ValueError, match=f"no data type named '{name}'; it has bfloat16"):
            DataType(name)
    with pytest.raises(TypeError, match=r"DataType takes \(code, bits, lanes=1\) or a name, got 2"):
        DataType(2)


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
        ("CPU", (1, 0), "cpu"),
        ("cuda", (2, 0), "cuda:0"),
        ("gpu:1", (2, 1), "cuda:1"),
        ("cuda_host:2", (3, 2), "cuda_host:2"),
        ("oneapi:3", (14, 3), "oneapi:3"),
        ("trainium", (18, 0), "trainium:0"),
        ((1, 0), (1, 0), "cpu"),
        ((1, None), (1, 0), "cpu"),  # Paddle's
        ((10, 4), (10, 4), "rocm:4"),
        ((1, 3), (1, 3), "cpu:3"),
        ((99, 1), (99, 1), "device99:1"),
        (DeviceType.METAL, (8, 0), "metal:0"),
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


@pytest.mark.parametrize(
    ("spec", "error", "text"),
    [
        ("cud", ValueError, "unknown device 'cud'.*cuda_host"),
        ("cuda:", ValueError, "unknown device 'cuda:'"),
        ("cuda:-1", ValueError, "unknown device 'cuda:-1'"),
        ("cuda:one", ValueError, "unknown device 'cuda:one'"),
        ("cuda:١", ValueError, "unknown device"),
        ("", ValueError, "unknown device ''"),
        ((0, 0), ValueError, r"\(0, 0\) is no DLPack device"),
        ((2, -1), ValueError, r"\(2, -1\) is no DLPack device"),
        ((2, 2**31), ValueError, "is no DLPack device"),
        ((2.5, 0), ValueError, "is no DLPack device"),
        (("1", "0"), ValueError, "is no DLPack device"),
        ((1, 2, 3), TypeError, "a device is an arraybridge.Device, a DLPack pair"),
        (2, TypeError, "got 2 of type int"),
        (None, TypeError, "got None of type NoneType"),
    ],
)
def test_bad_devices(spec, error, text):
    with pytest.raises(error, match=text):
        Device.parse(spec)


def test_host_devices_are_addressable():
    for code in DeviceType:
        device = Device(code)
        assert device.addressable or not device.host
    assert {code.name for code in DeviceType if Device(code).host} == {
        "CPU",
        "CUDA_HOST",
        "ROCM_HOST",
        "CUDA_MANAGED",
    }


# Tensors on devices that are not here: carried and described, never touched

# An address that no process on Linux has mapped: reading it would end the process.
NOWHERE = 0x7FFF_FFFF_F000
LATER = [((40, 1), (18, 9, 1), (1, 9))]  # codes of a minor version to come
HERE = [((int(code), 3), (2, 32, 1), (1, 3)) for code in DeviceType]


@pytest.mark.parametrize("versioned_out", [True, False], ids=["versioned", "legacy"])
@pytest.mark.parametrize(("device", "dtype", "version"), HERE + LATER)
@pytest.mark.parametrize("byte_offset", [0, 64])
def test_every_device_passes_through(device, dtype, version, byte_offset, versioned_out):
    managed = Managed(
        shape=(4, 1, 6),
        strides=(-12, 77, 2),
        dtype=dtype,
        device=device,
        data=NOWHERE,
        byte_offset=byte_offset,
        version=version,
    )
    tensor = dlpack.from_capsule(managed.capsule())
    described = (tensor.shape, tensor.strides, tensor.dtype, tensor.device, tensor.version)
    assert described == ((4, 1, 6), (-12, 77, 2), dtype, device, version)
    assert (tensor.data, tensor.byte_offset) == (NOWHERE, byte_offset)
    assert f"on {tensor.device}" in repr(tensor)

    capsule = dlpack.to_capsule(tensor, versioned=versioned_out)
    assert capsule_name(capsule) == (b"dltensor_versioned" if versioned_out else b"dltensor")
    del tensor
    if version > dlpack.VERSION and not versioned_out:
        # The legacy struct cannot say of which version its codes are.
        with pytest.raises(dlpack.MalformedTensorError, match="unknown device type 40"):
            dlpack.peek(capsule)
    else:
        seen = dlpack.peek(capsule)
        # The stride over an extent of 1 says nothing, and is put right.
        assert (seen.shape, seen.strides) == ((4, 1, 6), (-12, 12, 2))
        assert (seen.dtype, seen.device) == (dtype, device)
        if seen.device.addressable:  # consumers forget the offset, so it is folded in
            assert (seen.data, seen.byte_offset) == (NOWHERE + byte_offset, 0)
        else:  # a handle: nothing may be added to it
            assert (seen.data, seen.byte_offset) == (NOWHERE, byte_offset)
        assert seen.version == (version if versioned_out else None)
    assert managed.deleted == 0
    del capsule
    assert managed.deleted == 1


@pytest.mark.parametrize("name", sorted(BY_NAME))
@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("versioned", [True, False], ids=["versioned", "legacy"])
def test_every_data_type_passes_through(name, lanes, versioned):
    code, bits, _ = BY_NAME[name]
    managed = Managed(versioned, dtype=(code, bits, lanes))
    tensor = dlpack.from_capsule(managed.capsule())
    assert tensor.dtype == (code, bits, lanes)
    again = dlpack.from_capsule(dlpack.to_capsule(tensor, versioned=versioned))
    assert again.dtype == (code, bits, lanes)


@pytest.mark.parametrize("flags", range(8))
def test_flags_pass_through(flags):
    tensor = dlpack.from_capsule(Managed(flags=flags).capsule())
    assert (tensor.readonly, tensor.copied, tensor.padded) == (
        bool(flags & dlpack.FLAG_READ_ONLY),
        bool(flags & dlpack.FLAG_IS_COPIED),
        bool(flags & dlpack.FLAG_IS_SUBBYTE_TYPE_PADDED),
    )
    assert tensor.flags == flags
    again = dlpack.from_capsule(dlpack.to_capsule(tensor))
    assert again.flags == flags
    legacy = dlpack.from_capsule(dlpack.to_capsule(tensor, versioned=False))
    assert legacy.flags == 0  # it has no place for them


def test_unknown_flags_are_ignored():
    tensor = dlpack.from_capsule(Managed(flags=2**63 | 1).capsule())
    assert tensor.flags == dlpack.FLAG_READ_ONLY


@pytest.mark.parametrize("ndim", [0, 1, 2, 31, 64])
@pytest.mark.parametrize("versioned", [True, False], ids=["versioned", "legacy"])
def test_every_rank_passes_through(ndim, versioned):
    shape = (2, 3)[:ndim] + (1,) * (ndim - 2)
    tensor = dlpack.from_capsule(Managed(versioned, shape=shape).capsule())
    assert tensor.shape == shape
    again = dlpack.from_capsule(dlpack.to_capsule(tensor, versioned=versioned))
    assert (again.ndim, again.shape, again.strides) == (ndim, shape, dlpack.c_strides(shape))
    assert again.size == {0: 1, 1: 2}.get(ndim, 6)


@pytest.mark.parametrize(
    ("shape", "strides", "exported"),
    [
        ((2, 3), (3, 1), (3, 1)),
        ((2, 3), (1, 2), (1, 2)),
        ((1, 3), (99, 1), (3, 1)),
        ((3, 1), (1, 0), (1, 1)),
        ((1, 1), (0, -5), (1, 1)),
        ((0, 3), (7, 7), (3, 1)),
        ((3, 0), (0, 0), (1, 1)),
        ((4, 1, 3), (6, 0, 2), (6, 6, 2)),
        ((1, 4), (0, 2), (8, 2)),
        ((1, 4), (5, -2), (8, -2)),
        ((3, 2), (0, 1), (0, 1)),
    ],
)
def test_strides_that_say_nothing_are_put_right(shape, strides, exported):
    tensor = dlpack.from_capsule(Managed(shape=shape, strides=strides).capsule())
    assert tensor.strides == strides
    assert dlpack.peek(dlpack.to_capsule(tensor)).strides == exported


def test_null_strides_are_c_order():
    assert dlpack.from_capsule(Managed(shape=(2, 3, 4)).capsule()).strides == (12, 4, 1)


def test_raw_tensor_is_borrowed():
    managed = Managed(shape=(2, 2), strides=(1, 2), byte_offset=8)
    tensor = dlpack.Tensor(ctypes.addressof(managed.struct.dl_tensor))
    assert (tensor.shape, tensor.strides, tensor.byte_offset) == ((2, 2), (1, 2), 8)
    assert tensor.pointer == ctypes.addressof(managed.memory) + 8
    assert tensor.version is None
    del tensor
    assert managed.deleted == 0


def test_owning_tensors_are_not_made_by_hand():
    with pytest.raises(TypeError, match=r"use ManagedTensor\.adopt"):
        ManagedTensor()


def test_allocated_blocks_are_aligned_and_counted_as_copies():
    blocks = [
        ManagedTensor.allocate((n, 3), DataType.named(name), padded=padded)
        for n in (0, 1, 7)
        for name in ("uint8", "complex128", "int4")
        for padded in (False, True)
    ]
    for block in blocks:
        assert block.data % dlpack.ALIGNMENT == 0
        assert (block.copied, block.readonly) == (True, False)
        ctypes.memset(block.data, 0xFF, block.nbytes)


def test_a_block_moves_out_whole_once_nobody_else_has_it():
    block = ManagedTensor.allocate((4,), DataType.named("int32"))
    assert block.linear
    exported = dlpack.to_capsule(block)
    assert not block.linear  # the capsule refers to it
    moved = dlpack.from_capsule(dlpack.to_capsule(block, move=True))
    assert block.owner is not None  # so it was shared, not moved
    del exported, moved
    assert block.linear
    data = block.data
    moved = dlpack.from_capsule(dlpack.to_capsule(block, move=True))
    assert block.owner is None
    assert moved.data == data
    ctypes.memset(moved.data, 0xFF, moved.nbytes)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"shape": (-1,)}, "negative extent"),
        ({"shape": (2**62,)}, "overflows"),
        ({"shape": (2,) * 65}, "ndim is 65"),
        ({"shape": (2, 2), "strides": (1,)}, "got 1 strides for 2 axes; expected one stride per"),
        ({"shape": (2,), "strides": (1, 1)}, "got 2 strides for 1 axis; expected one stride per"),
        ({"shape": (2,), "strides": (2**63,)}, "overflow"),
        ({"shape": (2,), "dtype": DataType(1, 1), "strides": (2**64,)}, "overflow"),
        ({"data": 0}, "data is NULL"),
        ({"data": -8}, "expected 64 bits"),
        ({"byte_offset": -8}, "expected 64 bits"),
        ({"shape": (0,), "byte_offset": 2**63}, "expected 64 bits"),
        ({"shape": (0,), "data": 2**64 - 1, "byte_offset": 1}, "leaves the 64-bit address space"),
        ({"data": 8, "strides": (-4,)}, "leaves the 64-bit address space"),
        ({"dtype": DataType(2, 33)}, "33 bits; expected one of 16, 32, 64, 128"),
        ({"dtype": DataType(2, 32, 0)}, "lanes=0"),
        ({"dtype": DataType(2, 32, 2**16)}, "lanes=65536"),
        ({"device": Device(40)}, "unknown device type 40"),
        ({"device": Device(2, -1)}, "device id is -1"),
        ({"device": Device(2, 2**31)}, "device id is 2147483648"),
    ],
)
def test_adopted_memory_is_checked(arguments, text):
    given = {"data": 4096, "shape": (4,), "dtype": DataType(2, 32), "owner": None} | arguments
    with pytest.raises(dlpack.MalformedTensorError, match=text):
        ManagedTensor.adopt(**given)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"data": 4096.0}, "ptr is an address .int or ctypes.c_void_p., got float"),
        ({"data": "4096"}, "got str"),
        ({"data": None}, "got NoneType"),
        ({"data": np.ones(3)}, "got ndarray: for an array call from_dlpack"),
        ({"shape": (3.5,)}, r"shape is a tuple of ints, got 3.5 in \(3.5,\)"),
        ({"shape": (4.0,)}, r"shape is a tuple of ints, got 4.0 in \(4.0,\)"),
        ({"shape": (True,)}, "got True"),
        ({"shape": "4"}, "got '4' in '4'"),
        ({"shape": None}, "shape is a tuple of ints, got None"),
        ({"strides": (1.0,)}, r"strides is a tuple of ints, got 1.0 in \(1.0,\)"),
        ({"byte_offset": 1.0}, "byte_offset is an int, got 1.0"),
    ],
)
def test_numbers_of_adopted_memory_are_integers(arguments, text):
    """A cache of layouts must not let 4.0 pass because 4 has."""
    given = {"data": 4096, "shape": (4,), "dtype": DataType(2, 32), "owner": None}
    ManagedTensor.adopt(**given)
    with pytest.raises(TypeError, match=text):
        ManagedTensor.adopt(**given | arguments)


def test_integers_of_other_kinds_become_ints():
    pointer = ctypes.c_void_p(4096)
    shapes = ([np.int64(2), 3], np.array([2, 3]), (2, 3))
    for shape in shapes:
        tensor = ManagedTensor.adopt(
            pointer,
            shape,
            DataType(2, 32),
            owner=None,
            strides=np.array([3, 1]),
            byte_offset=np.int8(4),
        )
        assert (tensor.pointer, tensor.shape, tensor.strides) == (4100, (2, 3), (3, 1))
        assert {int} == {
            *map(type, (tensor.data, tensor.byte_offset, *tensor.shape, *tensor.strides))
        }
    assert ManagedTensor.adopt(np.int64(4096), 3, DataType(2, 32), owner=None).shape == (3,)
