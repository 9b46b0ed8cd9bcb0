"""Corrected data type functions for PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from array_api_compat import torch as xp

from ....xp.corrections import Correction
from ....xp.corrections.limits import Limits
from .promotion import PROMOTED


def _described(plain: Any) -> Any:
    """``finfo`` or ``iinfo`` whose dtype is a dtype; torch's own has its name."""

    def function(type: Any, /) -> Limits:
        own = plain(type)
        return Limits(own, dtype=getattr(torch, own.dtype))

    function.__name__ = function.__qualname__ = plain.__name__
    return function


def can_cast(from_: Any, to: torch.dtype, /) -> bool:
    """Test whether one dtype promotes to another; torch's own also allows narrowing."""
    if isinstance(from_, torch.Tensor):
        from_ = from_.dtype
    return from_ == to or PROMOTED.get((from_, to)) == to


CORRECTIONS = (
    Correction(
        "can_cast",
        can_cast,
        "can_cast: by type promotion",
        "https://github.com/pytorch/pytorch/issues/126014",
        lambda xp: xp.can_cast(xp.int16, xp.int8),
    ),
    Correction(
        "finfo",
        _described(xp.finfo),
        "finfo: dtype is a data type",
        "no issue known",
        lambda xp: xp.finfo(xp.complex64).dtype != xp.float32,
    ),
    Correction(
        "iinfo",
        _described(xp.iinfo),
        "iinfo: dtype is a data type",
        "no issue known",
        lambda xp: xp.iinfo(xp.int8).dtype != xp.int8,
    ),
)
