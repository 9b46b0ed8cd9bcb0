"""Gradients between PyTorch and JAX: a call of one's function is an operation of the other's.

A function of JAX called with tensors that require gradients is a ``torch.autograd.Function`` around
``jax.vjp``. A function of PyTorch called with JAX's tracers is a ``jax.custom_vjp``, called back in
a compiled program and at once outside of it. The gradient of each is a function of the same kind,
so that it has gradients as well. A cotangent of one library is the other's conjugate.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from ...adapting.decorator import Adapted
from ...array.array_types import PLAIN, is_array
from ...conversion import convert
from ..jax.callbacks import Arguments, call_back, is_tracer, structs


@jax.tree_util.register_static
@dataclass(frozen=True)
class _Plain:
    """A part of a result that is no array, such as a number: JAX takes it as part of the tree."""

    value: Any


def _opened(tree: Any) -> Any:
    """Return a result with what is no array as the function returned it."""
    return jax.tree.map(
        lambda x: x.value if type(x) is _Plain else x, tree, is_leaf=lambda x: type(x) is _Plain
    )


# Functions of JAX, called with tensors.

#: In place of the tensors that require gradients, and of other arrays.
_TRACKED, _CONSTANT = object(), object()


def call_with_tensors(adapted: Adapted, args: Any, kwargs: Any) -> Any:
    """Call an adapted function of JAX as an operation of PyTorch."""
    given = Arguments(args, kwargs, lambda x: isinstance(x, torch.Tensor) and x.requires_grad)
    given.convert_others(adapted)
    leaves = [_CONSTANT if isinstance(x, jax.Array | float) else x for x in given.leaves]
    for n in given.places:
        leaves[n] = _TRACKED
    spec = given.tree, tuple(leaves), tuple(map(type, leaves))
    rest = [x for x, leaf in zip(given.leaves, leaves, strict=True) if leaf is _CONSTANT]
    linearize, pull_back = _halves(adapted.__wrapped__, spec)
    call = _Call(lambda arrays: linearize(spec, rest, arrays), pull_back)
    results = _Operation.apply(call, *given.arrays)
    return given.result(_opened(jax.tree.unflatten(call.spec[0], results)), "torch")


def _halves(function: Any, spec: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the functions for a call and its gradient, compiled if the function is."""
    if isinstance(function, jax.stages.Wrapped):
        try:
            hash(spec)
        except TypeError:
            pass
        else:
            return _compiled(function)
    return partial(_linearize, function), _pull_back


