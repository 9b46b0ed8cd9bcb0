"""Any layout of any library's array to any other library: the values, and whether memory is shared.

Dtype, shape, strides, offset, alignment, read-only, capsule version and pair are drawn. What
`explain` says beforehand must be what `convert` does, proven by writing to the source's memory.
"""

from __future__ import annotations

import ctypes
import importlib.util

import jax
import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from arraybridge import dlpack
from arraybridge.dispatch.registry import library_named
from arraybridge.exchange import convert, inspect
from arraybridge.explaining import explain

from .support.optional import optional
from .support.producers import Managed, Producer
from .support.strategies import STANDARD_DTYPES, strided_arrays

torch = optional("torch")

DTYPES = (*STANDARD_DTYPES, "float16", ml_dtypes.bfloat16, ml_dtypes.float8_e5m2)
LIBRARIES = [
    name
    for name in ("numpy", "torch", "jax", "pyarrow", "tvm_ffi", "array_api_strict")
    if importlib.util.find_spec(name)
]
SOURCES = (*LIBRARIES, "producer", "capsule")
WRITABLE_ALWAYS = ("torch", "tvm_ffi")  # their arrays cannot be marked


def handed_over(array: np.ndarray, versioned: bool, byte_offset: int) -> Managed:
    """The memory of a NumPy array in a hand-made struct; the legacy kind cannot say read-only."""
    itemsize = array.itemsize
    managed = Managed(
        versioned,
        data=array.ctypes.data - byte_offset,
        byte_offset=byte_offset,
        shape=array.shape,
        strides=[stride // itemsize for stride in array.strides],
        dtype=dlpack.DataType.named(array.dtype.name),
        flags=0 if array.flags.writeable else dlpack.FLAG_READ_ONLY,
    )
    managed.array = array
    return managed


class _Memory:
    """Any array as NumPy's array interface describes it, by no code of arraybridge's."""

    def __init__(self, array, pointer, strides, itemsize):
        self.array = array
        self.__array_interface__ = {
            "version": 3,
            "data": (pointer or 1, True),  # NumPy before 2.4 refuses a null pointer
            "shape": tuple(array.shape),
            "strides": tuple(stride * itemsize for stride in strides),
            "typestr": f"|V{itemsize}",
        }


def seen(array: object, library: str) -> np.ndarray:
    """View the elements of an array with its library's own functions, in NumPy."""
    if library == "torch":
        return np.asarray(_Memory(array, array.data_ptr(), array.stride(), array.itemsize))
    if library == "tvm_ffi":
        itemsize = (array.dtype.bits * array.dtype.lanes + 7) // 8
        return np.asarray(_Memory(array, array.data_ptr(), array.strides, itemsize))
    if library == "jax":  # np.asarray would keep a copy of any other layout than C's
        strides, step = [0] * array.ndim, 1
        for axis in reversed(array.format.layout.major_to_minor):
            strides[axis], step = step, step * array.shape[axis]
        return np.asarray(_Memory(array, array.unsafe_buffer_pointer(), strides, array.itemsize))
    if library == "pyarrow":
        return array.to_numpy()
    return array._array if library == "array_api_strict" else np.asarray(array)


def bytes_of(array: np.ndarray) -> bytes:
    return np.ascontiguousarray(array).tobytes()


def change(pointer: int, dtype: np.dtype) -> None:
    """Change the element at an address, for another value of its dtype."""
    raw = (ctypes.c_uint8 * dtype.itemsize).from_address(pointer)
    for byte in range(1 if dtype.kind == "b" else dtype.itemsize):
        raw[byte] ^= 1


@pytest.fixture(autouse=True, scope="module")
def x64():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("target", LIBRARIES)
@settings(max_examples=300, deadline=None)
@given(
    array=strided_arrays(DTYPES, max_size=64),
    source=st.sampled_from(SOURCES),
    versioned=st.booleans(),
    byte_offset=st.sampled_from([0, 1, 8, 64, 4096]),
    copy=st.sampled_from([None, None, True, False]),
    alias_readonly=st.booleans(),
)
def test_exchange(target, array, source, versioned, byte_offset, copy, alias_readonly):
    expected = bytes_of(array)
    managed = producer = None
    if source in ("producer", "capsule"):
        managed = handed_over(array, versioned, byte_offset)
        if source == "producer":
            x = producer = Producer(managed)
        else:
            x = managed.capsule()
    else:
        # What the source itself does not have is refused; that is looked at where it is the target.
        assume(dlpack.DataType.named(array.dtype.name).name in library_named(source).accepts.dtypes)
        x = convert(array, source)

    asked = {"copy": copy, "alias_readonly": alias_readonly}
    info = inspect(x)
    route = explain(x, target, **asked)
    event(f"{route.kind} from {source}")
    assert route.kind in ("view", "kernel", "refuse")

    if route.kind == "refuse":
        unknown = info.dtype_name not in library_named(target).accepts.dtypes
        assert unknown or copy is False
        with pytest.raises(BufferError, match=r"\w") as caught:
            convert(x, target, **asked)
        assert bytes_of(array) == expected
        del caught, x
    else:
        result = convert(x, target, **asked)
        check(result, target, array, expected, info, route, alias_readonly)
        assert not (copy is True and route.kind == "view")
        assert not (copy is False and route.kind == "kernel")
        del result, x
    if managed is not None:
        # explain() and inspect() take a struct each from a producer, and only look at a capsule.
        assert managed.deleted == (1 if producer is None else len(producer.asked))


def check(result, target, array, expected, info, route, alias_readonly):
    found = seen(result, target)
    assert inspect(result).dtype == info.dtype
    assert found.shape == array.shape
    assert bytes_of(found) == expected
    shares = route.kind == "view"
    assert route.nbytes == (0 if shares else array.nbytes)

    if not array.size:
        return
    if shares and info.readonly:
        assert inspect(result).readonly or (target in WRITABLE_ALWAYS and alias_readonly)
    if target == "numpy" and shares:
        assert found.flags.writeable != info.readonly
    assert (inspect(result).pointer == info.pointer) == shares
    change(info.pointer, array.dtype)
    after = bytes_of(seen(result, target))
    if shares:
        assert after != expected
        assert after[: array.itemsize] != expected[: array.itemsize]
    else:
        assert after == expected


@pytest.mark.parametrize("target", LIBRARIES)
@settings(max_examples=50, deadline=None)
@given(array=strided_arrays(("float32",), max_size=64, broadcast=False, readonly=False))
def test_there_and_back(target, array):
    expected = bytes_of(array)
    there = convert(array, target)
    back = convert(there, "numpy")
    assert bytes_of(back) == expected
    assert back.dtype == array.dtype
    if array.size and inspect(there).pointer == array.ctypes.data:
        assert back.ctypes.data == array.ctypes.data


def test_torch_sees_no_negative_strides():
    """The abort that began it all: pytorch#188023."""
    assert convert(np.arange(3)[::-1], "torch").tolist() == [2, 1, 0]
    assert torch.equal(convert(np.arange(3)[::-1], torch), torch.tensor([2, 1, 0]))
