"""adapt(callback=...): functions of any library inside what JAX compiles."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import ndimage

import arraybridge as ab
from tests.support.optional import needs, optional

torch = optional("torch")

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def like_first(function, library="numpy"):
    """``function`` as a callback whose result is like its first argument."""
    return ab.adapt(library, callback=lambda x, *others, **more: x)(function)


def test_jit():
    smooth = like_first(ndimage.gaussian_filter)
    found = jax.jit(lambda x: smooth(x * 2, sigma=1.0) + 1)(X)
    np.testing.assert_allclose(found, ndimage.gaussian_filter(X * 2, 1.0) + 1, rtol=1e-6)


def test_trees_and_other_arguments():
    struct = jax.ShapeDtypeStruct
    like = {"sum": struct((), "f4"), "parts": [struct((3,), "f4")]}

    @ab.adapt("numpy", callback=like)
    def f(x, y, z, *, k, name):
        assert type(y) is type(z) is np.ndarray
        return {"sum": x.sum(), "parts": [x.sum(1) * k["k"] + len(name)]}

    found = jax.jit(lambda x, k: f(x, X, torch.ones(4), k=k, name="abc"))(X, {"k": np.float32(2)})
    assert jax.tree.structure(found) == jax.tree.structure(like)
    np.testing.assert_allclose(found["parts"][0], X.sum(1) * 2 + 3, atol=1e-6)


def test_arrays_and_vmap():
    found = jax.jit(like_first(np.sort))(ab.from_dlpack(jnp.asarray(X[:, ::-1])))
    assert isinstance(found, ab.Array)
    np.testing.assert_array_equal(found.native, X)
    np.testing.assert_array_equal(jax.vmap(like_first(np.sort))(X[:, ::-1]), X)


DTYPES = "bool int8 uint8 int32 uint32 float16 bfloat16 float32 complex64 float8_e4m3fn".split()


@pytest.mark.parametrize("library", ["numpy", pytest.param("torch", marks=needs("torch"))])
@pytest.mark.parametrize("shape", [(), (0, 3), (3, 4)])
def test_every_data_type(shape, library):
    program = jax.jit(lambda xs: [like_first(lambda x: x, library)(x) for x in xs])
    xs = [jnp.asarray(np.arange(np.prod(shape)).reshape(shape), dtype) for dtype in DTYPES]
    for x, found in zip(xs, program(xs), strict=True):
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(found), np.asarray(x))


@pytest.mark.parametrize(
    ("function", "match"),
    [
        (lambda x: x[:1], r"returned float32 \(1, 4\); callback= describes float32 \(3, 4\)"),
        (lambda x: x.astype("f8"), r"returned float64 \(3, 4\)"),
        (lambda x: (x, x), r"returned float32 \(3, 4\), float32 \(3, 4\); callback="),
        (lambda x: None, "returned nothing; callback="),
        (lambda x: x.fill(0) or x, "read-only"),
        (lambda x: 1 / 0, "division by zero"),
    ],
)
def test_refused_in_the_run(function, match):
    with pytest.raises(Exception, match=match):
        jax.block_until_ready(jax.jit(like_first(function))(X))


@needs("torch")
def test_a_written_argument():
    with pytest.raises(Exception, match="wrote to the copy of an argument"):
        jax.block_until_ready(jax.jit(like_first(lambda x: x.mul_(2), "torch"))(X))


def test_refused():
    with pytest.raises(TypeError, match=r"has a int: pass objects with a shape"):
        jax.jit(ab.adapt("numpy", callback=[3])(np.sort))(X)
    with pytest.raises(ValueError, match="64-bit"), jax.enable_x64(False):
        jax.jit(ab.adapt("numpy", callback=np.zeros(3))(np.sort))(X)
    with pytest.raises(ValueError, match="do not support JVP"):
        jax.grad(lambda x: like_first(np.sin)(x).sum())(X)
    tensor = torch.ones(3, requires_grad=True)
    with pytest.raises(ab.ConversionError, match="gradients are tracked"):
        jax.jit(lambda x: like_first(np.add)(x, tensor))(X)
