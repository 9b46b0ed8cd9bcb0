"""namespace and unify."""

from __future__ import annotations

import array_api_compat
import array_api_strict
import jax
import numpy as np
import pytest
import torch

import arraybridge as ab
from arraybridge import namespaces
from arraybridge.xp.native import corrections_of

ARRAYS = {
    "numpy": lambda: np.arange(6.0, dtype=np.float32).reshape(2, 3),
    "torch": lambda: torch.arange(6.0).reshape(2, 3),
    "jax": lambda: jax.numpy.arange(6.0, dtype="float32").reshape(2, 3),
    "array_api_strict": lambda: array_api_strict.reshape(
        array_api_strict.arange(6, dtype=array_api_strict.float32), (2, 3)
    ),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_of_native_arrays(kind):
    """The native face: all that array-api-compat's has, the same objects but for corrections."""
    x = ARRAYS[kind]()
    xp = ab.namespace(x)
    assert ab.namespace(x) is xp
    assert ab.namespace(x, 2.0, None, x) is xp
    theirs = array_api_compat.array_namespace(x)
    corrected = {c.name for c in corrections_of(kind)}
    for name in dir(theirs):
        if not name.startswith("_") and not {name} <= corrected | {"linalg", "fft"}:
            found = getattr(xp, name)  # or what falls back on another library
            assert getattr(theirs, name) in (found, getattr(found, "__wrapped__", None))


@pytest.mark.parametrize("kind", ARRAYS)
def test_of_arrays(kind):
    x = ab.from_dlpack(ARRAYS[kind]())
    xp = ab.namespace(x)
    assert xp is ab.namespace(x, 2.0, None, x)
    assert xp is x.__array_namespace__() is array_api_compat.array_namespace(x)
    assert xp.__name__ == f"arraybridge.xp.{kind}"


def test_of_memory_without_a_library():
    source = np.ones(3)
    bare = ab.from_pointer(source.ctypes.data, (3,), "float64", device="cpu", owner=source)
    assert ab.namespace(bare).__name__ == "arraybridge.xp.numpy"


def test_is_found_by_type():
    namespaces._namespaces.clear()
    ab.namespace(np.ones(3))
    assert list(namespaces._namespaces) == [np.ndarray]


def test_a_version_may_be_asked_for():
    x = np.ones(3)
    served = ab.namespace(x).__array_api_version__
    assert ab.namespace(x, api_version=served) is ab.namespace(x)


def test_errors():
    with pytest.raises(TypeError, match=r"numpy\.ndarray, torch\.Tensor.*arraybridge\.unify"):
        ab.namespace(np.ones(3), torch.ones(3))
    with pytest.raises(TypeError, match="at least one array; got int, NoneType"):
        ab.namespace(3, None)
    with pytest.raises(TypeError, match="at least one array; got nothing"):
        ab.namespace()
    with pytest.raises(TypeError, match=r"builtins\.str has no array-API namespace"):
        ab.namespace("text")
    with pytest.raises(ValueError, match=r"2019\.01"):
        ab.namespace(np.ones(3), api_version="2019.01")


def softmax(x):
    xp = ab.namespace(x)
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


@pytest.mark.parametrize("kind", ARRAYS)
def test_one_function_for_every_library(kind):
    x = ARRAYS[kind]()
    y = softmax(x)
    assert type(y) is type(x)
    expected = softmax(ARRAYS["numpy"]())
    np.testing.assert_allclose(np.asarray(ab.convert(y, "numpy")), expected, rtol=1e-6)


def test_inside_torch_compile():
    x = torch.arange(6.0).reshape(2, 3)
    compiled = torch.compile(softmax, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(x), softmax(x))


def test_inside_jit_and_grad():
    x = ARRAYS["jax"]()
    np.testing.assert_allclose(jax.jit(softmax)(x), softmax(x), rtol=1e-6)
    assert jax.grad(lambda x: softmax(x)[0, 0])(x).shape == (2, 3)


class TestUnify:
    @pytest.mark.parametrize("kind", ["numpy", "torch", "jax"])
    def test_to_the_first(self, kind):
        x = ARRAYS[kind]()
        xp, *arrays = ab.unify(x, *(make() for make in ARRAYS.values()), 2.5, None)
        assert xp is ab.namespace(x)
        assert arrays[0] is x
        assert arrays[-2:] == [2.5, None]
        for y in arrays[:-2]:
            assert type(y) is type(x)
            assert float(xp.sum(y)) == 15

    def test_like(self):
        xp, a, b = ab.unify(np.ones(3, "f4"), jax.numpy.ones(3), like=torch.ones(1))
        assert type(a) is type(b) is torch.Tensor
        assert xp is ab.namespace(a)

    def test_what_only_speaks_dlpack_goes_to_numpy(self):
        x = np.ones(3)
        bare = ab.from_pointer(x.ctypes.data, (3,), "float64", device="cpu", owner=x)
        xp, a, b = ab.unify(bare, torch.ones(3))
        assert xp is ab.namespace(x)
        assert (a + b).tolist() == [2, 2, 2]

    def test_errors(self):
        with pytest.raises(TypeError, match="at least one array"):
            ab.unify(1, 2.0)
        with pytest.raises(ab.ConversionError, match="detach"):
            ab.unify(np.ones(3), torch.ones(3, requires_grad=True))
        gpu = ab.from_pointer(0x1000, (3,), "float32", device="cuda")
        with pytest.raises(ab.ConversionError, match="cuda:0"):
            ab.unify(np.ones(3), gpu)
