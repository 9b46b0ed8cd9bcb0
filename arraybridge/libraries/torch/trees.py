"""Modules, as their ``state_dict``, and containers in PyTorch's registry of pytrees."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree  # it has no public name yet

from ...containers import IsLeaf, Row


def row_of(cls: type) -> Row | None:
    """Return the row of a module's class; None for any other."""
    return _MODULE if issubclass(cls, torch.nn.Module) else None


def _state_of(module: torch.nn.Module, is_leaf: IsLeaf) -> Row:
    # Tied parameters are one object there, but separate objects in each state_dict.
    kept, same = module.state_dict(keep_vars=True), dict[int, Any]()
    state = {name: same.setdefault(id(kept[name]), x) for name, x in module.state_dict().items()}
    return Row(
        lambda _: [*state.values()],
        lambda _: state,
        lambda tree, old, new: dict(zip(state, new, strict=True)),
        always=True,
    )


_MODULE = Row(lambda _: [], lambda _: [], lambda tree, old, new: tree, _state_of)


def level(x: Any) -> Row | None:
    """Return the row of one object, for its own level only; None for a leaf."""
    if pytree.tree_is_leaf(x):
        return None

    def other(y: Any) -> bool:
        return y is not x

    try:
        found, spec = pytree.tree_flatten_with_path(x, is_leaf=other)
    except ValueError:  # it was registered without keys
        children, spec = pytree.tree_flatten(x, is_leaf=other)
        keys: list[Any] = [*range(len(children))]
    else:
        children = [child for _, child in found]
        keys = [getattr(key, "key", getattr(key, "name", getattr(key, "idx", i)))
                for i, ((key, *_), _) in enumerate(found)]  # fmt: skip
    return Row(
        lambda _: children, lambda _: keys, lambda tree, old, new: pytree.tree_unflatten(new, spec)
    )
