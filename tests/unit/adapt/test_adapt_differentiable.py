"""adapt(differentiable=True): gradients of JAX's functions in PyTorch, and of PyTorch's in JAX."""

from __future__ import annotations

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import arraybridge as ab

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("x64")


def of_jax(function):
    return ab.adapt("jax", differentiable=True)(function)


def of_torch(function, callback=None):
    return ab.adapt("torch", differentiable=True, callback=callback)(function)


def tensor(*shape, dtype=None, requires_grad=True):
    generator = torch.Generator().manual_seed(sum(shape))
    dtype = dtype or torch.float64
    return torch.randn(*shape, dtype=dtype, generator=generator).requires_grad_(requires_grad)


def array(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape))


def scalar(*args):
    """Describe a result that is one number."""
    return jax.ShapeDtypeStruct((), args[0].dtype)


class TestPyTorchCalls:
    """A function of JAX in PyTorch's graph."""

    def test_by_differences(self, jitted):
        f = of_jax(jitted(lambda x, y: jnp.tanh(x @ y).sum(axis=0)))
        assert torch.autograd.gradcheck(f, (tensor(2, 3), tensor(3, 2)), fast_mode=True)

    def test_higher_orders(self, jitted):
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
        assert torch.autograd.gradcheck(f, (z,), fast_mode=True)
        assert torch.autograd.gradgradcheck(f, (z,), fast_mode=True)

    def test_trees(self, jitted):
        f = of_jax(jitted(lambda t, k: {"a": [t["x"] * k["s"]], "b": (t["y"][0].sum(), None)}))
        x, y, s = tensor(3), tensor(2, 2), tensor(3)
        result = f({"x": x, "y": (y,)}, k={"s": s})
        assert result["b"][1] is None
        (result["a"][0].sum() + result["b"][0]).backward()
        torch.testing.assert_close(x.grad, s.detach())
        torch.testing.assert_close(s.grad, x.detach())
        torch.testing.assert_close(y.grad, torch.ones(2, 2, dtype=torch.float64))

    def test_what_is_not_tracked(self, jitted):
        """Constants, integers, numbers: no gradient, and no mark on the result."""
        f = of_jax(jitted(lambda x, i, c, n, k: (x[i] * c * n + k, jnp.argmax(x), i)))
        x, i = tensor(3), torch.tensor([2, 0])
        constant = tensor(2, requires_grad=False)
        y, place, same = f(x, i, constant, np.ones(2), 1.5)
        assert (y.requires_grad, place.requires_grad) == (True, False)
        assert place.dtype == same.dtype == torch.int64
        y.sum().backward()
        expected = torch.zeros(3, dtype=torch.float64)
        expected[i] = constant
        torch.testing.assert_close(x.grad, expected)
        assert place.item() == x.argmax().item()

    def test_writing_afterwards(self, jitted):
        """Neither arguments nor results are shared with what JAX keeps for the gradient."""
        ones = jnp.ones(3)
        f = of_jax(jitted(lambda x, c: (x * x * c, x, ones)))
        x, c = tensor(3), np.full(3, 5.0)
        y, same, constant = f(x, c)
        c[:] = 7
        same.detach()[:] = 7
        constant.detach()[:] = 7
        y.sum().backward()
        torch.testing.assert_close(x.grad, 10 * x.detach())
        assert ones.tolist() == [1, 1, 1]

    def test_the_graph_is_kept_as_long_as_it_is_asked_for(self, jitted):
        x = tensor(3)
        f = of_jax(jitted(lambda x: x**3))
        y = f(x).sum()
        y.backward(retain_graph=True)
        y.backward()
        torch.testing.assert_close(x.grad, 6 * x.detach() ** 2)
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            y.backward()
        gone = weakref.ref(f(x).grad_fn)
        gc.collect()
        assert gone() is None

    @pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
    def test_transforms_are_refused(self):
        f, x = of_jax(jnp.sin), tensor(3)
        with pytest.raises(RuntimeError, match="setup_context"):
            torch.func.grad(lambda x: f(x).sum())(x)
        with pytest.raises((RuntimeError, NotImplementedError, ab.ConversionError)):
            torch.func.jvp(f, (x.detach(),), (x.detach(),))
        with pytest.raises((RuntimeError, ab.ConversionError)):
            torch.func.vmap(f)(x)


