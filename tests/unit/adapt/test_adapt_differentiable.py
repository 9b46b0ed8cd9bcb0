"""adapt(differentiable=True): trees, casts and refusals, whoever calls."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import arraybridge as ab
from tests.support.gradients import array, of_jax, of_torch, tensor

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("x64")


class TestCasts:
    """dtype=: the cast is part of the graph."""

    def test_pytorch_calls(self, jitted):
        f = of_jax(jitted(lambda x, c: x * c), dtype={"float64": "float32"})
        with jax.enable_x64(False):
            x, c = tensor(3), tensor(3, requires_grad=False)
            y = f(x, c)
            assert y.dtype == torch.float32
            (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
            assert g.dtype == torch.float64
            torch.testing.assert_close(g.detach(), c, rtol=1e-6, atol=1e-6)
            assert f(x.detach(), c).dtype == torch.float32

    def test_jax_calls(self):
        f = of_torch(lambda x: x * 2, dtype="float32")
        assert jax.jit(f)(array(3)).dtype == jnp.float32
        assert jax.grad(lambda x: f(x).sum())(array(3)).dtype == jnp.float64
        g = ab.adapt("numpy", callback=True, dtype="float32", result_shape_dtypes=lambda x: x)
        assert jax.jit(g(np.sort))(array(3)).dtype == jnp.float32

    def test_rules(self):
        f = of_jax(jnp.sin, dtype="float32", casting="safe")
        with pytest.raises(ab.ConversionError, match="casting='safe' does not allow that from"):
            f(tensor(3))
        with pytest.raises(ValueError, match="go without differentiable"):
            ab.adapt("jax", dtype="float32", casting="same_value", differentiable=True)


@st.composite
def trees(draw):
    """A tree of shapes, numbers and None."""
    leaf = st.one_of(
        st.lists(st.integers(0, 3), max_size=2).map(lambda shape: ("array", tuple(shape))),
        st.sampled_from([None, 2.5, 3]),
    )
    nested = st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.tuples(inner, inner),
            st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
        ),
        max_leaves=6,
    )
    return draw(st.lists(nested, min_size=1, max_size=3))


def made(tree, make):
    """Replace the shapes of a tree."""
    if isinstance(tree, tuple) and tree[:1] == ("array",):
        return make(tree[1])
    if isinstance(tree, dict):
        return {key: made(item, make) for key, item in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(made(item, make) for item in tree)
    return tree


def numbers(tree):
    return [x for x in jax.tree_util.tree_leaves(tree) if hasattr(x, "shape")]


def doubled(tree):
    """A function of PyTorch as well as of JAX, of the tree's own structure."""
    return jax.tree_util.tree_map(lambda x: x * x if hasattr(x, "shape") else x, tree)


@settings(max_examples=6, deadline=None)
@given(trees())
def test_trees_of_torch(tree):
    given_ = made(tree, lambda shape: torch.full(shape, 3.0, requires_grad=True))
    result = of_jax(doubled)(given_)
    assert jax.tree_util.tree_structure(result) == jax.tree_util.tree_structure(given_)
    tensors = numbers(given_)
    for x, y in zip(tensors, numbers(result), strict=True):
        assert y.requires_grad
        assert torch.equal(y, x * x)
    if tensors:
        sum(y.sum() for y in numbers(result)).backward()
        assert all(torch.equal(x.grad, 2 * x) for x in tensors)


@settings(max_examples=6, deadline=None)
@given(trees())
def test_trees_of_jax(tree):
    given_ = made(tree, lambda shape: jnp.full(shape, 3.0))
    arrays, structure = jax.tree_util.tree_flatten(given_)
    floats = [x for x in arrays if hasattr(x, "shape")]
    if not floats:
        return

    def loss(floats):
        rest = iter(floats)
        filled = [next(rest) if hasattr(x, "shape") else x for x in arrays]
        result = of_torch(doubled)(jax.tree_util.tree_unflatten(structure, filled))
        assert jax.tree_util.tree_structure(result) == structure
        return sum(y.sum() for y in numbers(result))

    for x, g in zip(floats, jax.grad(loss)(floats), strict=True):
        np.testing.assert_array_equal(g, 2 * x)


class TestRefusals:
    def test_names_the_keyword(self):
        with pytest.raises(ab.ConversionError, match="gradients are tracked") as caught:
            ab.adapt("jax")(jnp.sin)(tensor(3))
        assert any("differentiable=True" in note for note in caught.value.__notes__)
        with pytest.raises(ab.ConversionError, match="gradients are tracked") as caught:
            ab.adapt("numpy")(np.sin)(tensor(3))
        assert not any("differentiable=True" in note for note in caught.value.__notes__)

    def test_tracers(self):
        with pytest.raises(ab.ConversionError, match="tracer") as caught:
            jax.jit(ab.adapt("torch")(torch.sin))(array(3))
        notes = "".join(caught.value.__notes__)
        assert "callback=True or differentiable=True" in notes
        with pytest.raises(ab.ConversionError, match="tracer") as caught:
            jax.jit(ab.adapt("numpy")(np.sin))(array(3))
        assert "pass callback=True to adapt" in "".join(caught.value.__notes__)

    def test_libraries_without_gradients(self):
        with pytest.raises(ValueError, match="numpy has no gradients"):
            ab.adapt("numpy", differentiable=True)

    def test_results_of_others(self):
        with pytest.raises(ValueError, match="goes without"):
            ab.adapt("jax", differentiable=True, result="numpy")

    def test_results_like_what_is_not_followed(self):
        f = of_jax(lambda x, y: x * y, result_like="x")
        x, c = tensor(3), tensor(3, requires_grad=False)
        assert isinstance(f(ab.from_dlpack(c), x), ab.Array)
        assert isinstance(f(c, ab.from_dlpack(x)), torch.Tensor)
        for other in (np.ones(3), 2.0):
            with pytest.raises(ab.ConversionError, match=r"is no array of torch, which follows"):
                f(other, x)

    def test_two_libraries(self):
        f = ab.adapt("numpy", callback=True)(np.add)
        with pytest.raises(ab.ConversionError, match="gradients are tracked"):
            jax.jit(lambda x: f(x, tensor(3)))(array(3))

    def test_generators(self):
        with pytest.raises(TypeError, match="for functions that return"):

            @ab.adapt("jax", differentiable=True)
            def f(x):
                yield x
