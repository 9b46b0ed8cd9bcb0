"""What a consumer gets from an Array, and the errors that it gets."""

import re

import array_api_strict as strict
import jax.numpy as jnp
import numpy as np
import pytest

import arraybridge as ab
from arraybridge.dlpack import DataType, Device
from tests.support.optional import optional
from tests.support.sources import sources

torch = optional("torch")

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


ARRAYS = {
    "numpy": lambda: np.arange(3.0),
    "read-only": lambda: np.broadcast_to(1.0, (3,)),
    "torch": lambda: torch.arange(3.0),
    "jax": lambda: jnp.arange(3.0),
    "strict": lambda: strict.arange(3.0),
    "bare": lambda: np.arange(3.0).__dlpack__(max_version=(1, 0)),
}
VERSIONS = (None, (0, 8), (1, 0), (1, 3))


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("copy", [None, False, True])
def test_another_device_is_a_buffer_error(name, copy):
    x = ab.from_dlpack(ARRAYS[name]())
    for version in VERSIONS:
        for place in [(1, 1), (1, 3), (2, 0), (2, 7), (3, 0), (8, 0), (13, 0), (99, 0)]:
            with pytest.raises(ab.ConversionError, match=re.escape(f"to dl_device={place}")):
                x.__dlpack__(dl_device=place, copy=copy, max_version=version)
        for place in [(0, 0), (1, -1), (-1, 0), (1.0, 0), (2**40, 0)]:
            with pytest.raises(ab.ConversionError, match="is not a DLPack device"):
                x.__dlpack__(dl_device=place, copy=copy, max_version=version)
        for place in [5, 1.5, object(), (1,), (1, 0, 0), np.arange(2)]:
            with pytest.raises(TypeError, match="a device is"):
                x.__dlpack__(dl_device=place, copy=copy, max_version=version)


@pytest.mark.parametrize("name", ARRAYS)
def test_its_own_device(name):
    x = ab.from_dlpack(ARRAYS[name]())
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


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("copy", [None, False])
def test_a_stream_is_an_integer(name, copy):
    x = ab.from_dlpack(ARRAYS[name]())
    for version in VERSIONS:
        for stream in [object(), "1", b"1", 1.5, True, False, [1], np.int64(1), np.ones(1)]:
            with pytest.raises(TypeError, match="stream is "):
                x.__dlpack__(stream=stream, copy=copy, max_version=version)
        for stream in [0, 1, 2, -2, 12345]:
            with pytest.raises(ValueError, match=f"stream is {stream}"):
                x.__dlpack__(stream=stream, copy=copy, max_version=version)
    assert ab.inspect(x.__dlpack__(stream=-1, max_version=(1, 0))).shape == (3,)
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
]
NEGATIVE = [((1, 3), (-77, 1)), ((3, 1), (1, -1)), ((1,), (-1,)), ((0, 3), (3, -1))]


@pytest.mark.parametrize(("shape", "steps"), UNREACHED)
def test_strides_of_axes_of_one_element_stay(shape, steps):
    """As PyTorch's and NumPy's own capsules have them."""
    x = _strided(shape, steps)
    every = [x, strict.asarray(x, copy=False), torch.zeros(500).as_strided(shape, steps)]
    for native in every:
        array = ab.from_dlpack(native)
        for _ in range(3):  # the quick way, too
            for version in ((1, 0), (0, 8), None):
                told = ab.inspect(array.__dlpack__(max_version=version))
                assert (told.shape, told.strides) == (shape, steps)
        assert array.strides == ab.inspect(native).strides == steps
    if 0 not in shape:
        assert np.from_dlpack(ab.from_dlpack(x)).strides == x.strides
        assert torch.from_dlpack(ab.from_dlpack(x)).stride() == steps
    for take in (np.from_dlpack, torch.from_dlpack, jnp.from_dlpack, strict.from_dlpack):
        assert tuple(take(ab.from_dlpack(x.astype("f4"))).shape) == shape


@pytest.mark.parametrize(("shape", "steps"), [*NEGATIVE, ((2, 1, 2), (2, -9, 1))])
def test_negative_strides_that_reach_nothing_go(shape, steps):
    """PyTorch's import would abort the process."""
    x = _strided(shape, steps)
    array = ab.from_dlpack(x)
    for _ in range(3):
        for version in ((1, 0), None):
            told = ab.inspect(array.__dlpack__(max_version=version))
            assert min(told.strides) >= 0
        assert tuple(torch.from_dlpack(array).shape) == shape
        assert np.from_dlpack(array).shape == shape
