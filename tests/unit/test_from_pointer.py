"""from_pointer: arguments are checked, also against the owner's buffer; who keeps what alive."""

import ctypes
import gc
import mmap
import weakref
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arraybridge as ab
from tests.support.optional import optional

torch = optional("torch")

SIZE = 64
OWNERS = {
    "bytes": lambda: bytes(SIZE),
    "mmap": lambda: mmap.mmap(-1, SIZE),
    "ctypes": lambda: (ctypes.c_double * 8)(),
    "numpy": lambda: np.zeros(8),
    "numpy, a view": lambda: np.frombuffer(bytearray(2 * SIZE), "f4")[2:18],
}


def pointed(owner, ptr, shape, dtype="uint8", **changes):
    return ab.from_pointer(ptr, shape, dtype, **{"device": "cpu", "owner": owner, **changes})


@pytest.mark.parametrize("make", OWNERS.values(), ids=list(OWNERS))
def test_nothing_leaves_the_buffer_of_an_owner(make):
    owner = make()
    low = np.frombuffer(owner, "u1").ctypes.data
    assert pointed(owner, low, (SIZE,)).shape == (SIZE,)
    assert pointed(owner, low + SIZE - 8, (8,), "float64", strides=-1).shape == (8,)
    for shape, changes, needs in (
        ((SIZE + 1,), {}, "needs 65 bytes, 0 to 65"),
        ((4, 16), {"strides": (64, 4)}, "needs 253 bytes"),  # of bytes, for one
        ((2,), {"strides": -1}, "needs 2 bytes, -1 to 1"),
        ((4,), {"byte_offset": SIZE - 2}, "needs 4 bytes, 62 to 66"),
    ):
        message = rf"{needs}.* of its owner's memory; the \w+ has {SIZE}"
        with pytest.raises(ValueError, match=message):
            pointed(owner, low, shape, **changes)


def test_an_owner_need_not_be_where_the_memory_is():
    memory, header = np.arange(8.0), bytearray(16)
    x = pointed(header, memory.ctypes.data, (8,), "float64")
    np.testing.assert_array_equal(np.asarray(x), memory)
    header.append(0)  # its own memory is not held
    gpu = pointed(bytearray(4), 0x7F0000000000, (1 << 20,), device="cuda")
    assert gpu.size == 1 << 20
    for owner in (object(), {}, torch.Tensor, memory.__dlpack__(), torch.ones(2)):
        assert pointed(owner, memory.ctypes.data, (8,), "float64").size == 8


@given(
    st.lists(st.integers(0, 5), max_size=3),
    st.lists(st.integers(-6, 6), min_size=3, max_size=3),
    st.integers(0, 40),
    st.integers(0, 24),
    st.sampled_from(["uint8", "int16", "float64"]),
)
def test_taken_is_what_lies_within_and_no_more(shape, strides, begin, offset, dtype):
    owner = np.zeros(40, "u1")
    itemsize, strides = np.dtype(dtype).itemsize, tuple(strides[: len(shape)])
    places = [sum(i * s for i, s in zip(at, strides, strict=True)) for at in np.ndindex(*shape)]
    first = min(places, default=0) * itemsize + begin + offset
    end = (max(places, default=-1) + 1) * itemsize + begin + offset
    fits = not places or first >= 40 or end <= 0 or (first >= 0 and end <= 40)
    arguments = owner, owner.ctypes.data + begin, tuple(shape), dtype
    if fits:
        x = pointed(*arguments, strides=strides, byte_offset=offset)
        assert x.shape == tuple(shape)
    else:
        with pytest.raises(ValueError, match=f"needs {end - first} bytes"):
            pointed(*arguments, strides=strides, byte_offset=offset)


def test_the_buffer_is_held_as_long_as_what_was_made_of_it():
    owner = bytearray(8)
    x = pointed(owner, ctypes.addressof(ctypes.c_char.from_buffer(owner)), (8,))
    view = np.from_dlpack(x)
    del x
    gc.collect()
    with pytest.raises(BufferError):
        owner.extend(b"more, which moves it")
    del view
    gc.collect()
    owner.extend(b"more")
    memory = mmap.mmap(-1, 64)
    x = pointed(memory, np.frombuffer(memory, "u1").ctypes.data, (8,))
    with pytest.raises(BufferError):
        memory.close()
    del x
    memory.close()


def test_an_owner_and_a_deleter_go_with_the_last_view():
    class Owner(bytearray):
        pass

    owner, released = Owner(8), []
    gone = weakref.ref(owner)
    address = ctypes.addressof(ctypes.c_char.from_buffer(owner))
    x = pointed(owner, address, (8,), deleter=released.append)
    view = np.from_dlpack(x)
    del x, owner
    assert gone() is not None
    assert not released
    del view
    gc.collect()
    assert gone() is None
    assert released == [address]


def test_memory_that_its_owner_may_not_write_is_read_only():
    frozen = np.zeros(4)
    frozen.flags.writeable = False
    for owner in (bytes(32), frozen, memoryview(bytearray(32)).toreadonly()):
        x = pointed(owner, np.frombuffer(owner, "u1").ctypes.data, (32,))
        assert x.readonly
        assert not np.from_dlpack(x).flags.writeable
    assert not pointed(np.zeros(4), frozen.ctypes.data, (4,)).readonly


@pytest.mark.parametrize(
    "dtype", ["float32", "f4", np.float32, np.dtype("f4"), torch.float32, ab.DataType("float32")]
)
def test_every_librarys_data_type_is_a_dtype(dtype):
    x = np.zeros(4)
    for pointer, shape in product((x.ctypes.data, ctypes.c_void_p(x.ctypes.data)), (2, (2,), [2])):
        made = pointed(x, pointer, shape, dtype)
        assert (str(made.dtype), made.info.pointer, made.shape) == ("float32", x.ctypes.data, (2,))


def test_dtypes_that_there_are_not():
    x = np.arange(4.0)
    with pytest.raises(TypeError, match="dtype must be"):  # NumPy reads None as float64
        pointed(x, x.ctypes.data, (4,), None)
    with pytest.raises(ValueError, match="native byte order"):
        pointed(x, x.ctypes.data, (4,), x.dtype.newbyteorder())


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda x: x, "ctypes.cast(ptr, ctypes.c_void_p)"),
        (ctypes.pointer, "ctypes.cast(ptr, ctypes.c_void_p)"),
        (ctypes.c_float.from_buffer, "ctypes.addressof(ptr)"),
    ],
    ids=["array", "pointer", "element"],
)
def test_what_ctypes_has_is_told_how_to_become_an_address(make, code):
    memory = (ctypes.c_float * 4)(1, 2, 3, 4)
    ptr = make(memory)
    with pytest.raises(TypeError, match=r"^ptr must be an address .*, got ") as caught:
        ab.from_pointer(ptr, 4, "float32", device="cpu", owner=memory)
    assert code in str(caught.value)
    found = eval(str(caught.value).partition(": pass ")[2], {"ctypes": ctypes, "ptr": ptr})
    x = ab.from_pointer(found, 4, "float32", device="cpu", owner=memory)
    assert ab.convert(x, "numpy").tolist() == [1, 2, 3, 4]
    for plain in (ctypes.c_void_p(ctypes.addressof(memory)), ctypes.addressof(memory)):
        assert ab.from_pointer(plain, 4, "float32", device="cpu", owner=memory).shape == (4,)
    for other in (None, "4096", 4096.0, True):
        with pytest.raises(TypeError, match=f"got {type(other).__name__}$"):
            ab.from_pointer(other, 4, "float32", device="cpu")
