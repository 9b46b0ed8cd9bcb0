"""Gradients of many cotangents at once, and maps, through a function of another library."""

import itertools

import numpy as np
import pytest

import arraybridge as ab
from tests.support.optional import optional

torch = optional("torch")
jax = pytest.importorskip("jax")
jnp = jax.numpy

FUNCTIONS = {  # of two matrices: for PyTorch, for JAX
    "one result": (lambda x, y: torch.sin(x) @ y, lambda x, y: jnp.sin(x) @ y),
    "several": (
        lambda x, y: (x.exp(), (x * y.T).sum(), y.square()),
        lambda x, y: (jnp.exp(x), (x * y.T).sum(), jnp.square(y)),
    ),
    "one of them unused": (lambda x, y: (x * 2, y * 3), lambda x, y: (x * 2, y * 3)),
    "the argument": (lambda x, y: (x, x * y.T), lambda x, y: (x, x * y.T)),
    "a number": (lambda x, y: (x @ y).sum(), lambda x, y: (x @ y).sum()),
    "constant": (lambda x, y: y.sum() * torch.ones(2), lambda x, y: y.sum() * jnp.ones(2, y.dtype)),
    "integers too": (lambda x, y: (x.argmax(), x * y.T), lambda x, y: (jnp.argmax(x), x * y.T)),
}


def flat(result):
    every = result if isinstance(result, tuple) else (result,)
    return tuple(x for x in every if x.is_floating_point())


def pair():
    rows = torch.linspace(-1.0, 1.0, 6, dtype=torch.float64)
    return rows.reshape(2, 3), rows.cos().reshape(3, 2)


def grads_batched(f, create_graph=False, size=3):
    xs = [x.requires_grad_() for x in pair()]
    ys = [y for y in flat(f(*xs)) if y.requires_grad]
    stacks = [torch.linspace(0, 1, size * y.numel(), dtype=y.dtype) for y in ys]
    stacks = [g.reshape(size, *y.shape) for g, y in zip(stacks, ys, strict=True)]
    options = {"is_grads_batched": True, "create_graph": create_graph, "allow_unused": True}
    found = torch.autograd.grad(ys, xs, stacks, **options)
    found = [
        torch.zeros(size, *x.shape) if g is None else g for g, x in zip(found, xs, strict=True)
    ]
    loss = sum(g.square().sum() for g in found)
    if create_graph and loss.requires_grad:
        again = torch.autograd.grad(loss, xs, allow_unused=True)
        found += [g for g in again if g is not None and g.any()]
    return found


def of_one(f):
    return lambda x: flat(f(x, pair()[1]))


def batch(n=4):
    x, y = pair()
    return torch.stack([x * k for k in range(n)]), torch.stack([y + k for k in range(n)], 1)


def vmapped(f, x, y, dims, **options):
    return torch.func.vmap(lambda x, y: flat(f(x, y)), dims, **options)(x, y)


jacobian = torch.autograd.functional.jacobian
hessian = torch.autograd.functional.hessian
TRANSFORMS = {
    "is_grads_batched": grads_batched,
    "of one": lambda f: grads_batched(f, size=1),
    "is_grads_batched, create_graph": lambda f: grads_batched(f, create_graph=True),
    "jacobian": lambda f: jacobian(lambda *xs: flat(f(*xs)), pair(), vectorize=True),
    "jacobian, create_graph": lambda f: jacobian(
        lambda *xs: flat(f(*xs)), pair(), vectorize=True, create_graph=True
    ),
    "hessian": lambda f: hessian(
        lambda *xs: sum(x.square().sum() for x in flat(f(*xs))), pair(), vectorize=True
    ),
    "jacrev": lambda f: torch.func.jacrev(lambda *xs: flat(f(*xs)), argnums=(0, 1))(*pair()),
    "jacrev by parts": lambda f: torch.func.jacrev(of_one(f), chunk_size=2)(pair()[0]),
    "jacrev twice": lambda f: torch.func.jacrev(torch.func.jacrev(of_one(f)))(pair()[0]),
    "vmap": lambda f: vmapped(f, *batch(), (0, 1)),
    "vmap of one": lambda f: vmapped(f, pair()[0], batch()[1], (None, 1)),
    "vmap, out_dims": lambda f: vmapped(f, *batch(), (0, 1), out_dims=-1),
    "vmap by parts": lambda f: vmapped(f, *batch(), (0, 1), chunk_size=3),
    "vmap of grad": lambda f: torch.func.vmap(
        torch.func.grad(lambda x, y: sum(z.sum() for z in flat(f(x, y)))), (0, 1)
    )(*batch()),
    "vmap of jacrev": lambda f: torch.func.vmap(torch.func.jacrev(of_one(f)))(batch()[0]),
    "vmap of vmap": lambda f: torch.func.vmap(
        lambda a: torch.func.vmap(of_one(f))(a), randomness="same"
    )(torch.stack([batch()[0]] * 2)),
    "jacobian of vmap": lambda f: jacobian(
        lambda a: torch.func.vmap(of_one(f))(a), batch()[0], vectorize=True
    ),
}


