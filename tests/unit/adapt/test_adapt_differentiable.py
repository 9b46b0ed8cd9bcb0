"""adapt(differentiable=True): trees, casts, refusals; functions of PyTorch in what JAX traces."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.test_util import check_grads

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
        with pytest.raises(ab.ConversionError, match="casting='safe' does not allow that cast"):
            f(tensor(3))


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
        for library, function in (("jax", jnp.sin), ("numpy", np.sin)):
            with pytest.raises(ab.ConversionError, match="gradients are tracked") as caught:
                ab.adapt(library)(function)(tensor(3))
            told = any("differentiable=True" in note for note in caught.value.__notes__)
            assert told == (library == "jax")

    @pytest.mark.parametrize(
        ("library", "function", "remedy"),
        [
            ("torch", torch.sin, "callback=True or differentiable=True"),
            ("numpy", np.sin, "pass callback=True to adapt"),
        ],
    )
    def test_tracers(self, library, function, remedy):
        with pytest.raises(ab.ConversionError, match="tracer") as caught:
            jax.jit(ab.adapt(library)(function))(array(3))
        assert remedy in "".join(caught.value.__notes__)

    @pytest.mark.parametrize(
        ("library", "options", "match"),
        [
            ("numpy", {}, "numpy has no gradients"),
            ("jax", {"result": "numpy"}, "cannot be combined with"),
            ("jax", {"dtype": "float32", "casting": "same_value"}, "combined with differentiable"),
        ],
    )
    def test_keywords(self, library, options, match):
        with pytest.raises(ValueError, match=match):
            ab.adapt(library, differentiable=True, **options)

    def test_generators(self):
        def f(x):
            yield x

        with pytest.raises(TypeError, match="need a plain function"):
            of_jax(f)

    def test_results_like_what_is_not_followed(self):
        f = of_jax(lambda x, y: x * y, result_like="x")
        x, c = tensor(3), tensor(3, requires_grad=False)
        assert isinstance(f(ab.from_dlpack(c), x), ab.Array)
        assert isinstance(f(c, ab.from_dlpack(x)), torch.Tensor)
        for other in (np.ones(3), 2.0):
            with pytest.raises(ab.ConversionError, match=r"is not an array of torch, which tracks"):
                f(other, x)

    def test_two_libraries(self):
        f = ab.adapt("numpy", callback=True)(np.add)
        with pytest.raises(ab.ConversionError, match="gradients are tracked"):
            jax.jit(lambda x: f(x, tensor(3)))(array(3))


fake = pytest.importorskip("torch._subclasses.fake_tensor")


class TestJaxCalls:
    """A function of PyTorch in what JAX traces."""

    @pytest.mark.parametrize("outer", [lambda f: f, jax.jit], ids=["eager", "jit"])
    def test_gradients(self, outer):
        f = outer(of_torch(lambda x, y: torch.tanh(x @ y).sum(0)))
        check_grads(f, (array(3, 4), array(4, 2)), order=2, modes=["rev"])

    def test_complex(self):
        z = array(3) + 1j * array(3, seed=1)
        f = of_torch(lambda z: (z**2 * z.conj(), z.abs(), z.imag))
        check_grads(f, (z,), order=2, modes=["rev"])

    def test_trees(self):
        f = of_torch(lambda t, *, k: {"a": [t["x"] * k], "b": (t["y"][0].sum(), None)})
        tree = {"x": array(3), "y": (array(2),)}

        def loss(tree, k):
            result = f(tree, k=k)
            assert result["b"][1] is None
            return result["a"][0].sum() + result["b"][0]

        grads = jax.jit(jax.grad(loss))(tree, array(3, seed=2))
        np.testing.assert_allclose(grads["x"], array(3, seed=2))
        np.testing.assert_allclose(grads["y"][0], np.ones(2))

    def test_integers(self):
        f = of_torch(lambda x, i: (x[i] * 2, i + 1, x.argmax()))

        @jax.jit
        def loss(x, i):
            y, j, k = f(x, i)
            return y.sum(), (j, k)

        x = array(3)
        grad, (j, k) = jax.grad(loss, has_aux=True)(x, jnp.asarray([2, 2]))
        assert grad.tolist() == [0, 0, 4]
        assert j.tolist() == [3, 3]
        assert k == jnp.argmax(x)

    def test_only_what_is_asked_for(self):
        asked = []

        def f(x, y):
            asked.append((x.requires_grad, y.requires_grad))
            return (x * y).sum()

        jax.jit(jax.grad(of_torch(f)))(array(3), array(3))
        assert (True, False) in asked
        assert (True, True) not in asked

    def test_several_results_of_which_one_is_used(self):
        f = of_torch(lambda x: (x * 2, x.detach() * 3, torch.ones(2, dtype=x.dtype)))
        for place, right in enumerate((2, 0, 0)):
            assert jax.grad(lambda x, n=place: f(x)[n].sum())(array(2)).tolist() == [right] * 2

    @pytest.mark.parametrize("method", ["expand_dims", "broadcast_all"])
    def test_vmap_at_once(self, method):
        calls = []

        def f(x, y):
            calls.append(x.shape)
            return torch.sin(x) * y

        g = of_torch(f, vmap_method=method)
        xs, y = array(4, 3), array(3, seed=1)
        found = jax.vmap(g, in_axes=(0, None))(xs, y)
        np.testing.assert_allclose(found, np.sin(xs) * y)
        assert calls[1:] == [(4, 3)]
        gradient = jax.vmap(jax.grad(lambda x: g(x, y).sum()))(xs)
        np.testing.assert_allclose(gradient, np.cos(xs) * y, rtol=1e-6)

    def test_numbers(self):
        f = of_torch(lambda x: torch.sin(x) * 2)
        assert float(jax.grad(f)(0.5)) == pytest.approx(2 * np.cos(0.5))
        assert float(jax.grad(jax.grad(f))(0.5)) == pytest.approx(-2 * np.sin(0.5))

    def test_nothing_is_compiled_for_values(self):
        """Outside of ``jax.jit`` each call would be another program, which JAX keeps."""
        f = of_torch(torch.sin)
        device = jax.devices()[0]

        def each(x):
            y, pull = jax.vjp(f, x)
            return y, *pull(jnp.ones(3))

        counts = []
        for _ in range(2):
            for x in (array(3, seed=1), jax.device_put(array(3, seed=2), device)):
                for y, right in zip(each(x), (np.sin(x), np.cos(x)), strict=True):
                    np.testing.assert_allclose(y, right)
                    assert y.committed == x.committed
                    assert y.devices() == {device}
            counts.append(len(device.client.live_executables()))
        assert counts[0] == counts[1]

    def test_the_callers_modes(self):
        """Gradients are there in ``no_grad`` and in ``inference_mode``."""
        x, c = array(3), array(3, seed=1)
        f = of_torch(lambda x, c: x * x * c)
        for mode in (torch.no_grad, torch.inference_mode):
            for outer in (lambda f: f, jax.jit):
                with mode():
                    found = outer(jax.grad(lambda x: f(x, c).sum()))(x)
                np.testing.assert_allclose(found, 2 * x * c)

    def test_forward_mode_is_refused(self):
        with pytest.raises(TypeError, match="forward-mode"):
            jax.jvp(of_torch(torch.sin), (array(3),), (array(3),))

    def test_scan(self):
        f = of_torch(lambda c, x: torch.sin(c) + x)
        xs = array(5)

        def loss(c):
            return jax.lax.scan(lambda c, x: (f(c, x), None), c, xs)[0]

        def right(c):
            return jax.lax.scan(lambda c, x: (jnp.sin(c) + x, None), c, xs)[0]

        np.testing.assert_allclose(jax.grad(loss)(0.5), jax.grad(right)(0.5))

    def test_arrays(self):
        f = of_torch(torch.sin)
        found = jax.jit(lambda x: f(x))(ab.from_dlpack(array(3)))
        assert isinstance(found, ab.Array)
        np.testing.assert_allclose(found.native, np.sin(array(3)))

    def test_bfloat16(self):
        x = array(3).astype(jnp.bfloat16)
        grad = jax.jit(jax.grad(lambda x: of_torch(lambda x: (x * 2).sum())(x)))(x)
        assert grad.dtype == jnp.bfloat16
        assert grad.tolist() == [2, 2, 2]

    def test_narrow(self):
        f = of_torch(lambda x: x.argmax())
        with jax.enable_x64(False), pytest.raises(ab.ConversionError, match="narrow while x64"):
            jax.jit(f)(jnp.ones(3))

    def test_values_that_are_looked_at(self):
        def f(x):
            return x * 2 if x.sum() > 0 else x * 3

        with pytest.raises(fake.DataDependentOutputException) as caught:
            jax.jit(of_torch(f))(array(3))
        assert any("result_shape_dtypes" in note for note in caught.value.__notes__)
        g = of_torch(f, result_shape_dtypes=lambda x: x)
        assert jax.grad(lambda x: g(x).sum())(jnp.ones(2)).tolist() == [2, 2]
        assert jax.jit(jax.grad(lambda x: g(x).sum()))(-jnp.ones(2)).tolist() == [3, 3]

    def test_values_without_a_trace(self):
        """Nothing is followed: the arrays are converted, as ever."""
        seen = []
        f = of_torch(lambda x: seen.append(type(x)) or x * 2)
        assert f(array(3)).shape == (3,)
        assert seen == [torch.Tensor]
