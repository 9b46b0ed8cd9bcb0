"""Gradients of PyTorch, across functions of other libraries and for callers of other libraries.

A call of another library's function is one node of PyTorch's graph (``torch.autograd.Function``).
It saves its tensors, so that PyTorch detects writes to them before ``backward``. Under
``create_graph=True`` and in ``torch.func`` the gradient is such a call too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

from ...adapting.autograd import Differentiation, FlatFunction, Outcome, Pullback, Shape
from ...core.records import ConversionError
from ...core.registry import library_named
from ...dlpack import Device
from .state import has_tangent, transform_level
from .tables import BY_NAME, DLPACK_DTYPES

_grad_enabled = torch.is_grad_enabled


class TorchGradients(Differentiation):
    """How PyTorch differentiates."""

    def tracks(self, x: torch.Tensor) -> bool:
        return x.requires_grad or transform_level() is not None or has_tangent(x)

    def cast(self, x: torch.Tensor, dtype: str) -> torch.Tensor:
        return x.to(BY_NAME[dtype])

    def record(self, flat: FlatFunction, arrays: list[torch.Tensor]) -> Any:
        if not _grad_enabled() and transform_level() is None:
            call = _Call(flat)
            return call.result(call.run(arrays, linearize=False))
        return _recorded(_Call(flat), arrays)

    def is_float(self, x: torch.Tensor | Shape) -> bool:
        dtype = BY_NAME[x.dtype] if isinstance(x, Shape) else x.dtype
        return dtype.is_floating_point or dtype.is_complex

    @contextmanager
    def untracked(self) -> Iterator[None]:
        usual = not torch.is_inference_mode_enabled()
        with nullcontext() if usual else torch.inference_mode(False), torch.no_grad():
            yield

    def gradients(
        self,
        flat: FlatFunction,
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

    def shapes(
        self, flat: FlatFunction, arguments: Sequence[Shape], device: Device | None
    ) -> Outcome:
        """Call the function with fake tensors, which have no elements."""
        from torch._subclasses.fake_tensor import FakeTensorMode

        device = flat.options.conversion.get("device", device)
        place = None if device is None else library_named("torch").native_device(device)
        mode = FakeTensorMode(allow_non_fake_inputs=True)
        with mode, _fakes_only(mode), torch.no_grad():
            fakes = [torch.empty(x.shape, dtype=BY_NAME[x.dtype], device=place) for x in arguments]
            try:
                outcome = flat(fakes)
            except Exception as error:
                error.add_note(
                    f"{flat.options.function} was called with fake tensors, to find the shapes of "
                    "its results before there are values: pass result_shape_dtypes= to adapt if it "
                    "reads values"
                )
                raise
            floats, others = map(_shape, outcome.floats), map(_shape, outcome.others)
            return Outcome([*floats], [*others], outcome.rebuilt)


def _shape(x: torch.Tensor) -> Shape:
    dtype = DLPACK_DTYPES.get(x.dtype)
    if dtype is None:
        raise ConversionError(f"{x.dtype} has no DLPack type: pass its bytes, x.view(torch.uint8)")
    return Shape(tuple(x.shape), dtype.name)


def _fakes_only(mode: Any) -> Any:
    """Return a mode that replaces real tensors, such as a module's parameters, by fake ones.

    FakeTensorMode itself computes operations on real tensors: a buffer would be written.
    """
    from torch._subclasses.fake_tensor import FakeTensor
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_map_only

    def fake(x: torch.Tensor) -> torch.Tensor:
        return x if isinstance(x, FakeTensor) else mode.from_tensor(x)

    class FakesOnly(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            args, kwargs = tree_map_only(torch.Tensor, fake, (args, kwargs or {}))
            return func(*args, **kwargs)

    return FakesOnly()


class _Call:
    """One call of another library's function."""

    def __init__(self, flat: FlatFunction) -> None:
        self.flat = flat
        self.pull: Pullback | None = None
        self.rebuilt: Callable[[Sequence[Any], Sequence[Any]], Any]
        self.floats = 0

    def run(
        self, tensors: Sequence[torch.Tensor], *, linearize: bool = True
    ) -> tuple[torch.Tensor, ...]:
        """Call the function outside the graph; return the arrays in its result."""
        flat = self.flat
        seen = [flat.argument(x.detach()) for x in tensors]
        if linearize:
            outcome, self.pull = flat.differentiation.linearize(flat, seen)
        else:
            outcome = flat(seen)
        self.rebuilt, self.floats = outcome.rebuilt, len(outcome.floats)
        return tuple([flat.result(x, "torch") for x in (*outcome.floats, *outcome.others)])

    def result(self, arrays: Sequence[torch.Tensor]) -> Any:
        """Return the function's result, with arrays of the caller."""
        return self.rebuilt(arrays[: self.floats], arrays[self.floats :])

    def gradients(
        self,
        cotangents: Sequence[torch.Tensor | None],
        wanted: Sequence[bool],
        maps: Sequence[Sequence[int | None]] = (),
    ) -> Iterator[torch.Tensor]:
        """Pull cotangents back outside the graph; ``maps`` are the axes of stacks of them."""
        flat, pull = self.flat, self.pull
        assert pull is not None
        for axes in maps:
            pull = flat.differentiation.map_pullback(pull, axes)
        found = pull([None if g is None else flat.argument(g.detach()) for g in cotangents])
        return (flat.result(g, "torch") for g, want in zip(found, wanted, strict=True) if want)


