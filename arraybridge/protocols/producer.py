"""``Producer``: a tensor for importers that take an object, not a capsule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import dlpack

if TYPE_CHECKING:
    from ..dlpack import ManagedTensor


class Producer:
    """An object whose ``__dlpack__`` returns one kind of `to_capsule`'s, whatever is requested."""

    __slots__ = ("tensor", "versioned")

    def __init__(self, tensor: ManagedTensor, *, versioned: bool = True) -> None:
        self.tensor = tensor
        self.versioned = versioned

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **_: object) -> object:
        return dlpack.to_capsule(self.tensor, versioned=self.versioned)
