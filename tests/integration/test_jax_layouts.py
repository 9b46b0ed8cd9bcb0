"""Arrays of JAX that NumPy cannot view by the buffer protocol: other layouts, bfloat16, int4."""

import numpy as np
import pytest

import arraybridge as ab

jax = pytest.importorskip("jax")


def permuted():
    """An array of JAX whose first axis is the innermost one in memory, and the memory's address."""
    memory = ab.dlpack.ManagedTensor.allocate((2, 3, 4), ab.DataType("float32"))
    values = np.from_dlpack(memory)
    values[:] = np.arange(24).reshape(2, 3, 4)
    return ab.convert(values.transpose(2, 0, 1), "jax", copy=False), memory.pointer


def test_numpy_and_arrays_get_the_memory():
    x, address = permuted()
    view = ab.convert(x, "numpy", copy=False)
    assert (view.ctypes.data, view.strides) == (address, (4, 48, 16))
    assert not view.flags.writeable
    array = np.from_dlpack(ab.from_dlpack(x))
    assert array.ctypes.data == address


def test_a_description_keeps_the_memory():
    """Not a copy of it: the pointer is that of JAX."""
    x, address = permuted()
    tensor = ab.dlpack.acquire(ab.from_dlpack(x))
    assert tensor.pointer == address
    pin = ab.libraries.jax.exchange.LIBRARY.memory_owner(x, ab.inspect(x))
    assert not isinstance(pin, np.ndarray) or pin.ctypes.data == address


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool"])
def test_the_usual_layout_is_viewed(dtype):
    x = jax.numpy.ones((2, 3), dtype)
    view = ab.convert(x, "numpy", copy=False)
    assert view.ctypes.data == x.unsafe_buffer_pointer()
