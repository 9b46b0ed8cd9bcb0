"""The array API standard over Arrays of PyTorch."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch

from .corrections.torch import indexing
from .namespace import open_namespace

if TYPE_CHECKING:
    from .standard.everything import *  # noqa: F403


def _int(self: Any) -> int:
    return int(self._zero_dimensional("int").item())  # which does uint64, as int() does not


def _bool(self: Any) -> Any:
    return self._zero_dimensional("bool").item() != 0  # `bool` here is the namespace's dtype


open_namespace(
    sys.modules[__name__],
    "torch",
    native_type=torch.Tensor,
    get=indexing.get,
    set=indexing.set,
    errors=(RuntimeError,),
    mixes=False,
    members={"__int__": _int, "__bool__": _bool},
)
