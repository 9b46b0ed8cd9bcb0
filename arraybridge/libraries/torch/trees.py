"""Modules, as their ``state_dict``, and containers in PyTorch's registry of pytrees."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree  # it has no public name yet

from ...tree import Node


def node_of(x: Any) -> Node | None:
    """Return an object as a container; None if its class is not registered."""
    if isinstance(x, torch.nn.Module):
        return _state_of(x)
    if pytree.tree_is_leaf(x):
        return None
    first = iter([False])  # of calls: x itself; a child may be x again
    children, spec = pytree.tree_flatten(x, is_leaf=lambda _: next(first, True))
    keys: list[Any] = [*range(len(children))]
    if all(child is not x for child in children):
        try:
            found, _ = pytree.tree_flatten_with_path(x, is_leaf=lambda y: y is not x)
            keys = [_name(path[0], place) for place, (path, _) in enumerate(found)]
        except ValueError:  # it was registered without keys
            pass
    return Node(x, keys, children, lambda new: pytree.tree_unflatten(new, spec))


def _name(key: Any, place: int) -> Any:
    return getattr(key, "key", getattr(key, "name", getattr(key, "idx", place)))


def _state_of(module: torch.nn.Module) -> Node:
    # Tied parameters are one object there, but separate objects in each state_dict.
    kept, same = module.state_dict(keep_vars=True), dict[int, Any]()
    state = {name: same.setdefault(id(kept[name]), x) for name, x in module.state_dict().items()}
    return Node(
        module, [*state], [*state.values()], lambda new: dict(zip(state, new, strict=True)), True
    )
