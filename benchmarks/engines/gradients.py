"""Gradients between PyTorch and JAX.

The peer is the code by hand for one function of one array: a ``torch.autograd.Function``
over ``jax.jit`` of the value and of the gradient, which computes the value twice, and a
``jax.custom_vjp`` over two ``jax.pure_callback``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

import arraybridge as ab

from ..goals import Case

SIZES = (1_000, 1_000_000)


def of_jax(x: Any) -> Any:
    return jnp.tanh(x) * x


def of_torch(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) * x


_value = jax.jit(of_jax)
_gradient = jax.jit(lambda x, g: jax.vjp(of_jax, x)[1](g)[0])


class ByHand(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return torch.from_dlpack(_value(jax.dlpack.from_dlpack(x.detach())))

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        found = _gradient(
            jax.dlpack.from_dlpack(x.detach()), jax.dlpack.from_dlpack(g.contiguous())
        )
        return torch.from_dlpack(found)


@jax.custom_vjp
def by_hand(x: Any) -> Any:
    def host(x: Any) -> np.ndarray:
        return of_torch(torch.from_numpy(np.array(x))).numpy()

    return jax.pure_callback(host, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def _back(x: Any, g: Any) -> tuple[Any]:
    def host(x: Any, g: Any) -> np.ndarray:
        t = torch.from_numpy(np.array(x)).requires_grad_()
        of_torch(t).backward(torch.from_numpy(np.array(g)))
        return t.grad.numpy()

    return (jax.pure_callback(host, jax.ShapeDtypeStruct(x.shape, x.dtype), x, g),)


by_hand.defvjp(lambda x: (by_hand(x), x), _back)


def cases() -> Iterator[Case]:
    torch.set_num_threads(1)
    ours = ab.adapt("jax", differentiable=True)(_value)
    theirs = ab.adapt("torch", differentiable=True)(of_torch)

    def step(function: Any, x: torch.Tensor) -> None:
        x.grad = None
        function(x).backward(ones[x.numel()])

    ones = {size: torch.ones(size) for size in SIZES}
    for size in SIZES:
        t = torch.linspace(-1, 1, size, requires_grad=True)
        name = f"a jitted function of JAX in PyTorch, forward and backward, {size:,}"
        yield Case(name, lambda t=t: step(ours, t), "by hand", lambda t=t: step(ByHand.apply, t))
        yield Case(name, lambda t=t: step(ours, t), "PyTorch alone", lambda t=t: step(of_torch, t))
    for size in SIZES:
        x = jnp.linspace(-1, 1, size)
        both = [jax.jit(jax.grad(lambda x, f=f: f(x).sum())) for f in (theirs, by_hand, of_jax)]
        name = f"a function of PyTorch in jit of grad, {size:,}"
        found = [lambda x=x, f=f: jax.block_until_ready(f(x)) for f in both]
        yield Case(name, found[0], "by hand", found[1])
        yield Case(name, found[0], "JAX alone", found[2])
    for name, function, size in (("sort", np.sort, 1_000), ("negative", np.negative, 1_000_000)):
        x = jnp.linspace(1, -1, size)
        like = jax.ShapeDtypeStruct(x.shape, x.dtype)
        peer = jax.jit(lambda x, f=function, like=like: jax.pure_callback(f, like, x))
        for kind, views in (("", False), (", views", True)):
            ours_ = jax.jit(
                ab.adapt(
                    "numpy",
                    callback=True,
                    alias_readonly=views,
                    result_shape_dtypes=lambda x: x,
                )(function)
            )
            yield Case(
                f"numpy.{name} in jit, {size:,}{kind}",
                lambda f=ours_, x=x: jax.block_until_ready(f(x)),
                "jax.pure_callback",
                lambda f=peer, x=x: jax.block_until_ready(f(x)),
            )
