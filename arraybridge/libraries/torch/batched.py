"""Stacks of cotangents, which ``is_grads_batched=True`` passes to ``backward`` as single ones.

``torch.autograd.grad`` maps the graph by PyTorch's older vmap, of which neither ``torch.func`` nor
``torch.autograd.Function`` knows: the tensors that ``backward`` gets have no memory, and an axis
that does not show, at a level of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

_internals: Any = torch._C
is_stack = getattr(_internals._functorch, "is_legacy_batchedtensor", None) or (lambda x: False)

#: A level, and for each of some tensors its axis there: 0, or None.
Mapped = tuple[int, list[int | None]]


def unstacked(tensors: Sequence[Any]) -> tuple[list[Any], list[Mapped]]:
    """Show the axes that are mapped, as the first ones of tensors; some may be None.

    Returns
    -------
    tensors : list
    levels : list of Mapped
        The outermost first, as in the tensors' shapes; empty if none was a stack.
    """
    found = list(tensors)
    levels: list[Mapped] = []
    level = _depth() if any(x is not None and is_stack(x) for x in found) else 0
    while level:
        axes = [0 if x is not None and _is_mapped(x, level) else None for x in found]
        if 0 in axes:
            pairs = zip(found, axes, strict=True)
            found = [x if axis is None else _shown(x, level, 1) for x, axis in pairs]
            levels.insert(0, (level, axes))
        level -= 1
    return found, levels


def stacked(x: torch.Tensor, levels: Sequence[Mapped]) -> torch.Tensor:
    """Hide the first axes of a tensor, which `unstacked` has shown of others."""
    for level, _ in levels:
        x = _internals._VariableFunctions._add_batch_dim(x, 0, level)
    return x


def _depth() -> int:
    """Return the level of the innermost map; 1 in threads of ``backward`` that do not know it."""
    level: int = _internals._vmapmode_increment_nesting() - 1
    _internals._vmapmode_decrement_nesting()
    return level or 1


def _shown(x: torch.Tensor, level: int, size: int) -> torch.Tensor:
    """Show the axis of a level; of a tensor that has none there, one of a size."""
    shown: torch.Tensor = _internals._VariableFunctions._remove_batch_dim(x, level, size, 0)
    return shown


def _is_mapped(x: torch.Tensor, level: int) -> bool:
    return is_stack(x) and _shown(x, level, 1).shape == _shown(x, level, 2).shape