@lru_cache(maxsize=128)
def _compiled(function: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Compile both halves: ``jax.vjp`` takes 20 times as long for each call of a small function."""
    linearize = jax.jit(partial(_linearize, function), static_argnums=0)
    return linearize, jax.jit(partial(_pull_back), static_argnums=0)


def _linearize(function: Any, spec: Any, rest: Sequence[Any], arrays: Sequence[Any]) -> Any:
    """Call a function of JAX; return its result and its pullback."""
    tree, leaves, _ = spec

    def flat(*arrays: Any) -> Any:
        sources = {_TRACKED: iter(arrays), _CONSTANT: iter(rest)}
        filled = [next(sources[x]) if x is _TRACKED or x is _CONSTANT else x for x in leaves]
        args, kwargs = jax.tree.unflatten(tree, filled)
        return jax.tree.map(
            lambda x: jnp.asarray(x) if is_array(x) else _Plain(x), function(*args, **kwargs)
        )

    return jax.vjp(flat, *arrays)


def _pull_back(spec: Any, pull: Callable[..., Any], cotangents: Sequence[Any]) -> list[Any]:
    """Pull back the cotangents of the results that are not integers; `spec` is of all results."""
    tree, results = spec
    given = iter(cotangents)
    full = [
        jnp.conj(next(given)) if is_float else np.zeros(shape, jax.dtypes.float0)
        for shape, is_float in results
    ]
    return [jnp.conj(g) for g in pull(jax.tree.unflatten(tree, full))]


class _Call:
    """A function of JAX arrays, by what returns its result and its pullback."""

    def __init__(self, linearize: Callable[..., Any], pull_back: Callable[..., Any]) -> None:
        self.linearize, self.pull_back = linearize, pull_back
        self.spec: Any = None  # of the results: their tree, shapes, and which are floats

    def gradient(self, count: int) -> "_Call":
        """Return the function from `count` arrays and the cotangents to the gradients."""

        def gradient(*arrays: Any) -> list[Any]:
            _, pull = self.linearize(arrays[:count])
            return self.pull_back(self.spec, pull, arrays[count:])

        return _Call(lambda arrays: jax.vjp(gradient, *arrays), _pull_back)


class _Operation(torch.autograd.Function):  # type: ignore[misc]
    """A call in PyTorch's graph."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        result, ctx.pull = call.linearize([convert(x.detach(), "jax") for x in tensors])
        leaves, tree = jax.tree.flatten(result)
        floats = [jnp.issubdtype(x.dtype, jnp.inexact) for x in leaves]
        call.spec = tree, tuple([(x.shape, f) for x, f in zip(leaves, floats, strict=True)])
        results = [convert(x, "torch") for x in leaves]
        ctx.call, ctx.floats = call, floats
        ctx.mark_non_differentiable(*[x for x, f in zip(results, floats, strict=True) if not f])
        ctx.save_for_backward(*tensors)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> Any:
        tensors, call = ctx.saved_tensors, ctx.call
        given = [g for g, is_float in zip(cotangents, ctx.floats, strict=True) if is_float]
        if torch.is_grad_enabled():  # create_graph=True
            return None, *_Operation.apply(call.gradient(len(tensors)), *tensors, *given)
        given = [convert(g.detach(), "jax") for g in given]
        return None, *[convert(g, "torch") for g in call.pull_back(call.spec, ctx.pull, given)]


# Functions of PyTorch, called with tracers.


def call_with_tracers(adapted: Adapted, args: Any, kwargs: Any) -> Any:
    """Call an adapted function of PyTorch as an operation of JAX."""
    given = Arguments(args, kwargs, is_tracer)
    like = structs(adapted, given)
    given.convert_others(adapted)

    def function(*tensors: torch.Tensor) -> Any:
        args, kwargs = given.replaced(tensors)
        return adapted.__wrapped__(*args, **kwargs)

    function.__qualname__ = adapted.name
    return given.result(_opened(_operation(function, like)(*given.arrays)), "jax")


def _operation(function: Any, like: Any) -> Any:
    """Return the function of JAX arrays that calls one of tensors, with results like ``like``."""
    options = {"request": PLAIN, "result": "numpy", "differentiable": False, "callback": None}
    plain = Adapted(function, "torch", options)

    def run(*arrays: jax.Array) -> Any:
        with torch.inference_mode(False), torch.no_grad():
            return plain(*arrays)

    @jax.custom_vjp  # type: ignore[untyped-decorator]
    def operation(*arrays: Any) -> Any:
        arrays = tuple([jnp.asarray(x) for x in arrays])  # numbers too
        if any(map(is_tracer, arrays)):
            return call_back(plain.name, run, like, arrays)
        return jax.tree.map(lambda x: convert(x, "jax") if is_array(x) else _Plain(x), run(*arrays))

    def forward(*arrays: Any) -> Any:
        return operation(*arrays), arrays

    def backward(arrays: Any, cotangents: Any) -> Any:
        given = [jnp.conj(g) for g in jax.tree.leaves(cotangents) if g.dtype != jax.dtypes.float0]
        floats = [jnp.issubdtype(jnp.result_type(x), jnp.inexact) for x in arrays]
        wanted = [jax.typeof(x) for x, is_float in zip(arrays, floats, strict=True) if is_float]
        gradients = partial(_gradients, function, len(arrays))
        found = iter(_operation(gradients, wanted)(*arrays, *given))
        return tuple([jnp.conj(next(found)) if is_float else None for is_float in floats])

    operation.defvjp(forward, backward)
    return operation


def _gradients(function: Any, count: int, *tensors: torch.Tensor) -> list[torch.Tensor]:
    """Return the gradients of a function, from its arguments and the cotangents of its results."""
    again = any(x.requires_grad for x in tensors)
    with torch.enable_grad():
        arguments = [
            x.detach().requires_grad_() if _is_float(x) and not x.requires_grad else x
            for x in tensors[:count]
        ]
        results = [y for y in jax.tree.leaves(function(*arguments)) if _is_float(y)]
        pairs = [(y, g) for y, g in zip(results, tensors[count:], strict=True) if y.requires_grad]
        wanted = [x for x in arguments if _is_float(x)]
        if not pairs:
            return [torch.zeros_like(x) for x in wanted]
        outputs, cotangents = zip(*pairs, strict=True)
        found = torch.autograd.grad(
            outputs, wanted, cotangents, create_graph=again, allow_unused=True
        )
    return [torch.zeros_like(x) if g is None else g for x, g in zip(wanted, found, strict=True)]


def _is_float(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex())