def _recorded(call: _Call, tensors: Sequence[torch.Tensor]) -> Any:
    # A class for transformations reads the signature of `forward` in every call, 30 µs.
    node = Adapted if transform_level() is None else Transformed
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
        floats, levels = _unstacked(cotangents[: ctx.floats])
        wanted = ctx.needs_input_grad[1:]
        call = getattr(keeper, "call", None)  # code that packs saved tensors may have lost it
        if call is None or call.pull is None or _grad_enabled() or transform_level() is not None:
            given = [g is not None for g in floats]
            flat = ctx.flat.gradient(wanted, given)
            for _, axes in reversed(levels):
                there = [axis for axis, g in zip(axes, given, strict=True) if g]
                flat = flat.mapped([*[None] * len(tensors), *there])
            with_cotangents = [*tensors, *[g for g in floats if g is not None]]
            found = iter(_recorded(_Call(flat), with_cotangents))
        else:
            found = call.gradients(floats, wanted, [axes for _, axes in reversed(levels)])
        if levels:
            found = (_stacked(g, levels) for g in found)
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
        inner = _Call(call.flat.mapped(in_dims[1:]))
        results = Transformed.apply(inner, *tensors)
        call.rebuilt, call.floats = inner.rebuilt, inner.floats
        return results, (0,) * len(results)


def _save(ctx: Any, call: _Call, tensors: Sequence[torch.Tensor]) -> None:
    keeper = torch.empty(0)
    keeper.call = call  # freed with the saved tensors
    ctx.flat, ctx.floats, ctx.count = call.flat, call.floats, len(tensors)
    ctx.save_for_backward(*tensors, *call.flat.constants, keeper)
    ctx.set_materialize_grads(False)


# Stacks of cotangents, which is_grads_batched=True passes to `backward` as single ones:
# torch.autograd.grad maps the graph by PyTorch's older vmap, which neither torch.func nor
# torch.autograd.Function supports. The tensors that `backward` gets have no memory, and a hidden
# axis at a separate level.

_internals: Any = torch._C
_is_stack = getattr(_internals._functorch, "is_legacy_batchedtensor", None) or (lambda x: False)

#: A level, and the axis of each tensor there: 0, or None.
_Level = tuple[int, list[int | None]]


def _unstacked(tensors: Sequence[Any]) -> tuple[list[Any], list[_Level]]:
    """Make the mapped axes of tensors, some of which may be None, their first ones.

    The levels have the outermost first, as in the shapes; there are none if no tensor was a stack.
    """
    found = list(tensors)
    levels: list[_Level] = []
    level = _depth() if any(x is not None and _is_stack(x) for x in found) else 0
    while level:
        axes = [0 if x is not None and _is_mapped(x, level) else None for x in found]
        if 0 in axes:
            pairs = zip(found, axes, strict=True)
            found = [x if axis is None else _shown(x, level, 1) for x, axis in pairs]
            levels.insert(0, (level, axes))
        level -= 1
    return found, levels


def _stacked(x: torch.Tensor, levels: Sequence[_Level]) -> torch.Tensor:
    """Hide the first axes of a tensor, as they were before `_unstacked`."""
    for level, _ in levels:
        x = _internals._VariableFunctions._add_batch_dim(x, 0, level)
    return x


def _depth() -> int:
    """Return the level of the innermost map; 1 in threads of ``backward`` that do not know it."""
    level: int = _internals._vmapmode_increment_nesting() - 1
    _internals._vmapmode_decrement_nesting()
    return level or 1


def _shown(x: torch.Tensor, level: int, size: int) -> torch.Tensor:
    """Show the axis of a level, or add one of the given size."""
    shown: torch.Tensor = _internals._VariableFunctions._remove_batch_dim(x, level, size, 0)
    return shown


def _is_mapped(x: torch.Tensor, level: int) -> bool:
    return _is_stack(x) and _shown(x, level, 1).shape == _shown(x, level, 2).shape


GRADIENTS = TorchGradients()
