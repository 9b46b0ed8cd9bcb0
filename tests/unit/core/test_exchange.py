"""convert, explain, inspect and contiguous, on NumPy, PyTorch and JAX themselves."""

import sys

import jax
import numpy as np
import pytest

import arraybridge as ab
from tests.support.optional import installed, optional
from tests.support.processes import python

torch = optional("torch")


def image():
    return np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def test_a_module_names_a_library_too():
    assert isinstance(ab.convert(image(), jax.numpy), jax.Array)


class TestCopy:
    def test_any_boolean(self):
        x = image()[::-1]  # which PyTorch cannot hold
        for never in (0, np.False_):
            with pytest.raises(ab.ConversionError, match="copy=False"):
                ab.convert(x, "torch", copy=never)
        for always in (1, np.True_):
            assert ab.inspect(ab.convert(x, "numpy", copy=always)).pointer != ab.inspect(x).pointer

    @pytest.mark.parametrize("wrong", ["never", "", 2, -1, 1.0, (), np.array(True)])
    @pytest.mark.parametrize("target", ["numpy", "torch"])
    def test_what_is_neither_is_told(self, wrong, target):
        x = image()
        array = ab.from_dlpack(ab.convert(x, target))
        for ask in (
            lambda copy: ab.convert(x, target, copy=copy),
            lambda copy: ab.explain(x, target, copy=copy),
            lambda copy: ab.from_dlpack(x, copy=copy),
            lambda copy: ab.unify(x, x, copy=copy),
            lambda copy: array.__dlpack__(copy=copy),
            lambda copy: array.__array__(copy=copy),
        ):
            with pytest.raises(ValueError, match=r"copy is .*; expected None, True or False"):
                ask(wrong)


class TestNumPy:
    @pytest.mark.skipif(not hasattr(np.dtypes, "register_dlpack_dtype"), reason="NumPy 2.5's")
    def test_a_dtype_that_is_registered_with_numpy_changes_nothing(self):
        """In a process of its own: a registration lasts."""
        python(
            """
import ml_dtypes, numpy as np
import arraybridge as ab
x = np.arange(4).astype(ml_dtypes.bfloat16)
for registered in (False, True):
    if registered:
        np.dtypes.register_dlpack_dtype((4, 16), x.dtype)
        assert np.from_dlpack(ab.from_dlpack(x)).ctypes.data == x.ctypes.data
        assert ab.from_dlpack(x.__dlpack__(max_version=(1, 0))).info.dtype_name == "bfloat16"
    for values in (x, x[::2], x[::-1]):
        there = ab.convert(values, "jax")
        assert there.dtype == x.dtype and there.tolist() == values.tolist()
        back = ab.convert(there, "numpy")
        assert back.dtype == x.dtype and back.tolist() == values.tolist()
        assert ab.explain(there, "numpy").kind == "view"
"""
        )


class TestJax:
    def test_tracers_keys_and_deleted_arrays_have_no_memory(self):
        with pytest.raises(ab.ConversionError, match="tracer"):
            jax.jit(lambda x: ab.convert(x, "numpy"))(jax.numpy.ones(3))
        with pytest.raises(ab.ConversionError, match="key_data"):
            ab.convert(jax.random.key(0), "numpy")
        x = jax.numpy.ones(3)
        x.delete()
        with pytest.raises(ab.ConversionError, match="deleted"):
            ab.convert(x, "torch", alias_readonly=True)


class TestNames:
    @pytest.mark.skipif(installed("cupy"), reason="what has been loaded cannot be missed")
    def test_missing(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "cupy", None)
        monkeypatch.delitem(sys.modules, "arraybridge.libraries.cupy.exchange", raising=False)
        with pytest.raises(ImportError, match="pip install 'cupy-cuda12x'"):
            ab.convert(image(), "cupy")

    @pytest.mark.parametrize("to", [np.ones(2), torch.ones(2), np.ndarray, jax.Array])
    def test_an_array_or_its_class_names_no_library(self, to):
        name = next(name for name in ("numpy", "torch", "jax") if name in str(type(to)) + str(to))
        with pytest.raises(TypeError, match=rf"its module, got (.|\n)*: pass '{name}'$"):
            ab.convert(image(), to)
        for other in (None, 3):
            with pytest.raises(TypeError, match=rf"its module, got {other}$"):
                ab.convert(image(), other)


@jax.jit
def slow(x):
    return (x @ x)[0] / 1024 + 1


@pytest.mark.parametrize(
    "arrive",
    [
        lambda x: ab.convert(x, "numpy"),
        lambda x: ab.convert(x, "numpy", device="cpu"),
        lambda x: ab.convert(x, "numpy", copy=False),
        lambda x: ab.convert(x, "torch"),
        lambda x: ab.convert(x, "torch", alias_readonly=True),
        lambda x: ab.convert(ab.from_dlpack(x), "array_api_strict"),
        lambda x: np.from_dlpack(ab.convert(x, "tvm_ffi", alias_readonly=True)),
        lambda x: ab.copyto(out := np.zeros(2048, np.float32), x) or out,
        lambda x: np.asarray(ab.from_dlpack(x)),
        lambda x: np.from_dlpack(ab.from_dlpack(x)),
    ],
)
def test_what_jax_still_computes_is_waited_for(arrive):
    """JAX dispatches asynchronously, on the CPU too: the address is there before the values are."""
    x = jax.numpy.ones((2048, 2048), "float32")
    expected = np.full(2048, 3, "float32")
    result = slow(x)
    assert not result.is_ready()  # else this test cannot fail
    np.testing.assert_array_equal(np.asarray(arrive(result)), expected)


def test_too_little_memory_for_a_copy_says_for_what():
    x = np.broadcast_to(np.float32(1), (2**20, 2**28))
    match = r"^cannot allocate 1,125,899,906,842,624 bytes for a tensor of shape .* dtype float32$"
    for to in ("numpy", "torch"):
        with pytest.raises(MemoryError, match=match):
            ab.convert(x, to, copy=True)


# Arrays of JAX that NumPy cannot view by the buffer protocol.


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
