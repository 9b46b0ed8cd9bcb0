"""from_pointer: its arguments are checked against the memory of the owner, if that is known."""

import array
import ctypes
import gc
import mmap
import weakref
from contextlib import suppress
from itertools import product
from multiprocessing.shared_memory import SharedMemory

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arraybridge as ab
from arraybridge.array.pointer import _memory_of
from tests.support.optional import optional

torch = optional("torch")

HOST = ab.Device.parse("cpu")
SIZE = 64
OWNERS = {
    "bytes": lambda: bytes(SIZE),
    "bytearray": lambda: bytearray(SIZE),
    "memoryview, strided": lambda: memoryview(bytearray(SIZE))[::-2],
    "mmap": lambda: mmap.mmap(-1, SIZE),
    "ctypes": lambda: (ctypes.c_double * 8)(),
    "array": lambda: array.array("d", [0] * 8),
    "numpy": lambda: np.zeros(8),
    "numpy, a view": lambda: np.zeros(8)[::-3][1:],
    "numpy, of a buffer": lambda: np.frombuffer(bytearray(SIZE), "f4")[2:5],
    "torch": lambda: torch.zeros(8, dtype=torch.float64),
    "torch, a storage": lambda: torch.zeros(8, dtype=torch.float64).untyped_storage(),
    "jax": lambda: jnp.zeros(16, "float32"),
    "arrow": lambda: pa.array(np.zeros(8)),
    "Array": lambda: ab.from_dlpack(np.zeros(8)),
    "tensor": lambda: ab.dlpack.acquire(np.zeros(8)),
}


def pointed(owner, ptr, shape, dtype="uint8", **changes):
    return ab.from_pointer(ptr, shape, dtype, **{"device": "cpu", "owner": owner, **changes})


@pytest.mark.parametrize("make", OWNERS.values(), ids=list(OWNERS))
def test_nothing_reaches_beyond_an_owner_whose_size_is_known(make):
    owner = make()
    low, high, _, _ = _memory_of(owner, HOST)
    assert high - low == SIZE
    assert pointed(owner, low, (SIZE,)).shape == (SIZE,)
    assert pointed(owner, high - 8, (8,), "float64", strides=-1, byte_offset=0).shape == (8,)
    assert pointed(owner, low, (2, 0, 9), "float64").shape == (2, 0, 9)
    for ptr, shape, changes, needs in (
        (low, (SIZE + 1,), {}, "needs 65 bytes, 0 to 65"),
        (low, (4, 16), {"strides": (64, 4)}, "needs 253 bytes"),  # of bytes, for one
        (low, (2,), {"strides": -1}, "needs 2 bytes, -1 to 1"),
        (low, (4,), {"byte_offset": SIZE - 2}, "needs 4 bytes, 62 to 66"),
    ):
        message = rf"{needs}.* of its owner's memory; the \w+ has {SIZE}"
        with pytest.raises(ValueError, match=message):
            pointed(owner, ptr, shape, **changes)


def test_an_owner_need_not_be_where_the_memory_is():
    memory, header = np.arange(8.0), bytearray(16)
    x = pointed(header, memory.ctypes.data, (8,), "float64")
    np.testing.assert_array_equal(np.asarray(x), memory)
    header.append(0)  # its own memory is not held
    gpu = pointed(bytearray(4), 0x7F0000000000, (1 << 20,), device="cuda")
    assert gpu.size == 1 << 20
    for owner in (object(), {}, torch.Tensor, memory.__dlpack__(), torch.ones(2).to_sparse()):
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
    fits = not places or (first >= 0 and end <= 40)
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


@pytest.mark.parametrize("change", ["data", "set_", "swap", "resize_"])
@pytest.mark.parametrize("tracked", [False, True])
def test_the_memory_of_a_tensor_is_held_that_is_given_other(change, tracked):
    t = torch.arange(1000.0)
    x = ab.from_pointer(
        t.data_ptr(), (1000,), "float32", device="cpu", owner=t.requires_grad_(tracked)
    )
    with torch.no_grad(), suppress(RuntimeError):  # what is lent cannot be resized
        if change == "data":
            t.data = torch.zeros(3)
        elif change == "set_":
            t.set_(torch.zeros(3))
        elif change == "swap":
            torch.utils.swap_tensors(t, torch.zeros(3))
        else:
            t.resize_(1 << 20)
    others = [torch.full((1000,), -1.0) for _ in range(20)]
    assert np.from_dlpack(x).tolist() == [*range(1000)]
    del others


