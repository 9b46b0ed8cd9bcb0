"""adapt(differentiable=True): functions of JAX in PyTorch's graph."""

from __future__ import annotations

import dataclasses
import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import arraybridge as ab
from tests.support.gradients import of_jax, tensor

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("x64")


def packed(f, x):
    with torch.autograd.graph.save_on_cpu():
        return f(x)


checkpoint = torch.utils.checkpoint.checkpoint
GRADIENTS = {  # a function of JAX, a call of it with x, and the gradient of what that gives
    "a tensor twice": (lambda x, y: x * y, lambda f, x: f(x, x), lambda x: 2 * x),
    "the argument": (lambda x: x, lambda f, x: f(x), torch.ones_like),
    "no elements": (lambda x: x * 2, lambda f, x: f(x[:0]), torch.zeros_like),
    "an Array": (jnp.sin, lambda f, x: f(ab.from_dlpack(x)).native, torch.cos),
    "a checkpoint": (jnp.sin, lambda f, x: checkpoint(f, x, use_reentrant=False), torch.cos),
    "a reentrant one": (jnp.sin, lambda f, x: checkpoint(f, x, use_reentrant=True), torch.cos),
    "packed": (jnp.sin, packed, torch.cos),
}


class TestPyTorchCalls:
    """A function of JAX in PyTorch's graph."""

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    @pytest.mark.parametrize(("function", "call", "right"), GRADIENTS.values(), ids=GRADIENTS)
    def test_gradients(self, function, call, right, jitted):
        x = tensor(3, 2)
        y = call(of_jax(jitted(function)), x)
        assert y.data_ptr() != x.data_ptr()  # of the argument itself, too
        y.sum().backward()
        torch.testing.assert_close(x.grad, right(x.detach()))

    def test_gradients_by_differences(self, jitted):
        f = of_jax(jitted(lambda x, y: jnp.tanh(x @ y).sum(axis=0)))
        assert torch.autograd.gradcheck(f, (tensor(2, 3), tensor(3, 2)), fast_mode=True)

    def test_second_and_third_order(self):
        """What is not compiled takes the same way from the second on."""
        f = of_jax(jax.jit(lambda x, y: jnp.sin(x * y)))
        assert torch.autograd.gradgradcheck(f, (tensor(2), tensor(2)), fast_mode=True)
        x = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
        y = of_jax(jax.jit(lambda x: x**4))(x)
        for right in (4 * 0.5**3, 12 * 0.5**2, 24 * 0.5):
            (y,) = torch.autograd.grad(y, x, create_graph=True)
            assert y.item() == pytest.approx(right)

    def test_complex(self, jitted):
        z = tensor(2, dtype=torch.complex128)
        f = of_jax(jitted(lambda z: (z**2 * jnp.conj(z), jnp.abs(z))))
        assert torch.autograd.gradcheck(f, (z,), fast_mode=True)
        if jitted is jax.jit:
            assert torch.autograd.gradgradcheck(f, (z,), fast_mode=True)
        real = of_jax(jitted(lambda x: jnp.exp(1j * x)))
        assert torch.autograd.gradcheck(real, (tensor(2),), fast_mode=True)

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

    def test_retained(self, jitted):
        x = tensor(3)
        y = of_jax(jitted(lambda x: x**3))(x).sum()
        y.backward(retain_graph=True)
        y.backward()
        torch.testing.assert_close(x.grad, 6 * x.detach() ** 2)
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            y.backward()

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

    def test_without_gradients(self, jitted):
        f, x = of_jax(jitted(jnp.sin)), tensor(3)
        with torch.no_grad():
            assert not f(x).requires_grad
        with torch.inference_mode():
            torch.testing.assert_close(f(x), torch.sin(x.detach()))
        assert not f(x.detach()).requires_grad
        assert isinstance(f(np.ones(3)), np.ndarray)
        assert isinstance(f(jnp.ones(3)), jax.Array)

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of PyTorch about its own
    def test_forward_mode_is_refused(self):
        f, x = of_jax(jnp.sin), tensor(3, requires_grad=False)
        with pytest.raises(RuntimeError, match="forward mode AD"):
            torch.func.jvp(f, (x,), (x,))

    def test_narrow(self):
        f = of_jax(jnp.sin)
        with jax.enable_x64(False):
            with pytest.raises(ab.ConversionError, match="enable it with"):
                f(tensor(3))
            x = torch.ones(3, requires_grad=True)
            f(x).sum().backward()
        assert x.grad.dtype == torch.float32


class TestMemory:
    """In a compiled function: views both ways, as long as that cannot be observed."""

    def test_arguments_are_views(self):
        seen = []
        f = of_jax(jax.jit(lambda x, c: x * c))
        x, c = tensor(64), tensor(64, requires_grad=False)
        with pytest.MonkeyPatch.context() as patch:
            from arraybridge.libraries.jax import gradients

            compiled = gradients._compiled
            patch.setattr(gradients, "_compiled", lambda *a: seen.append(a) or compiled(*a))
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

    def test_what_is_written_before_the_gradient(self, jitted):
        """As with PyTorch's own operations; constants of what is not compiled are copies."""
        for f in (of_jax(jitted(lambda x, c: x * x * c)), lambda x, c: x * x * c):
            for place in range(1 + (jitted is jax.jit)):
                given = tensor(64) * 1, tensor(64, requires_grad=False)
                y = f(*given).sum()
                given[place].mul_(7)
                with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                    y.backward()

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
