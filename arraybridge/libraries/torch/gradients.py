"""Gradients of PyTorch, across functions of other libraries and for callers of other libraries.

A call of another library's function is one node of PyTorch's graph (``torch.autograd.Function``),
which saves its tensors, so that PyTorch notices when they are written before ``backward``. Under
``create_graph=True`` and in ``torch.func`` the gradient is such a call itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from ...array.differentiation import Differentiation, Outcome, Shape
from ...array.followed import Flat
from .batched import stacked, unstacked
from .state import has_tangent, transformed
from .tables import BY_NAME

_grad_enabled = torch.is_grad_enabled


class TorchGradients(Differentiation):
    """How PyTorch differentiates."""

    def follows(self, x: torch.Tensor) -> bool:
        return x.requires_grad or transformed() is not None or has_tangent(x)

    def cast(self, x: torch.Tensor, dtype: str) -> torch.Tensor:
        return x.to(BY_NAME[dtype])

    def recorded(self, flat: Flat, arrays: list[torch.Tensor]) -> Any:
        if not _grad_enabled() and transformed() is None:
            call = _Call(flat)
            return call.result(call.run(arrays, linearize=False))
        return _recorded(_Call(flat), arrays)

    def is_float(self, x: torch.Tensor | Shape) -> bool:
        dtype = BY_NAME[x.dtype] if isinstance(x, Shape) else x.dtype
        return dtype.is_floating_point or dtype.is_complex

    @contextmanager
    def silent(self) -> Iterator[None]:
        with torch.inference_mode(False), torch.no_grad():
            yield

    def gradients(
        self,
        flat: Flat,
        primals: list[torch.Tensor],
        cotangents: Sequence[torch.Tensor | None],
        wanted: Sequence[bool],
    ) -> Sequence[torch.Tensor]:
        tracked = [x for x in (*primals, *cotangents) if x is not None and x.requires_grad]
        again = _grad_enabled() and bool(tracked)
        with torch.enable_grad():
            seen = [
                x.detach().requires_grad_() if want and not x.requires_grad else x
                for x, want in zip(primals, wanted, strict=True)
            ]
            leaves = [x for x, want in zip(seen, wanted, strict=True) if want]
            pairs = [
                (y, g)
                for y, g in zip(flat(seen).floats, cotangents, strict=True)
                if g is not None and y.requires_grad
            ]
            if not pairs:
                return [torch.zeros_like(x) for x in leaves]
            found = torch.autograd.grad(
                [y for y, _ in pairs],
                leaves,
                [g for _, g in pairs],
                create_graph=again,
                allow_unused=True,
            )
        zeros = torch.zeros_like
        return [zeros(x) if g is None else g for x, g in zip(leaves, found, strict=True)]

    def shapes(self, flat: Flat, arguments: Sequence[Shape]) -> Outcome:
        from .shapes import shapes_of

        return shapes_of(flat, arguments)


class _Call:
    """One call of another library's function."""

    def __init__(self, flat: Flat) -> None:
        self.flat = flat
        self.pull: Callable[[Sequence[Any]], Sequence[Any]] | None = None
        self.rebuilt: Callable[[Sequence[Any], Sequence[Any]], Any]
        self.floats = 0

    def run(
        self, tensors: Sequence[torch.Tensor], *, linearize: bool = True
    ) -> tuple[torch.Tensor, ...]:
        """Call the function, outside the graph; return the arrays of its result."""
        flat = self.flat
        seen = [flat.into(x.detach()) for x in tensors]
        if linearize:
            outcome, self.pull = flat.differentiation.linearized(flat, seen)
        else:
            outcome = flat(seen)
        self.rebuilt, self.floats = outcome.rebuilt, len(outcome.floats)
        return tuple([flat.back(x, "torch") for x in (*outcome.floats, *outcome.others)])

    def result(self, arrays: Sequence[torch.Tensor]) -> Any:
        """Return what the function returned, with arrays of the caller."""
        return self.rebuilt(arrays[: self.floats], arrays[self.floats :])

    def gradients(
        self,
        cotangents: Sequence[torch.Tensor | None],
        wanted: Sequence[bool],
        maps: Sequence[Sequence[int | None]] = (),
    ) -> Iterator[torch.Tensor]:
        """Pull cotangents back, outside the graph; ``maps`` are the axes of stacks of them."""
        flat, pull = self.flat, self.pull
        assert pull is not None
        for axes in maps:
            pull = flat.differentiation.mapped(pull, axes)
        found = pull([None if g is None else flat.into(g.detach()) for g in cotangents])
        return (flat.back(g, "torch") for g, want in zip(found, wanted, strict=True) if want)


def _recorded(call: _Call, tensors: Sequence[torch.Tensor]) -> Any:
    # What can be transformed reads the signature of `forward` in every call, 30 µs.
    node = Adapted if transformed() is None else Transformed
    results = node.apply(call, *tensors)
    return call.result(results)


class Adapted(torch.autograd.Function):  # type: ignore[misc]
    """A call in PyTorch's graph."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        results = call.run(tensors)
        _save(ctx, call, tensors)
        return results

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> Any:
        *saved, keeper = ctx.saved_tensors
        tensors = saved[: ctx.count]
        floats, levels = unstacked(cotangents[: ctx.floats])
        wanted = ctx.needs_input_grad[1:]
        call = getattr(keeper, "call", None)  # what packs saved tensors may have lost it
        if call is None or call.pull is None or _grad_enabled() or transformed() is not None:
            given = [g is not None for g in floats]
            flat = ctx.flat.gradient(wanted, given)
            for _, axes in reversed(levels):
                there = [axis for axis, g in zip(axes, given, strict=True) if g]
                flat = flat.vectorized([*[None] * len(tensors), *there])
            with_cotangents = [*tensors, *[g for g in floats if g is not None]]
            found = iter(_recorded(_Call(flat), with_cotangents))
        else:
            found = call.gradients(floats, wanted, [axes for _, axes in reversed(levels)])
        if levels:
            found = (stacked(g, levels) for g in found)
        return None, *[next(found) if want else None for want in wanted]


class Transformed(torch.autograd.Function):  # type: ignore[misc]
    """A call inside ``torch.func``, where the graph is made after the call."""

    @staticmethod
    def forward(call: _Call, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return call.run(tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        _save(ctx, inputs[0], inputs[1:])

    backward = Adapted.backward

    @staticmethod
    def vmap(info: Any, in_dims: Any, call: _Call, *tensors: torch.Tensor) -> Any:
        inner = _Call(call.flat.vectorized(in_dims[1:]))
        results = Transformed.apply(inner, *tensors)
        call.rebuilt, call.floats = inner.rebuilt, inner.floats
        return results, (0,) * len(results)


def _save(ctx: Any, call: _Call, tensors: Sequence[torch.Tensor]) -> None:
    keeper = torch.empty(0)
    keeper.call = call  # freed with what is saved
    ctx.flat, ctx.floats, ctx.count = call.flat, call.floats, len(tensors)
    ctx.save_for_backward(*tensors, *call.flat.constants, keeper)
    ctx.set_materialize_grads(False)


GRADIENTS = TorchGradients()
