"""Tensors of the core: carried through it, described, allocated and adopted, never touched."""

import ctypes

import jax
import numpy as np
import pytest

import arraybridge as ab
from arraybridge import dlpack
from arraybridge.dlpack import DataType, Device, DeviceType, ManagedTensor
from tests.support.exporters import Exported
from tests.support.optional import optional
from tests.support.producers import Managed, capsule_name

torch = optional("torch")

# An address that no process on Linux has mapped: reading it would end the process.
NOWHERE = 0x7FFF_FFFF_F000
ADDRESSED = "cpu cuda cuda_host cuda_managed rocm rocm_host oneapi".split()
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
    seen = dlpack.peek(capsule)
    # The stride over an extent of 1 says nothing, and is put right.
    assert (seen.shape, seen.strides) == ((4, 1, 6), (-12, 12, 2))
    assert (seen.dtype, seen.device) == (dtype, device)
    if str(seen.device).partition(":")[0] in ADDRESSED:  # consumers forget the offset
        assert (seen.data, seen.byte_offset) == (NOWHERE + byte_offset, 0)
    else:  # a handle: nothing may be added to it
        assert (seen.data, seen.byte_offset) == (NOWHERE, byte_offset)
    assert seen.version == (version if versioned_out else None)
    assert managed.deleted == 0
    del capsule
    assert managed.deleted == 1


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
    assert legacy.flags == dlpack.FLAG_READ_ONLY  # it has no place for them


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


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"shape": (-1,)}, "negative extent"),
        ({"shape": (2**62,)}, "overflows"),
        ({"shape": (2, 2), "strides": (1,)}, "got 1 strides for 2 axes; expected one stride per"),
        ({"shape": (2,), "strides": (2**63,)}, "overflow"),
        ({"data": 0}, "data is NULL"),
        ({"data": -8}, "expected 64 bits"),
        ({"shape": (0,), "data": 2**64 - 1, "byte_offset": 1}, "leaves the 64-bit address space"),
        ({"data": 8, "strides": (-4,)}, "leaves the 64-bit address space"),
        ({"dtype": DataType(2, 33)}, "33 bits; expected one of 16, 32, 64, 128"),
        ({"device": Device(5)}, "unknown device type 5"),
        ({"dtype": DataType(256, 8)}, "dtype code is 256; expected 0 to 255"),
        ({"device": Device(2, -1)}, "device id is -1"),
        ({"data": 4096.0}, "ptr must be an address .int or ctypes.c_void_p., got float"),
        ({"data": np.ones(3)}, "got ndarray: .*from_dlpack for an array"),
        *(({"data": x}, "pass ctypes.addressof") for x in (ctypes.c_int(3), None, "4096", True)),
        ({"shape": (4.0,)}, r"shape must be a tuple of ints, got 4.0 in \(4.0,\)"),
        ({"shape": (True,)}, "got True"),
        ({"strides": (1.0,)}, r"strides must be a tuple of ints, got 1.0 in \(1.0,\)"),
        ({"byte_offset": 1.0}, "byte_offset is an int, got 1.0"),
        ({"dtype": "float32"}, "expected DataType and Device, got 'float32', Device"),
        ({"device": "cpu"}, "got DataType.'float32'., 'cpu'"),
    ],
)
def test_adopted_memory_is_checked(arguments, text):
    """A cache of layouts must not let 4.0 pass because 4 has."""
    given = {"data": 4096, "shape": (4,), "dtype": DataType(2, 32), "owner": None}
    ManagedTensor.adopt(**given)
    with pytest.raises((dlpack.MalformedTensorError, TypeError), match=text):
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


def test_a_managed_tensor_is_a_producer_by_the_standard():
    x = np.arange(6.0).reshape(2, 3)
    tensor = dlpack.acquire(x)
    tvm_ffi = optional("tvm_ffi")
    for consumer in (
        *(np.from_dlpack, torch.from_dlpack, jax.dlpack.from_dlpack, ab.from_dlpack),
        lambda tensor: np.from_dlpack(tvm_ffi.from_dlpack(tensor)),
    ):
        for producer in (tensor, Exported(tensor, versioned=False)):
            found = consumer(producer)
            np.testing.assert_array_equal(np.asarray(found), x)
            assert ab.inspect(found).pointer == x.ctypes.data or "jax" in type(found).__module__
    view = np.from_dlpack(tensor)
    del tensor
    view[0, 0] = 7  # the memory, which lives on
    assert x[0, 0] == 7
    assert dlpack.acquire(dlpack.acquire(x)).pointer == x.ctypes.data


@pytest.mark.parametrize(
    ("readonly", "keywords", "problem"),
    [
        (False, {"copy": True}, "copy=True requests a copy"),
        (False, {"dl_device": (2, 0)}, r"from cpu to \(2, 0\) requires a copy"),
        (True, {}, "a legacy capsule cannot mark read-only memory"),
    ],
)
def test_what_the_core_would_have_to_copy_it_refuses_and_an_array_does(readonly, keywords, problem):
    x = np.arange(3.0)
    x.flags.writeable = not readonly
    tensor = dlpack.acquire(x)
    with pytest.raises(dlpack.DLPackError, match=problem + r".*arraybridge.from_dlpack\(tensor\)"):
        tensor.__dlpack__(**keywords)
    if "dl_device" not in keywords:
        capsule = ab.from_dlpack(tensor).__dlpack__(**keywords)
        copied = dlpack.from_capsule(capsule)
        assert copied.pointer != x.ctypes.data
    assert np.from_dlpack(tensor).flags.writeable is not readonly


def test_a_legacy_capsule_has_no_padded_elements():
    tensor = ManagedTensor.allocate((3,), DataType.named("float4_e2m1fn"), padded=True)
    with pytest.raises(dlpack.DLPackError, match="cannot mark padded elements"):
        tensor.__dlpack__()
    assert dlpack.from_capsule(tensor.__dlpack__(max_version=(1, 0))).padded


@pytest.mark.parametrize("own", [np.ones(4), bytearray(32)], ids=["array", "bytearray"])
def test_adopted_memory_is_read_only_where_its_owner_says_so(own):
    x = np.frombuffer(own)
    assert not ManagedTensor.adopt(
        x.ctypes.data, (4,), DataType.named("float64"), owner=own
    ).readonly
    x.flags.writeable = False
    for owner in (x, memoryview(own).toreadonly()):
        tensor = ManagedTensor.adopt(x.ctypes.data, (4,), DataType.named("float64"), owner=owner)
        assert tensor.readonly
        with pytest.raises(ValueError, match="read-only"):
            ab.convert(tensor, "numpy")[0] = 7
