"""convert, explain, inspect and contiguous, on NumPy, PyTorch and JAX themselves."""

import sys

import jax
import numpy as np
import pytest

import arraybridge as ab
from tests.support.optional import installed, optional
from tests.support.sources import frozen

torch = optional("torch")


def image():
    return np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("wrong", ["never", 2, 1.0, np.array(True)])
@pytest.mark.parametrize("target", ["numpy", "torch"])
def test_what_is_neither_is_told(wrong, target):
    x = image()
    array = ab.from_dlpack(ab.convert(x, target))
    for ask in (
        lambda copy: ab.convert(x, target, copy=copy),
        lambda copy: ab.explain(x, target, copy=copy),
        lambda copy: ab.from_dlpack(x, copy=copy),
        lambda copy: ab.from_dlpack(array, copy=copy),
        lambda copy: ab.unify(x, x, copy=copy),
        lambda copy: array.__dlpack__(copy=copy),
    ):
        with pytest.raises(ValueError, match=r"copy is .*; expected None, True or False"):
            ask(wrong)


@pytest.mark.skipif(installed("cupy"), reason="what has been loaded cannot be missed")
def test_missing(monkeypatch):
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


# copy=False where a copy is needed: a BufferError and a ValueError, as the standard has it.

X = np.arange(6, dtype="f4").reshape(2, 3)
FOREIGN = X.astype(">f4")
READ_ONLY = frozen(X.copy())
NEGATED = torch._neg_view(torch.ones(3))
CONJUGATED = torch.ones(3, dtype=torch.complex64).conj()


CALLS = {
    "convert": lambda: ab.convert(READ_ONLY, "torch", copy=False),
    "a capsule": lambda: ab.convert(READ_ONLY.__dlpack__(max_version=(1, 0)), "torch", copy=False),
    "to": lambda: ab.from_dlpack(READ_ONLY).to("torch", copy=False),
    "asarray": lambda: ab.asarray(READ_ONLY, like="torch", copy=False),
    "asarray, dtype=": lambda: ab.asarray(X, like="torch", copy=False, dtype="float64"),
    "legacy": lambda: ab.from_dlpack(READ_ONLY).__dlpack__(copy=False),
    "__dlpack__": lambda: ab.from_dlpack(FOREIGN).__dlpack__(max_version=(1, 0), copy=False),
    "__array__": lambda: ab.from_dlpack(NEGATED).__array__(copy=False),
    "numpy.asarray": lambda: np.asarray(ab.from_dlpack(X), "i4", copy=False),
    "namespace": lambda: ab.xp.numpy.asarray(FOREIGN, copy=False),
    "from_dlpack": lambda: ab.xp.torch.from_dlpack(ab.from_dlpack(X[::-1]), copy=False),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_error_is_what_the_standard_names(name: str) -> None:
    with pytest.raises(ab.ConversionError, match=r"^copy=False, but ") as told:
        CALLS[name]()
    assert isinstance(told.value, BufferError)
    assert isinstance(told.value, ValueError)


def test_numpy_imports_show_the_elements() -> None:
    from_dlpack = ab.namespace("numpy").from_dlpack
    for x, elements in ((NEGATED, [-1, -1, -1]), (CONJUGATED, [1, 1, 1]), (FOREIGN, X)):
        np.testing.assert_array_equal(from_dlpack(x), elements)
