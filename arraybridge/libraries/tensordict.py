"""``TensorDict``: one of the same class if its leaves are still tensors, else a dict."""

from __future__ import annotations

from typing import Any

import torch
from tensordict import TensorDictBase

from ..tree import Node


def node_of(x: Any) -> Node | None:
    """Return a TensorDict as a container; None for any other object."""
    if not isinstance(x, TensorDictBase):
        return None
    keys = [*x.keys()]
    children = [x[key] for key in keys]

    def build(new: list[Any]) -> Any:
        made = dict(zip(keys, new, strict=True))
        if not all(
            after is before or isinstance(after, torch.Tensor | TensorDictBase)
            for before, after in zip(children, new, strict=True)
        ):
            return made
        same = x.device is None or all(
            after.device == x.device for after in new if isinstance(after, torch.Tensor)
        )
        result = x.clone(False).clear_device_().update(made)  # or update moves them to its device
        return result.to(x.device) if same and x.device is not None else result

    return Node(x, keys, children, build)
