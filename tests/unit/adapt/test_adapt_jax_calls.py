"""adapt(differentiable=True): functions of PyTorch in what JAX traces."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import arraybridge as ab
from tests.support.gradients import array, of_torch

torch = pytest.importorskip("torch")
fake = pytest.importorskip("torch._subclasses.fake_tensor")

pytestmark = pytest.mark.usefixtures("x64")


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
        assert jax.grad(lambda x: f(x)[0].sum())(array(2)).tolist() == [2, 2]
        assert jax.grad(lambda x: f(x)[1].sum())(array(2)).tolist() == [0, 0]
        assert jax.grad(lambda x: f(x)[2].sum())(array(2)).tolist() == [0, 0]

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
