"""adapt(differentiable=True): gradients across functions of PyTorch and JAX."""

from __future__ import annotations

import dataclasses
import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.test_util import check_grads

import arraybridge as ab

torch = pytest.importorskip("torch")
fake = pytest.importorskip("torch._subclasses.fake_tensor")

KINDS = {"plain": lambda f: f, "jitted": jax.jit}


@pytest.fixture(params=KINDS)
def jitted(request):
    """Make a function of JAX, compiled or not."""
    return KINDS[request.param]


@pytest.fixture(autouse=True)
def wide():
    with jax.enable_x64(True):
        yield


def of_jax(function, **terms):
    return ab.adapt("jax", differentiable=True, **terms)(function)


def of_torch(function, **terms):
    return ab.adapt("torch", differentiable=True, **terms)(function)


def tensor(*shape, dtype=None, requires_grad=True):
    generator = torch.Generator().manual_seed(sum(shape))
    dtype = dtype or torch.float64
    return torch.randn(*shape, dtype=dtype, generator=generator).requires_grad_(requires_grad)


def array(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape))


class TestPyTorchCalls:
    """A function of JAX in PyTorch's graph."""

    def test_gradients(self, jitted):
        f = of_jax(jitted(lambda x, y: jnp.tanh(x @ y).sum(axis=0)))
        assert torch.autograd.gradcheck(f, (tensor(3, 4), tensor(4, 2)))

    def test_second_and_third_order(self, jitted):
        f = of_jax(jitted(lambda x, y: jnp.sin(x * y)))
        assert torch.autograd.gradgradcheck(f, (tensor(2), tensor(2)), fast_mode=True)
        x = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
        y = of_jax(jitted(lambda x: x**4))(x)
        for right in (4 * 0.5**3, 12 * 0.5**2, 24 * 0.5):
            (y,) = torch.autograd.grad(y, x, create_graph=True)
            assert y.item() == pytest.approx(right)

    def test_complex(self, jitted):
        z = tensor(2, dtype=torch.complex128)
        f = of_jax(jitted(lambda z: (z**2 * jnp.conj(z), jnp.abs(z))))
        assert torch.autograd.gradcheck(f, (z,))
        assert torch.autograd.gradgradcheck(f, (z,), fast_mode=True)
        real = of_jax(jitted(lambda x: jnp.exp(1j * x)))
        assert torch.autograd.gradcheck(real, (tensor(2),))

    def test_trees(self, jitted):
        f = of_jax(jitted(lambda t, k: {"a": [t["x"] * k["s"]], "b": (t["y"][0].sum(), None)}))
        x, y, s = tensor(3), tensor(2, 2), tensor(3)
        result = f({"x": x, "y": (y,)}, k={"s": s})
        assert result["b"][1] is None
        (result["a"][0].sum() + result["b"][0]).backward()
        torch.testing.assert_close(x.grad, s.detach())
        torch.testing.assert_close(s.grad, x.detach())
        torch.testing.assert_close(y.grad, torch.ones(2, 2, dtype=torch.float64))

    def test_dataclasses(self):
        @dataclasses.dataclass
        class Pair:
            a: object
            b: object

        x = tensor(3)
        result = of_jax(lambda p: Pair(p.a * 2, p.b))(Pair(x, "b"))
        assert result.b == "b"
        result.a.sum().backward()
        assert x.grad.tolist() == [2, 2, 2]

    def test_what_is_not_followed(self, jitted):
        """Constants, integers, numbers: no gradient, and no mark on the result."""
        f = of_jax(jitted(lambda x, i, c, n, k: (x[i] * c * n + k, jnp.argmax(x), i)))
        x, i = tensor(3), torch.tensor([2, 0])
        constant = tensor(2, requires_grad=False)
        y, place, same = f(x, i, constant, np.ones(2), 1.5)
        assert y.requires_grad
        assert not place.requires_grad
        assert place.dtype == same.dtype == torch.int64
        y.sum().backward()
        expected = torch.zeros(3, dtype=torch.float64)
        expected[i] = constant
        torch.testing.assert_close(x.grad, expected)
        assert constant.grad is None
        assert place.item() == x.argmax().item()

    def test_static_arguments(self):
        f = of_jax(jax.jit(lambda x, n, *, how: x**n if how == "power" else x, static_argnums=1,
                           static_argnames="how"))  # fmt: skip
        x = tensor(3)
        for n in (2, 3, 2):
            (g,) = torch.autograd.grad(f(x, n, how="power").sum(), x)
            torch.testing.assert_close(g, n * x.detach() ** (n - 1))
        assert f(x, 2, how="not").tolist() == x.tolist()

    def test_static_arrays(self):
        f = of_jax(jax.jit(lambda x, y: x, static_argnums=1))
        with pytest.raises(TypeError, match="static argument 1 is an array whose gradient"):
            f(tensor(3), tensor(3))

    def test_scalars_are_not_compiled_anew(self):
        traced = []

        @of_jax
        @jax.jit
        def f(x, rate):
            traced.append(1)
            return x * rate

        x = tensor(3)
        for rate in (0.1, 0.2, 0.3):
            torch.testing.assert_close(f(x, rate), x * rate)
        assert len(traced) == 1

    def test_values_may_be_looked_at_unless_compiled(self):
        f = of_jax(lambda x: x * 2 if x[0] > 0 else x * 3)
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        f(x).sum().backward()
        assert x.grad.tolist() == [2, 2]
        assert f(-x).tolist() == [-3, -6]

    def test_unused(self, jitted):
        f = of_jax(jitted(lambda x, y: (x * 2, x.sum() * 0 + 1)))
        x, y = tensor(3), tensor(3)
        first, second = f(x, y)
        gx, gy = torch.autograd.grad(first.sum(), (x, y), retain_graph=True)
        assert gx.tolist() == [2, 2, 2]
        assert gy.tolist() == [0, 0, 0]
        (gx,) = torch.autograd.grad(second, x)
        assert gx.tolist() == [0, 0, 0]

    def test_one_tensor_twice(self, jitted):
        x = tensor(3)
        of_jax(jitted(lambda x, y: x * y))(x, x).sum().backward()
        torch.testing.assert_close(x.grad, 2 * x.detach())

    def test_the_argument_returned_is_no_alias(self, jitted):
        x = tensor(3)
        y = of_jax(jitted(lambda x: x))(x)
        assert y.data_ptr() != x.data_ptr()
        y.sum().backward()
        assert x.grad.tolist() == [1, 1, 1]

    def test_retained(self, jitted):
        x = tensor(3)
        y = of_jax(jitted(lambda x: x**3))(x).sum()
        y.backward(retain_graph=True)
        y.backward()
        torch.testing.assert_close(x.grad, 6 * x.detach() ** 2)
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            y.backward()

    def test_written_before_backward(self, jitted):
        x = tensor(3)
        w = x * 1
        y = of_jax(jitted(jnp.sin))(w)
        w.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()

    def test_what_was_saved_is_freed(self):
        kept = []

        def f(x):
            y = jnp.exp(x)
            kept.append(weakref.ref(y) if not isinstance(y, jax.core.Tracer) else None)
            return y

        x = tensor(1000)
        loss = of_jax(jax.jit(f))(x).sum()
        node = loss.grad_fn.next_functions[0][0]
        pull = weakref.ref(node.saved_tensors[-1].call)
        loss.backward()
        gc.collect()
        assert pull() is None

    def test_constants_are_freed_with_the_graph(self, jitted):
        """Nothing waits for the garbage collector."""
        f, x, c = of_jax(jitted(jnp.multiply)), tensor(3), tensor(3, requires_grad=False)
        place = weakref.ref(c)
        f(x, c).sum().backward()
        gc.disable()
        try:
            y = f(x, c)
            y.sum().backward()
            del c, y
            assert place() is None
        finally:
            gc.enable()

    def test_what_was_compiled_is_freed_with_the_function(self):
        client = jax.devices()[0].client
        counts = []
        for scale in range(1, 3):
            f = of_jax(jax.jit(lambda x, scale=scale: jnp.sin(x) * scale))
            f(tensor(3)).sum().backward()
            del f
            gc.collect()
            counts.append(len(client.live_executables()))
        assert counts[0] == counts[1]

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    @pytest.mark.parametrize("reentrant", [False, True])
    def test_checkpoint(self, reentrant, jitted):
        f = of_jax(jitted(jnp.sin))
        x = tensor(3)
        y = torch.utils.checkpoint.checkpoint(lambda x: f(x * 2), x, use_reentrant=reentrant)
        y.sum().backward()
        torch.testing.assert_close(x.grad, 2 * torch.cos(2 * x.detach()))

    def test_packed(self, jitted):
        f, x = of_jax(jitted(jnp.sin)), tensor(3)
        with torch.autograd.graph.save_on_cpu():
            y = f(x)
        y.sum().backward()
        torch.testing.assert_close(x.grad, torch.cos(x.detach()))

    def test_without_gradients(self, jitted):
        f, x = of_jax(jitted(jnp.sin)), tensor(3)
        with torch.no_grad():
            assert not f(x).requires_grad
        with torch.inference_mode():
            torch.testing.assert_close(f(x), torch.sin(x.detach()))
        assert not f(x.detach()).requires_grad
        assert isinstance(f(np.ones(3)), np.ndarray)
        assert isinstance(f(jnp.ones(3)), jax.Array)

    def test_arrays(self, jitted):
        x = tensor(3)
        y = of_jax(jitted(jnp.sin))(ab.from_dlpack(x))
        assert isinstance(y, ab.Array)
        y.native.sum().backward()
        torch.testing.assert_close(x.grad, torch.cos(x.detach()))

    def test_torch_func(self, jitted):
        f = of_jax(jitted(lambda x, y: jnp.tanh(x @ y)))
        x, y = tensor(2, 3, requires_grad=False), tensor(3, 2, requires_grad=False)

        def plain(x, y):
            return torch.tanh(x @ y)

        for transform in (
            lambda f: torch.func.grad(lambda x: f(x, y).sum()),
            lambda f: torch.func.jacrev(lambda x: f(x, y)),
            lambda f: lambda x: torch.func.vjp(f, x, y)[1](torch.ones(2, 2, dtype=torch.float64)),
            lambda f: torch.func.grad(
                lambda x: torch.func.grad(lambda x: f(x, y).sum())(x).square().sum()
            ),
        ):  # fmt: skip
            torch.testing.assert_close(transform(f)(x), transform(plain)(x))

    def test_vmap(self, jitted):
        f = of_jax(jitted(lambda x, y: jnp.tanh(x @ y)))
        xs, y = tensor(5, 2, 3, requires_grad=False), tensor(3, 2, requires_grad=False)
        torch.testing.assert_close(torch.func.vmap(f, in_dims=(0, None))(xs, y), torch.tanh(xs @ y))
        each = torch.func.vmap(torch.func.grad(lambda x, y: f(x, y).sum()), in_dims=(0, None))
        right = torch.func.vmap(torch.func.grad(lambda x, y: torch.tanh(x @ y).sum()), (0, None))
        torch.testing.assert_close(each(xs, y), right(xs, y))

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of PyTorch about its own
    def test_forward_mode_is_refused(self):
        f, x = of_jax(jnp.sin), tensor(3, requires_grad=False)
        with pytest.raises(RuntimeError, match="forward mode AD"):
            torch.func.jvp(f, (x,), (x,))

    def test_modules_train(self):
        """What a JAX function in the middle of a model learns is what PyTorch's own learns."""
        losses = []
        for activation in (of_jax(jax.jit(jax.nn.softplus)), torch.nn.functional.softplus):
            torch.manual_seed(0)
            first, last = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)
            optimizer = torch.optim.Adam([*first.parameters(), *last.parameters()], lr=0.02)
            x = torch.linspace(-1, 1, 64).reshape(16, 4)
            for _ in range(20):
                optimizer.zero_grad()
                loss = ((last(activation(first(x))) - x.sum(1, keepdim=True)) ** 2).mean()
                loss.backward()
                optimizer.step()
            losses.append(loss.item())
        assert losses[0] == pytest.approx(losses[1], rel=1e-4)

    def test_narrow(self):
        f = of_jax(jnp.sin)
        with jax.enable_x64(False):
            with pytest.raises(ab.ConversionError, match="enable it with"):
                f(tensor(3))
            x = torch.ones(3, requires_grad=True)
            f(x).sum().backward()
        assert x.grad.dtype == torch.float32

    def test_errors_of_the_function(self, jitted):
        def f(x):
            raise ZeroDivisionError("on purpose")

        with pytest.raises(ZeroDivisionError, match="on purpose"):
            of_jax(jitted(f))(tensor(3))

    def test_empty(self, jitted):
        x = tensor(0, 3)
        of_jax(jitted(lambda x: x * 2))(x).sum().backward()
        assert x.grad.shape == (0, 3)


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


