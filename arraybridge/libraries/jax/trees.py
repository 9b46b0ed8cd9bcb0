"""Containers in JAX's registry of pytrees: of Flax, Equinox, Optax and programs."""

from typing import Any

from jax import tree_util

from ...pytree import Node


def node_of(x: Any) -> Node | None:
    """Return an object as a container; None if its class is not registered."""
    first = iter([False])  # of calls: x itself; a child may be x again
    found, structure = tree_util.tree_flatten_with_path(x, is_leaf=lambda _: next(first, True))
    if len(found) == 1 and not found[0][0]:
        return None
    return Node(
        x,
        [_name(path[0]) for path, _ in found],
        [child for _, child in found],
        lambda new: tree_util.tree_unflatten(structure, new),
    )


def _name(key: Any) -> Any:
    return getattr(key, "name", getattr(key, "key", getattr(key, "idx", str(key))))
