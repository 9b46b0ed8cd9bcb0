"""from_pointer: arguments are checked; who keeps what alive."""

import ctypes
import gc
import mmap
import weakref
from itertools import product

import numpy as np
import pytest

import arraybridge as ab
from tests.support.optional import optional

torch = optional("torch")


def pointed(owner, ptr, shape, dtype="uint8", **changes):
    return ab.from_pointer(ptr, shape, dtype, **{"device": "cpu", "owner": owner, **changes})


def test_an_owner_need_not_be_where_the_memory_is():
    memory, header = np.arange(8.0), bytearray(16)
    x = pointed(header, memory.ctypes.data, (8,), "float64")
    np.testing.assert_array_equal(np.asarray(x), memory)
    gpu = pointed(bytearray(4), 0x7F0000000000, (1 << 20,), device="cuda")
    assert gpu.size == 1 << 20
    for owner in (object(), {}, torch.Tensor, memory.__dlpack__(), torch.ones(2)):
        assert pointed(owner, memory.ctypes.data, (8,), "float64").size == 8


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