class TestMemory:
    """Of a compiled function: views both ways, as long as nobody can tell."""

    def test_arguments_are_views(self):
        seen = []
        f = of_jax(jax.jit(lambda x, c: x * c))
        x, c = tensor(64), tensor(64, requires_grad=False)
        with pytest.MonkeyPatch.context() as patch:
            from arraybridge.libraries.jax import gradients

            compiled = gradients.compiled
            patch.setattr(gradients, "compiled", lambda *a: seen.append(a) or compiled(*a))
            f(x, c)
        flat, (given_,) = seen[0]
        assert given_.unsafe_buffer_pointer() == x.data_ptr()
        assert flat.call[1][1].unsafe_buffer_pointer() == c.data_ptr()

    def test_results_are_memory_of_their_own(self):
        """XLA's results share memory with nothing: this is what `borrows` relies upon."""
        constant = jnp.arange(64.0)
        f = jax.jit(lambda x: jax.vjp(lambda x: (x, x, jnp.exp(x), constant, x[:4]), x))
        x = jnp.ones(64)
        places = [y.unsafe_buffer_pointer() for y in jax.tree_util.tree_leaves((x, constant, f(x)))]
        assert len(set(places)) == len(places)

    def test_writing_afterwards(self, jitted):
        """Neither arguments nor results are shared with what JAX has kept."""
        constant = jnp.ones(64)
        f = of_jax(jitted(lambda x, c: (jnp.exp(x) * c, x, constant)))
        x, c = tensor(64), tensor(64, requires_grad=False)
        right = torch.exp(x.detach()) * c
        y, same, ones = f(x, c)
        expected = y.detach().clone()
        same.detach().numpy()[:] = 7
        ones.detach().numpy()[:] = 7
        torch.testing.assert_close(y.detach(), expected)
        y.sum().backward()
        torch.testing.assert_close(x.grad, right)
        assert constant.tolist() == [1] * 64
        again = f(x, torch.ones(64, dtype=torch.float64))[2]
        assert again.tolist() == [1] * 64

    def test_constants_that_are_written(self):
        """As with PyTorch's own operations: what the graph needs must not change before."""
        x, c = tensor(64), tensor(64, requires_grad=False)
        for f in (of_jax(jax.jit(lambda x, c: x * c)), lambda x, c: x * c):
            y = f(x, c)
            c.fill_(7)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.sum().backward()

    def test_constants_of_others_are_copies(self, jitted):
        x, c = tensor(64), np.ones(64)
        y = of_jax(jitted(lambda x, c: x * x * c))(x, c)
        c[:] = 7
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        torch.testing.assert_close(g, 2 * x)
        g.sum().backward()
        assert x.grad.tolist() == [2] * 64

    def test_gradients_may_be_written(self, jitted):
        x = tensor(64)
        y = of_jax(jitted(lambda x: x * 2))(x).sum()
        (first,) = torch.autograd.grad(y, x, retain_graph=True)
        first.fill_(9)
        (second,) = torch.autograd.grad(y, x)
        assert second.tolist() == [2] * 64

    def test_donated_arguments_are_copies(self):
        f = of_jax(jax.jit(lambda x: x + 1, donate_argnums=0))
        x = tensor(64)
        before = x.detach().clone()
        with torch.no_grad():
            f(x)
        assert torch.equal(x.detach(), before)
        f(x).sum().backward()
        assert torch.equal(x.detach(), before)

    def test_the_copy_that_was_asked_for(self, jitted):
        f = of_jax(jitted(lambda x: x * 2), copy=True)
        x = tensor(64)
        f(x).sum().backward()
        assert x.grad.tolist() == [2] * 64


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

    def test_modules(self):
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        module.double()
        x = array(5, 3)
        found = jax.jit(jax.grad(lambda x: of_torch(module)(x).sum()))(x)
        t = torch.tensor(np.asarray(x), requires_grad=True)
        module(t).sum().backward()
        np.testing.assert_allclose(found, t.grad)

    def test_vmap(self):
        f = of_torch(lambda x: (x**2).sum())
        xs = array(4, 3)
        np.testing.assert_allclose(jax.vmap(f)(xs), (xs**2).sum(1))
        np.testing.assert_allclose(jax.vmap(jax.grad(f))(xs), 2 * xs)
        np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(f)))(xs), 2 * xs)
        # Hessians: the gradient's own gradient, mapped.
        np.testing.assert_allclose(jax.jacrev(jax.grad(f))(xs[0]), 2 * np.eye(3))

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


@settings(max_examples=12, deadline=None)
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


@settings(max_examples=12, deadline=None)
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