CASES = [
    pytest.param(
        transform,
        name,
        jitted,
        marks=[]
        if (transform == "is_grads_batched" and not jitted) or (name == "several" and jitted)
        else pytest.mark.heavy,
    )
    for transform in TRANSFORMS
    for name in FUNCTIONS
    for jitted in (False, True)
]


def leaves(tree):
    if isinstance(tree, tuple | list):
        return [*itertools.chain.from_iterable(map(leaves, tree))]
    return [tree]


@pytest.mark.filterwarnings("ignore:There is a performance drop", "ignore::DeprecationWarning")
@pytest.mark.parametrize(("transform", "name", "jitted"), CASES)
def test_jax_in_pytorch(transform, name, jitted):
    own, other = FUNCTIONS[name]
    adapted = ab.adapt("jax", differentiable=True)(jax.jit(other) if jitted else other)
    with jax.enable_x64(True):
        found = leaves(TRANSFORMS[transform](adapted))
        right = leaves(TRANSFORMS[transform](own))
    assert len(found) == len(right)
    for x, y in zip(found, right, strict=True):
        torch.testing.assert_close(x, y, check_dtype=False)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_maps_inside_each_other():
    """Of PyTorch's older vmap, as `is_grads_batched` inside `is_grads_batched` would have them."""
    from torch._vmap_internals import _vmap

    def pulled(f):
        x, y = (x.requires_grad_() for x in pair())
        z = f(x, y)
        inner = _vmap(lambda g: torch.autograd.grad(z, x, g, retain_graph=True)[0])
        one = _vmap(lambda g: torch.autograd.grad(z, x, g, retain_graph=True)[0])
        stack = torch.linspace(0, 1, 5 * 3 * 4, dtype=z.dtype).reshape(5, 3, 2, 2)
        return (
            _vmap(inner)(stack),
            _vmap(one)(stack[:, :1]),
            _vmap(lambda g: inner(stack[0]))(stack),
        )

    own, other = FUNCTIONS["one result"]
    with jax.enable_x64(True):
        found = pulled(ab.adapt("jax", differentiable=True)(other))
    right = pulled(own)
    for x, y in zip(found, right, strict=True):
        torch.testing.assert_close(x, y, check_dtype=False)


def test_pytorch_in_jax():
    def own(x, y):
        return torch.sin(x) @ y, (x * y.T).sum()

    def right(x, y):
        return jnp.sin(x) @ y, (x * y.T).sum()

    adapted = ab.adapt("torch", differentiable=True)(own)
    x = jnp.linspace(-1, 1, 6).reshape(2, 3)
    y, xs = jnp.cos(x).reshape(3, 2), jnp.stack([x, x + 1])
    transforms = (
        lambda f: jax.jacrev(f, argnums=(0, 1))(x, y),
        lambda f: jax.jit(jax.vmap(lambda x: jax.jacrev(f)(x, y)))(xs),
        lambda f: jax.vmap(jax.grad(lambda x: f(x, y)[1]))(xs),
        lambda f: jax.grad(lambda xs: jax.vmap(lambda x: f(x, y)[1])(xs).sum())(xs),
        lambda f: jax.jacrev(jax.jacrev(lambda x: f(x, y)[1]))(x),
    )
    for transform in transforms:
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5),
            transform(adapted),
            transform(right),
        )
