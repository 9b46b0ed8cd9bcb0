"""Corrected PyTorch functions that take indices or repeats as arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from array_api_compat import torch as xp

from ....xp.corrections import Correction
from ..tracing import transformed
from .promotion import promote_pair, replacing

_OTHER_INTEGERS = frozenset(
    {torch.int8, torch.int16, torch.int32, torch.uint8, torch.uint16, torch.uint32, torch.uint64}
)


def _with_long(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Let the second argument be an array of any integer data type.

    It becomes int64: adding the extent to negative indices would overflow in narrow integers.
    """

    def function(x: Any, second: Any, /, **kwargs: Any) -> Any:
        if isinstance(second, torch.Tensor) and second.dtype in _OTHER_INTEGERS:
            second = second.long()
        return plain(x, second, **kwargs)

    return replacing(function, plain)


def _within_bounds(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Raise IndexError for an index out of bounds, whatever the data type."""

    def function(x: Any, indices: Any, /, **kwargs: Any) -> Any:
        try:
            return plain(x, indices, **kwargs)
        except RuntimeError as error:
            if "out of" in str(error) and "bounds" in str(error):
                raise IndexError(str(error)) from None
            raise

    return replacing(function, plain)


def _take_along_axis(x: torch.Tensor, indices: torch.Tensor, /, *, axis: int = -1) -> torch.Tensor:
    """``take_along_axis`` that checks bounds on the CPU.

    torch's own takes index 5 of 4 elements for index 1. `gather` checks at no cost on the CPU; on a
    device its check would end the process.
    """
    if x.device.type != "cpu" or x.ndim != indices.ndim or not -x.ndim <= axis < x.ndim:
        return xp.take_along_axis(x, indices, axis=axis)
    extent = x.shape[axis]
    indices = torch.where(indices < 0, indices + extent, indices)
    shapes = [list(each.shape) for each in (x, indices)]
    shapes[0][axis] = shapes[1][axis] = 1
    if shapes[0] != shapes[1]:
        common = list(torch.broadcast_shapes(*shapes))
        common[axis] = -1
        x, indices = x.expand(common), indices.expand(common)
    return _gather(x, indices, axis=axis)


@_within_bounds
def _gather(x: torch.Tensor, indices: torch.Tensor, *, axis: int) -> torch.Tensor:
    return torch.gather(x, axis, indices)


def _wraps(xp: Any) -> bool:
    try:
        xp.take_along_axis(xp.ones(4), torch.tensor([5]))
    except IndexError:
        return False
    return True


def searchsorted(
    x1: torch.Tensor, x2: Any, /, *, side: str = "left", sorter: Any = None, **kwargs: Any
) -> torch.Tensor:
    """Find insertion points in the order of `sort`: NaN after all numbers."""
    if not isinstance(x2, torch.Tensor):
        x2 = torch.as_tensor(x2, dtype=x1.dtype, device=x1.device)
    x1, x2 = promote_pair(x1, x2)
    if kwargs.pop("right", False):
        side = "right"
    if not x1.is_floating_point() or _without_nan(x1, x2, sorter):
        return torch.searchsorted(x1, x2, side=side, sorter=sorter, **kwargs)
    nan = torch.isnan(x1)
    numbers = torch.count_nonzero(~nan, dim=-1)
    if x1.ndim > 1:
        numbers = numbers.unsqueeze(-1)
    filled = torch.where(nan, torch.inf, x1)
    found = torch.searchsorted(filled, x2, side=side, sorter=sorter, **kwargs)
    of_nan = numbers if side == "left" else x1.shape[-1]
    found = torch.where(torch.isnan(x2), of_nan, torch.minimum(found, numbers))
    return found.to(torch.int32) if kwargs.get("out_int32") else found


def _without_nan(x1: torch.Tensor, x2: torch.Tensor, sorter: Any) -> bool:
    """Whether a quick look finds no NaN: on the CPU, where nothing is traced."""
    if x1.device.type != "cpu" or transformed():
        return False
    if not x1.numel():
        return True
    last = x1[..., -1] if sorter is None else torch.take_along_dim(x1, sorter[..., -1:], -1)
    return not (torch.isnan(last).any() or torch.isnan(x2).any())


def _nan_apart(xp: Any) -> bool:
    x = torch.tensor([1.0, torch.nan])
    return xp.searchsorted(x, torch.tensor([2.0, torch.nan])).tolist() != [1, 1]


def _narrow(numbers: list[int], dtype: Any) -> torch.Tensor:
    return torch.tensor(numbers, dtype=dtype)


CORRECTIONS = (
    Correction(
        "take",
        _with_long(_within_bounds(xp.take)),
        "take: indices of any integer data type; out of bounds they are an IndexError",
        "no issue known",
        lambda xp: xp.take(xp.ones(200), _narrow([-1], xp.int8)).shape != (1,),
    ),
    Correction(
        "take_along_axis",
        _with_long(_take_along_axis),
        "take_along_axis: indices of any integer data type; out of bounds they are an IndexError",
        "https://github.com/pytorch/pytorch/issues/146211, of negative ones",
        _wraps,
    ),
    Correction(
        "searchsorted",
        searchsorted,
        "searchsorted: in the order that sort gives, NaN included; two data types are promoted",
        "no issue known",
        _nan_apart,
    ),
    Correction(
        "repeat",
        _with_long(xp.repeat),
        "repeat: repeats of any integer data type",
        "https://github.com/pytorch/pytorch/issues/151311",
        lambda xp: xp.repeat(xp.ones(1), _narrow([2], xp.uint64)).shape != (2,),
    ),
)
