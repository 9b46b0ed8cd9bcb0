"""Containers in PyTorch's registry of pytrees; a Module as its state, a TensorDict as a dict."""

import sys
from typing import Any

import torch
from torch.utils import _pytree as pytree  # it has no public name yet

from ...pytree import Node
from ...pytree import node_of as plain_node


def node_of(x: Any) -> Node | None:
    """Return an object as a container; None if its class is not registered."""
    if isinstance(x, torch.nn.Module):
        return plain_node(dict(x.state_dict()))
    tensordict: Any = sys.modules.get("tensordict")
    if tensordict is not None and isinstance(x, tensordict.TensorDictBase):
        return plain_node(x.to_dict())
    if pytree.tree_is_leaf(x):
        return None
    first = iter([False])  # of calls: x itself; a child may be x again
    children, spec = pytree.tree_flatten(x, is_leaf=lambda _: next(first, True))
    build = lambda new: pytree.tree_unflatten(new, spec)  # noqa: E731
    return Node(x, range(len(children)), children, build)
