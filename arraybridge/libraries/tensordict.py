"""``TensorDict``: one of the same class if its leaves are still tensors, else a dict."""

from __future__ import annotations

from typing import Any

import torch
from tensordict import TensorDictBase

from ..containers import Row


def row_of(cls: type) -> Row | None:
    """Return the row of a TensorDict's class; None for any other."""
    return _TENSOR_DICT if issubclass(cls, TensorDictBase) else None


def _with(tree: Any, old: list[Any], new: list[Any]) -> Any:
    made = dict(zip(tree.keys(), new, strict=True))
    tensors = (torch.Tensor, TensorDictBase)
    if any(x is not y and not isinstance(x, tensors) for x, y in zip(new, old, strict=True)):
        return made
    return tree.clone(False).clear_device_().update(made)  # or update moves them to its device


_TENSOR_DICT = Row(
    lambda tree: [tree[key] for key in tree.keys()],  # noqa: SIM118 - iterating it yields its batch
    lambda tree: [*tree.keys()],
    _with,
)
