"""convert, explain, inspect and contiguous, on NumPy, PyTorch and JAX themselves."""

import sys

import jax
import numpy as np
import pytest

import arraybridge as ab
from tests.support.optional import installed, optional

torch = optional("torch")


def image():
    return np.arange(24, dtype=np.float32).reshape(2, 3, 4)


class TestCopy:
    @pytest.mark.parametrize("wrong", ["never", 2, 1.0, np.array(True)])
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
        ):
            with pytest.raises(ValueError, match=r"copy is .*; expected None, True or False"):
                ask(wrong)


class TestNames:
    @pytest.mark.skipif(installed("cupy"), reason="what has been loaded cannot be missed")
    def test_missing(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "cupy", None)
        monkeypatch.delitem(sys.modules, "arraybridge.libraries.cupy.exchange", raising=False)
        with pytest.raises(ImportError, match="pip install 'cupy-cuda12x'"):
            ab.convert(image(), "cupy")


@jax.jit
def slow(x):
    return (x @ x)[0] / 1024 + 1


@pytest.mark.parametrize(
    "arrive",
    [
        lambda x: ab.convert(x, "numpy"),
        lambda x: ab.convert(x, "numpy", copy=False),
        lambda x: ab.convert(x, "torch"),
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