class TestJaxCalls:
    """A function of PyTorch in what JAX traces."""

    @pytest.mark.parametrize("outer", [lambda f: f, jax.jit], ids=["eager", "jit"])
    def test_by_differences(self, outer):
        like = lambda x, y: jax.ShapeDtypeStruct(y.shape[1:], y.dtype)  # noqa: E731
        f = outer(of_torch(lambda x, y: torch.tanh(x @ y).sum(0), like))
        check_grads(f, (array(3, 4), array(4, 2)), order=2, modes=["rev"])

    @pytest.mark.parametrize("outer", [lambda f: f, jax.jit], ids=["eager", "jit"])
    def test_complex(self, outer):
        z = array(3) + 1j * array(3, seed=1)
        f = of_torch(lambda z: (z**2 * z.conj(), z.abs(), z.imag), lambda z: (z, z.real, z.real))
        check_grads(outer(f), (z,), order=2, modes=["rev"])

    @pytest.mark.parametrize("outer", [lambda f: f, jax.jit], ids=["eager", "jit"])
    def test_integers(self, outer):
        like = lambda x, i: (x[i], i, jax.ShapeDtypeStruct((), "int64"))  # noqa: E731
        f = of_torch(lambda x, i: (x[i] * 2, i + 1, x.argmax()), like)

        def loss(x, i):
            y, j, k = f(x, i)
            return y.sum(), (j, k)

        x = array(3)
        grad, (j, k) = outer(jax.grad(loss, has_aux=True))(x, jnp.asarray([2, 2]))
        assert grad.tolist() == [0, 0, 4]
        assert j.tolist() == [3, 3]
        assert k == jnp.argmax(x)

    def test_a_written_argument(self):
        f = of_torch(lambda x: x.mul_(2).sum(), scalar)
        for outer in (lambda f: f, jax.jit):
            with pytest.raises(Exception, match="wrote to the copy of an argument"):
                jax.block_until_ready(outer(lambda x: f(jnp.sin(x)))(array(3)))

    def test_refused(self):
        with pytest.raises(TypeError, match="describe it by callback="):
            jax.jit(of_torch(torch.sin))(array(3))
        with pytest.raises(TypeError, match="forward-mode"):
            jax.jvp(of_torch(torch.sin), (array(3),), (array(3),))
        assert of_torch(torch.sin)(array(3)).shape == (3,)  # nothing is traced


def test_parameters_of_a_module_are_constants():
    """Where JAX traces the call, and where it does not; PyTorch's callers get their gradients."""
    module = torch.nn.Linear(3, 2, dtype=torch.float64)
    f = of_torch(module, lambda x: jax.ShapeDtypeStruct((2,), x.dtype))
    x, given = array(3), torch.ones(3, dtype=torch.float64)
    np.testing.assert_array_equal(f(x), jax.jit(f)(x))
    assert type(f(np.ones(3))) is np.ndarray
    assert type(f(ab.from_dlpack(x))) is type(ab.from_dlpack(x))
    f(given).sum().backward()
    assert module.bias.grad.tolist() == [1, 1]
    plain = ab.adapt("torch")(lambda x: [module(x)])
    for caller in (x, np.ones(3)):
        with pytest.raises(
            ab.ConversionError, match=r"torch\.no_grad\(\).*requires_grad_\(False\)"
        ):
            plain(caller)
        with torch.no_grad():
            plain(caller)
    assert plain(given)[0].requires_grad
    module.requires_grad_(False)
    assert type(plain(np.ones(3))[0]) is np.ndarray


def test_containers_that_jax_does_not_know():
    import dataclasses

    pair = dataclasses.make_dataclass("Pair", ["x"])
    with pytest.raises(TypeError, match="register its class"):
        of_jax(lambda p: p.x)(pair(tensor(3)))


PARTS = [3, 2.5, True, "text", None, np.float32(2), np.int64(1), float("nan")]


def test_parts_that_are_no_arrays_stay():
    """They are what they are without gradients, also where a gradient has one."""
    parts = lambda x: {"y": [(x * x).sum(), *PARTS], "n": (PARTS[0],)}  # noqa: E731
    t = tensor(3)
    found = of_jax(parts)(t)
    (first,) = torch.autograd.grad(found["y"][0], t, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), t)
    assert (first.tolist(), second.tolist()) == ((2 * t).tolist(), [2] * 3)
    seen = [found]

    def loss(x):
        seen.append(of_torch(parts)(x))
        return seen[-1]["y"][0]

    assert jax.grad(loss)(jnp.ones(3)).tolist() == [2] * 3
    assert jax.grad(lambda x: jax.grad(loss)(x).sum())(jnp.ones(3)).tolist() == [2] * 3
    for each in seen:
        assert [type(x) for x in each["y"][1:]] == [type(x) for x in PARTS]
        assert (each["y"][1:-1], each["n"]) == (PARTS[:-1], (3,))
    assert of_jax(lambda x: 2.5)(t) == 2.5


def test_vmap_needs_a_callback():
    for transform in (jax.vmap, jax.jit, lambda f: jax.vmap(jax.grad(lambda x: f(x).sum()))):
        with pytest.raises(TypeError, match=r"inside jax\.jit or jax\.vmap.*callback="):
            transform(of_torch(torch.sin))(jnp.ones((2, 2)))
    of_vectors = jax.vmap(of_torch(torch.sin, lambda x: x))(jnp.ones((2, 2)))
    assert np.allclose(of_vectors, np.sin(1))


@pytest.mark.parametrize("requires_grad", [True, False])
def test_narrow_types_name_a_remedy_that_adapt_has(requires_grad):
    first = of_jax(lambda x, i: x[i])
    x, i = tensor(2, dtype=torch.float32, requires_grad=requires_grad), torch.tensor([0])
    with jax.enable_x64(False):
        for given in ((x, i), (x.double(), i.int())):
            with pytest.raises(ab.ConversionError, match=r"no dtype=.*before the call, as x\.int"):
                first(*given)
        assert first(x, i.int()).tolist() == x[:1].tolist()
