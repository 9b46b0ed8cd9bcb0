"""Functions of PyTorch that are told places or numbers of times by arrays, of any integer type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from array_api_compat import torch as xp

from .. import Correction
from .promotion import described

_OTHER_INTEGERS = frozenset(
    {torch.int8, torch.int16, torch.int32, torch.uint8, torch.uint16, torch.uint32, torch.uint64}
)


def _with_long(plain: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose second argument may be an array of any integer data type.

    int64 holds the negative places too, which are brought into the range by an addition that narrow
    integers would overflow in.
    """

    def function(x, second, /, **kwargs):
        if isinstance(second, torch.Tensor) and second.dtype in _OTHER_INTEGERS:
            second = second.long()
        return plain(x, second, **kwargs)

    return described(function, plain)


def _narrow(numbers: list[int], dtype: Any) -> torch.Tensor:
    return torch.tensor(numbers, dtype=dtype)


CORRECTIONS = (
    Correction(
        "take",
        _with_long(xp.take),
        "take: indices of any integer data type",
        "no issue known",
        lambda xp: xp.take(xp.ones(200), _narrow([-1], xp.int8)).shape != (1,),
    ),
    Correction(
        "take_along_axis",
        _with_long(xp.take_along_axis),
        "take_along_axis: indices of any integer data type",
        "no issue known",
        lambda xp: xp.take_along_axis(xp.ones(200), _narrow([-1], xp.int8)).shape != (1,),
    ),
    Correction(
        "repeat",
        _with_long(xp.repeat),
        "repeat: repeats of any integer data type",
        "https://github.com/pytorch/pytorch/issues/151311",
        lambda xp: xp.repeat(xp.ones(1), _narrow([2], xp.uint64)).shape != (2,),
    ),
)