def test_the_memory_of_a_jax_array_is_held_that_is_deleted():
    j = jnp.arange(1000.0)
    x = ab.from_pointer(
        j.unsafe_buffer_pointer(), (1000,), "float32", device="cpu", owner=j, readonly=True
    )
    j.delete()
    others = [jnp.full((1000,), -1.0).block_until_ready() for _ in range(20)]
    assert np.asarray(x).tolist() == [*range(1000)]
    del others


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
    for owner in (
        bytes(32),
        frozen,
        jnp.zeros(8, "float32"),
        memoryview(bytearray(32)).toreadonly(),
    ):
        low, _, readonly, _ = _memory_of(owner, HOST)
        assert readonly
        x = pointed(owner, low, (32,))
        assert x.readonly
        assert not np.from_dlpack(x).flags.writeable
    assert not pointed(np.zeros(4), frozen.ctypes.data, (4,)).readonly


def test_shared_memory_is_held_and_not_exceeded():
    shared = SharedMemory(create=True, size=SIZE)
    try:
        low = _memory_of(shared, HOST)[0]
        with pytest.raises(ValueError, match="the SharedMemory has"):
            pointed(shared, low, (shared.size + 1,))
        x = pointed(shared, low, (SIZE,))
        with pytest.raises(BufferError):
            shared.close()
        del x
        shared.close()
    finally:
        shared.unlink()


def test_whatever_is_true_makes_it_read_only():
    x = np.arange(4.0)
    for readonly in (False, True, None, 1, "yes"):
        found = pointed(x, x.ctypes.data, (4,), "f8", readonly=readonly)
        assert np.from_dlpack(found).flags.writeable is not bool(readonly)


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        *((x, "float32") for x in ("float32", "f4", np.float32, np.dtype("f4"), torch.float32)),
        *((x, "float32") for x in (ab.DataType("float32"), jnp.float32, ctypes.c_float)),
        *((getattr(pa, f"float{bits}")(), f"float{bits}") for bits in (16, 32, 64)),
        *((pa.uint8(), "uint8"), (torch.bfloat16, "bfloat16"), ("double", "float64")),
        *(
            pytest.param(f"paddle.{x}", x, marks=pytest.mark.heavy)
            for x in ("float32", "complex64")
        ),
    ],
    ids=str,
)
def test_every_librarys_data_type_is_a_dtype(dtype, name):
    x = np.zeros(4)
    if str(dtype).startswith("paddle"):
        dtype = getattr(pytest.importorskip("paddle"), name)
    for pointer, shape in product((x.ctypes.data, ctypes.c_void_p(x.ctypes.data)), (2, (2,), [2])):
        made = pointed(x, pointer, shape, dtype)
        assert (str(made.dtype), made.info.pointer, made.shape) == (name, x.ctypes.data, (2,))


def test_a_device_may_be_a_librarys_own():
    x = np.zeros(4)
    for device in (torch.device("cpu"), jax.devices("cpu")[0], (1, 0)):
        assert pointed(x, x.ctypes.data, (4,), "f8", device=device).device == HOST
    assert ab.from_pointer(0x1000, (4,), "f8", device=torch.device("cuda:1")).device == (2, 1)
    with pytest.raises(TypeError, match="device must be"):
        pointed(x, x.ctypes.data, (4,), "f8", device=torch.device("meta"))


def test_no_dtype_is_no_float64():
    x = np.arange(4.0)
    with pytest.raises(TypeError, match="dtype is None"):
        pointed(x, x.ctypes.data, (4,), None)


def test_a_dtype_in_the_other_byte_order_is_refused():
    x = np.array([1, 2, 3], "f4").astype(np.dtype("f4").newbyteorder())
    for dtype in (x.dtype, x.dtype.str):
        with pytest.raises(TypeError, match=r"byte order.*x\.astype\("):
            ab.from_pointer(x.ctypes.data, (3,), dtype, device="cpu", owner=x)
    y = x.astype(x.dtype.newbyteorder("=").str)  # the remedy
    for dtype in (y.dtype, y.dtype.str, "f4", "=f4"):
        z = ab.from_pointer(y.ctypes.data, (3,), dtype, device="cpu", owner=y)
        np.testing.assert_array_equal(np.asarray(z), [1, 2, 3])


class _Struct(ctypes.Structure):
    _fields_ = (("values", ctypes.c_float * 4),)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda x: x, "ctypes.cast(ptr, ctypes.c_void_p)"),
        (ctypes.pointer, "ctypes.cast(ptr, ctypes.c_void_p)"),
        (lambda x: ctypes.cast(x, ctypes.POINTER(ctypes.c_float)), "ctypes.cast(ptr, "),
        (ctypes.byref, "ctypes.cast(ptr, ctypes.c_void_p)"),
        (lambda x: ctypes.cast(x, ctypes.c_char_p), "ctypes.cast(ptr, ctypes.c_void_p)"),
        (_Struct.from_buffer, "ctypes.addressof(ptr)"),
        (ctypes.c_float.from_buffer, "ctypes.addressof(ptr)"),
    ],
    ids=["array", "pointer", "pointer to an element", "byref", "c_char_p", "struct", "element"],
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
