"""Containers in JAX's registry of pytrees: of Flax, Equinox, Optax and programs."""

from __future__ import annotations

from typing import Any

from jax import tree_util

from ...containers import Row


def level(x: Any) -> Row | None:
    """Return the row of one object, for its own level only; None for a leaf."""
    found, structure = tree_util.tree_flatten_with_path(x, is_leaf=lambda y: y is not x)
    if len(found) == 1 and not found[0][0]:
        return None
    keys = [_name(path[0]) for path, _ in found]
    return Row(
        lambda _: [child for _, child in found],
        lambda _: keys,
        lambda tree, old, new: tree_util.tree_unflatten(structure, new),
    )


def _name(key: Any) -> Any:
    for attribute in ("name", "key", "idx"):
        if hasattr(key, attribute):
            return getattr(key, attribute)
    return str(key)
