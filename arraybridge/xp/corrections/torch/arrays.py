"""Arrays of PyTorch as its transformations take them, and as Python numbers."""

from __future__ import annotations

from typing import Any

from torch.utils import _pytree

from ....array.native import NativeArray


def _int(self: Any) -> int:
    return int(self._zero_dimensional("int").item())  # which does uint64, as int() does not


def _bool(self: Any) -> bool:
    return bool(self._zero_dimensional("bool").item())


MEMBERS = {"__int__": _int, "__bool__": _bool}


def register(cls: type[NativeArray]) -> None:
    """Make the class a pytree of one leaf, the tensor: for ``torch.func`` and ``torch.export``."""

    def flatten(array: Any) -> tuple[list[Any], None]:
        return [array._native], None

    def unflatten(leaves: Any, _: None) -> Any:
        (leaf,) = leaves
        # jacrev builds a tree of trees, the placeholders of some transformations are no tensors
        return leaf if isinstance(leaf, cls) else cls._of(leaf)

    _pytree.register_pytree_node(
        cls, flatten, unflatten, serialized_type_name=f"{cls.__module__}.{cls.__name__}"
    )
