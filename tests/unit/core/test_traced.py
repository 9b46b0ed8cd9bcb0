"""Arrays that their library traces have no memory: they stay as they are, or it casts them."""

import numpy as np
import pytest

import arraybridge as ab
from arraybridge import tree
from tests.support.optional import installed, needs, optional

jax = optional("jax")
HALF = {"float32": "float16", "float64": "float16"}
#: What a refusal says, where that is the remedy.
REMEDY = {"tensorflow": r"outside tf\.function", "mlx": "outside compile"}


def in_tensorflow(look, *extents):
    import tensorflow as tf

    spec = [tf.TensorSpec(extents, tf.float32)] if extents else [tf.TensorSpec(None, tf.float32)]
    return tf.function(look, input_signature=spec, autograph=False)(tf.ones((3, 2)))


def in_paddle(look):
    import paddle

    inner = paddle.jit.not_to_static(look)

    def traced(a):  # Paddle reads its source
        return inner(a)

    return paddle.jit.to_static(traced, full_graph=True)(paddle.ones((3, 2)))


def in_mlx(look):
    import mlx.core as mx

    return mx.compile(look)(mx.ones((3, 2)))


TRACED = {
    "jax jit": lambda look: jax.jit(look)(jax.numpy.ones((3, 2))),
    "jax vmap": lambda look: jax.vmap(look)(jax.numpy.ones((3, 2))),
    "jax grad": lambda look: jax.grad(lambda a: look(a).sum().astype("f4"))(
        jax.numpy.ones((3, 2))
    ).astype("f2"),
    "tensorflow": lambda look: in_tensorflow(look, 3, 2),
    "tensorflow extent": lambda look: in_tensorflow(look, None, 2),
    "tensorflow rank": in_tensorflow,
    "paddle": in_paddle,
    "mlx": in_mlx,
}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=() if case.startswith("jax") else pytest.mark.heavy)
        for case in TRACED
    ],
)
def test_traced_arrays_of_the_own_library(case):
    name = case.partition(" ")[0]
    if not installed(name):
        pytest.skip(f"{name} is not installed")
    seen = []

    def look(a):
        seen.append(a)
        assert ab.convert(a, name) is a
        assert ab.convert(a, name, copy=False, dtype="float32") is a
        assert ab.contiguous(a) is a
        assert tree.convert({"a": [a]}, name)["a"][0] is a
        assert ab.adapt(name, dtype={"float64": "float16"})(lambda b: b)(a) is a
        assert ab.explain(a, name).kind == "view"
        cast = ab.explain(a, name, dtype="float16")
        assert (cast.kind, cast.kernel) == ("copy", f"{name}'s own cast")
        if name != "tensorflow":  # whose cast to the same type copies nothing
            assert ab.explain(a, name, copy=True).kernel == f"{name}'s own copy"
            assert ab.convert(a, name, copy=True).shape == a.shape
        for refused in (
            *[{"copy": True}] * (name == "tensorflow"),
            {"device": "cuda:7"},
            {"device": "cuda:7", "dtype": "float16"},
            {"dtype": "float16", "casting": "same_value"},
            {"dtype": "float16", "copy": False},
        ):
            route = ab.explain(a, name, **refused)
            assert route.kind == "refuse"
            with pytest.raises(ab.ConversionError) as caught:
                ab.convert(a, name, **refused)
            assert str(caught.value) == route.why
        assert ab.explain(a, "numpy").kind == ab.explain(a, "numpy", dtype="int8").kind == "refuse"
        with pytest.raises(ab.ConversionError, match=REMEDY.get(name, ".")):
            ab.convert(a, "numpy")
        made = ab.adapt(name, dtype=HALF)(lambda b: b)(a)  # not the argument that it was
        assert "float16" in str(made.dtype)
        return made

    result = np.asarray(TRACED[case](look))
    assert seen
    assert (result.dtype, result.tolist()) == ("float16", [[1, 1]] * 3)


@needs("jax")
def test_traced_casts_of_jax():
    """Gradients pass; what JAX narrows is refused; so is the place where a program runs."""
    jnp, x = jax.numpy, jax.numpy.array([3.0, 4.0])
    norm = ab.adapt("jax", dtype=HALF)(lambda a: jnp.sqrt((a * a).sum()))
    assert np.allclose(jax.grad(lambda a: norm(a).astype("f4"))(x), [0.6, 0.8], atol=1e-3)
    with pytest.raises(ab.ConversionError, match="jax has no float64: 64-bit"):
        jax.jit(lambda a: ab.convert(a, "jax", dtype="float64"))(x)
    _, made, rest = jax.jit(lambda a: (0, *ab.unify(a, np.ones(2), dtype="float16")[1:]))(x)
    assert made.dtype == rest.dtype == "float16"
    (b,) = jax.export.symbolic_shape("b")
    half = jax.jit(lambda a: ab.convert(a, "jax", dtype="float16"))
    exported = jax.export.export(half)(jax.ShapeDtypeStruct((b, 3), "float32"))
    assert exported.call(jnp.ones((2, 3))).dtype == "float16"


@needs("jax")
def test_keys_of_random_numbers_pass_unchanged():
    key = jax.random.key(0)
    draw = ab.adapt("jax", dtype=HALF)(jax.random.uniform)
    assert draw(key) == jax.random.uniform(key) == jax.jit(draw)(key)
    with pytest.raises(ab.ConversionError, match="key_data"):
        ab.convert(key, "numpy")


@pytest.mark.heavy
@needs("mlx")
def test_gradients_of_mlx_pass_its_cast():
    import mlx.core as mx

    square = ab.adapt("mlx", dtype=HALF)(lambda a: (a * a).sum())
    assert mx.grad(square)(mx.array([3.0, 4.0])).tolist() == [6, 8]
