"""Array: what it carries, shows and exports, as the real consumers read it; the errors."""

import ctypes
import re

import array_api_strict as strict
import jax
import jax.numpy as jnp
import numpy as np
import pyarrow
import pytest
import tvm_ffi

import arraybridge as ab
from arraybridge.dlpack import DataType, Device, ManagedTensor, from_capsule, peek
from arraybridge.layout import relaxed
from tests.support.optional import optional
from tests.support.sources import sources

torch = optional("torch")


def image():
    return np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def bare(x, **changes):
    """An Array that only speaks DLPack, on the memory of a NumPy array."""
    arguments = {"device": "cpu", "owner": x, "strides": [s // x.itemsize for s in x.strides]}
    return ab.from_pointer(x.ctypes.data, x.shape, x.dtype, **(arguments | changes))


MAKERS = {
    "numpy": image,
    "torch": lambda: torch.from_numpy(image()),
    "jax": lambda: jnp.asarray(image()),
    "bare": lambda: bare(image()),
    "capsule": lambda: image().__dlpack__(max_version=(1, 0)),
    "tvm_ffi": lambda: tvm_ffi.from_dlpack(image()),
    "strict": lambda: strict.asarray(image()),
    "read-only": lambda: np.broadcast_to(image(), (1, 2, 3, 4))[0],
}


READ_ONLY = ("jax", "read-only")


@pytest.mark.parametrize("kind", MAKERS)
class TestEverySource:
    def test_attributes(self, kind):
        x = ab.from_dlpack(MAKERS[kind]())
        assert isinstance(x, ab.Array)
        assert x.shape == (2, 3, 4)
        assert x.strides == (12, 4, 1)
        assert (x.ndim, x.size, x.nbytes) == (3, 24, 96)
        assert x.info.dtype == ab.DataType.named("float32")
        assert x.device == (1, 0)
        assert x.readonly == (kind in READ_ONLY)
        assert "float32 (2, 3, 4) on cpu" in repr(x)
        assert (x.native is None) == (kind in ("bare", "capsule"))

    def test_every_consumer_reads_it(self, kind):
        consumers = (np, torch, jax.dlpack, tvm_ffi, pyarrow.Tensor)
        takes = [library.from_dlpack for library in consumers]
        for consume in (*takes, np.asarray, lambda x: x.to("torch")):
            x = ab.from_dlpack(MAKERS[kind]())
            if kind in READ_ONLY and consume is tvm_ffi.from_dlpack:
                continue  # it refuses read-only tensors
            y = consume(x)
            del x
            values = y.to_numpy() if isinstance(y, pyarrow.Tensor) else y
            if consume is tvm_ffi.from_dlpack:
                values = np.from_dlpack(y)
            np.testing.assert_array_equal(np.asarray(values), image())

    def test_copy_and_device(self, kind):
        x = ab.from_dlpack(MAKERS[kind]())
        for source in (x,) if x.native is None else (x, x.native):
            y = ab.from_dlpack(source, copy=True)
            assert y.info.pointer != x.info.pointer
            np.testing.assert_array_equal(np.asarray(y), image())
        assert ab.from_dlpack(x, device="cpu").info.pointer == x.info.pointer
        with pytest.raises(
            ab.ConversionError, match=r"no arrays on|cannot be moved|computes on vpi"
        ):
            ab.from_dlpack(x, device="vpi")


class TestExport:
    def test_versions(self):
        x = ab.from_dlpack(image())
        assert peek(x.__dlpack__()).version is None
        assert peek(x.__dlpack__(max_version=(0, 8))).version is None
        assert peek(x.__dlpack__(max_version=(1, 0))).version[0] == 1
        assert peek(x.__dlpack__(max_version=(9, 0))).version[0] == 1
        assert x.__dlpack_device__() == (1, 0)

    def test_a_legacy_capsule_cannot_say_read_only(self):
        source = image()
        source.flags.writeable = False
        x = ab.from_dlpack(source)
        assert from_capsule(x.__dlpack__(max_version=(1, 0))).readonly
        legacy = from_capsule(x.__dlpack__())
        assert legacy.pointer != source.ctypes.data
        with pytest.raises(BufferError, match="max_version"):
            x.__dlpack__(copy=False)
        writable = torch.from_dlpack(x)  # torch asks for 1.x and forgets the flag: its own promise
        assert writable.shape == (2, 3, 4)

    def test_a_stream_of_a_gpu(self):
        gpu = ab.from_pointer(0x1000, (2,), "float32", device="cuda")
        with pytest.raises(ValueError, match="ambiguous"):
            gpu.__dlpack__(stream=0)
        gpu.__dlpack__(stream=1)

    def test_pending_and_refused(self):
        z = ab.from_dlpack(torch.tensor([1 + 2j]).conj())
        assert np.from_dlpack(z).tolist() == [1 - 2j]
        with pytest.raises(BufferError, match="conj"):
            z.__dlpack__(copy=False)
        tracked = ab.from_dlpack(torch.ones(2, requires_grad=True))
        assert tracked.shape == (2,)
        with pytest.raises(BufferError, match="detach"):
            tracked.__dlpack__()
        with pytest.raises(BufferError, match="structured"):
            ab.from_dlpack(np.zeros(2, "f4,f4"))
        with pytest.raises(BufferError, match="to_dense"):
            ab.from_dlpack(torch.eye(2).to_sparse())
        with pytest.raises(TypeError, match="not an array"):
            ab.from_dlpack([1, 2])


class TestHostProtocols:
    def test_there_is_no_array_interface(self):
        """NumPy would ask it before ``__array__``; it has no word for bfloat16."""
        assert not hasattr(bare(image()), "__array_interface__")

    def test_what_is_elsewhere_is_not_fetched(self):
        gpu = ab.from_pointer(0x1000, (2,), "float32", device="cuda:1")
        for read in (np.asarray, bytes):
            with pytest.raises(BufferError, match="cuda:1"):
                read(gpu)


def test_sub_byte_types():
    packed = np.array([0x21, 0x43], np.uint8)
    x = ab.from_pointer(packed.ctypes.data, (4,), "float4_e2m1fn", device="cpu", owner=packed)
    assert x.nbytes == 2
    assert x.info.dtype_name == "float4_e2m1fn (packed)"
    copied = from_capsule(x.__dlpack__(copy=True, max_version=(1, 3)))
    assert ctypes.string_at(copied.pointer, 2) == b"\x21\x43"
    with pytest.raises(ab.ConversionError, match="packed"):
        ab.convert(x, "numpy")


def test_an_array_is_not_made_by_hand():
    with pytest.raises(TypeError):
        ab.Array()
    with pytest.raises(TypeError):
        ManagedTensor()


@pytest.mark.parametrize("kind", ["arrow", "pointer", "legacy"])
def test_what_is_written_to_read_only_memory_is_in_a_copy(kind):
    host = np.arange(1.0, 5.0)
    make = {
        "arrow": lambda: pytest.importorskip("pyarrow").array(host),
        "pointer": lambda: ab.from_pointer(
            host.ctypes.data, (4,), "float64", device="cpu", owner=host, readonly=True
        ),
        "legacy": lambda: host.__dlpack__(),
    }[kind]
    x = y = ab.from_dlpack(make())
    x[0] = 9
    x[1:] = x[:-1]
    assert np.asarray(x).tolist() == [9, 9, 2, 3]
    assert not x.readonly
    x += 1
    assert np.asarray(y).tolist() == np.asarray(x).tolist() == [10, 10, 3, 4]
    z = ab.from_dlpack(make())
    w = z
    w += 1
    assert np.asarray(z).tolist() == [2, 3, 4, 5]
    assert host.tolist() == [1, 2, 3, 4]


QUIET = pytest.mark.filterwarnings(
    "ignore::PendingDeprecationWarning",
    "ignore:.*complex32",
    "ignore:ComplexHalf",
    "ignore:future versions will not create",
)


def arrays():
    """Arrays over everything odd that one can be made of, by a name."""
    yield from ((name, x) for name, x in sources().items() if isinstance(x, ab.Array))
    deleted = ab.from_dlpack(jnp.ones(5) + 1)
    deleted.native.delete()
    yield "jax deleted", deleted
    yield "bare", ab.from_dlpack(np.ones(3).__dlpack__())
    yield "of Arrow", ab.from_dlpack(pytest.importorskip("pyarrow").array([1, 2]))


def seen(call, pointer):
    """What NumPy sees of an array, and whether it is the memory at `pointer`."""
    try:
        y = call()
    except ab.ConversionError:
        return None
    shared = y.size > 0 and y.ctypes.data == pointer
    return type(y), y.dtype, y.shape, y.flags.writeable, shared, y.strides if shared else None


@QUIET
@pytest.mark.parametrize("copy", [None, False, True])
def test_as_numpy_is_what_convert_gives(copy):
    for name, x in arrays():
        try:
            pointer = x.info.pointer
        except ab.ConversionError:
            pointer = None
        expected = seen(lambda x=x: ab.convert(x, "numpy", copy=copy), pointer)
        for _ in range(2):
            assert seen(lambda x=x: x.__array__(copy=copy), pointer) == expected, name
        if expected is not None:
            assert seen(lambda x=x: np.asarray(x, copy=copy), pointer) == expected, name


def test_numpys_own_array_is_given():
    x = np.arange(3.0)
    assert np.asarray(ab.from_dlpack(x)) is x


def test_dtypes_and_devices_say_what_they_are():
    assert DataType("bfloat16").__dlpack_data_type__() == (4, 16, 1)
    assert Device("cuda:1").__dlpack_device__() == (2, 1)
    said = (*DataType("float32x4").__dlpack_data_type__(), *Device("cpu").__dlpack_device__())
    assert {type(part) for part in said} == {int}
    device = pytest.importorskip("tvm_ffi").device("cuda", 1)
    assert (device.dlpack_device_type(), device.index) == Device("cuda:1").__dlpack_device__()


VERSIONS = (None, (0, 8), (1, 0), (1, 3))


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("copy", [None, False, True])
def test_another_device_is_a_buffer_error(name, copy):
    if name == "jax" and copy is False:
        pytest.skip("legacy consumers get JAX's own capsule")
    x = ab.from_dlpack(MAKERS[name]())
    for version in VERSIONS:
        for place in [(1, 1), (1, 3), (2, 0), (2, 7), (3, 0), (8, 0), (13, 0), (99, 0)]:
            with pytest.raises(ab.ConversionError, match=re.escape(f"to dl_device={place}")):
                x.__dlpack__(dl_device=place, copy=copy, max_version=version)
        for place in [(0, 0), (1, -1), (-1, 0), (1.0, 0), (2**40, 0)]:
            with pytest.raises(ab.ConversionError, match="is not a DLPack device"):
                x.__dlpack__(dl_device=place, copy=copy, max_version=version)
        for place in [5, 1.5, object(), (1,), (1, 0, 0), np.arange(2)]:
            with pytest.raises(TypeError, match="device must be"):
                x.__dlpack__(dl_device=place, copy=copy, max_version=version)


@pytest.mark.parametrize("name", MAKERS)
def test_its_own_device(name):
    x = ab.from_dlpack(MAKERS[name]())
    for place in [(1, 0), [1, 0], ab.Device("cpu"), (ab.DeviceType.CPU, 0)]:
        for version in VERSIONS:
            capsule = x.__dlpack__(dl_device=place, max_version=version)
            assert ab.inspect(capsule).device == (1, 0)


def test_one_of_several_cpu_devices():
    device = strict.Device("device1")
    x = ab.from_dlpack(strict.asarray(np.arange(3.0), device=device))
    own = x.device
    assert ab.inspect(x.__dlpack__(dl_device=own, max_version=(1, 0))).device == own
    assert ab.inspect(x.__dlpack__(dl_device=(1, 0), max_version=(1, 0))).device == (1, 0)
    with pytest.raises(ab.ConversionError, match="only to its own device and the CPU"):
        x.__dlpack__(dl_device=(own[0], own[1] + 1))


def test_host_memory_of_another_name_is_relabelled():
    x = np.arange(3.0)
    pinned = ab.from_pointer(x.ctypes.data, (3,), "float64", device="cuda_host:0", owner=x)
    told = ab.inspect(pinned.__dlpack__(dl_device=(1, 0), max_version=(1, 0), copy=False))
    assert (told.device, told.pointer, told.readonly) == ((1, 0), x.ctypes.data, False)
    assert ab.inspect(pinned.__dlpack__(max_version=(1, 0))).device == pinned.device == (3, 0)
    assert ab.convert(pinned, "torch").data_ptr() == x.ctypes.data
    with pytest.raises(ab.ConversionError):
        pinned.__dlpack__(dl_device=(3, 1))


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("copy", [None, False])
def test_a_stream_is_an_integer(name, copy):
    if name == "jax" and copy is False:
        pytest.skip("legacy consumers get JAX's own capsule")
    x = ab.from_dlpack(MAKERS[name]())
    for version in VERSIONS:
        for stream in [object(), "1", b"1", 1.5, True, False, [1], np.int64(1), np.ones(1)]:
            with pytest.raises(TypeError, match="stream is "):
                x.__dlpack__(stream=stream, copy=copy, max_version=version)
        for stream in [0, 1, 2, -2, 12345]:
            with pytest.raises(ValueError, match=f"stream is {stream}"):
                x.__dlpack__(stream=stream, copy=copy, max_version=version)
    assert ab.inspect(x.__dlpack__(stream=-1, max_version=(1, 0))).shape == (2, 3, 4)
    for version in [1, 1.0, "ab", object(), ()]:
        with pytest.raises(TypeError, match="max_version is "):
            x.__dlpack__(max_version=version, copy=copy)
    tensor = ab.dlpack.ManagedTensor.allocate((3,), ab.dlpack.DataType("float32"))
    with pytest.raises(TypeError, match="stream is 'a'"):
        tensor.__dlpack__(stream="a")


def _strided(shape, steps):
    base = np.zeros(1000)
    return np.lib.stride_tricks.as_strided(base[500:], shape, [8 * step for step in steps])


UNREACHED = [  # shapes, and the steps along axes of one element or none
    *(((1, 3), (77, 1)), ((3, 1), (1, 77)), ((1,), (9,)), ((3, 1), (1, 0))),
    *(((2, 1, 5), (5, 100, 1)), ((1, 1, 5), (20, 5, 1)), ((1, 1), (3, 5))),
    *(((5, 1, 2), (1, 100, 5)), ((3, 1), (2, 7)), ((0, 3), (7, 9))),
    *(((1, 3), (-77, 1)), ((3, 1), (1, -1)), ((1,), (-1,)), ((0, 3), (3, -1))),
    ((2, 1, 2), (2, -9, 1)),
]


@pytest.mark.parametrize(("shape", "steps"), UNREACHED)
def test_strides_that_reach_no_element_are_those_of_a_dense_array(shape, steps):
    """Consumers compare them, and PyTorch's import aborts the process on a negative one."""
    every = [x := _strided(shape, steps)]
    if min(steps) >= 0:
        every += [strict.asarray(x, copy=False), torch.zeros(500).as_strided(shape, steps)]
    for native in every:
        array = ab.from_dlpack(native)
        for version in ((1, 0), (0, 8), None):
            told = ab.inspect(array.__dlpack__(max_version=version))
            assert (told.shape, told.strides) == (shape, relaxed(shape, steps))
    for take in (np.from_dlpack, torch.from_dlpack, jnp.from_dlpack, strict.from_dlpack):
        assert tuple(take(ab.from_dlpack(x.astype("f4"))).shape) == shape
