"""Corrected PyTorch functions that take indices or repeats as arrays."""

from __future__ import annotations

from typing import Any

import torch
from array_api_compat import torch as xp

from ....xp.corrections import Correction
from ..tracing import transformed
from .promotion import promote_pair

_OTHER_INTEGERS = frozenset(
    {torch.int8, torch.int16, torch.int32, torch.uint8, torch.uint16, torch.uint32, torch.uint64}
)


def _long(x: Any) -> Any:
    """Integers as int64, which torch takes everywhere.

    It holds the negative indices too, which are brought into the range by an addition that narrow
    integers would overflow in.
    """
    return x.long() if isinstance(x, torch.Tensor) and x.dtype in _OTHER_INTEGERS else x


def _out_of_bounds(error: Exception) -> Exception:
    """An IndexError for an index out of bounds, whatever the dtype; other errors as they are."""
    said = str(error)
    return IndexError(said) if "out of" in said and "bounds" in said else error


def take(x: Any, indices: Any, /, *, axis: int | None = None, **kwargs: Any) -> torch.Tensor:
    """Elements along an axis, by their indices."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError("take needs an axis where there are several")
        axis = 0
    if indices.__class__ is int:  # beyond the standard: the axis goes, as of NumPy's
        return x.select(axis, indices)
    indices = _long(indices)
    indices = torch.where(indices < 0, indices + x.shape[axis], indices)
    try:
        return torch.index_select(x, axis, indices, **kwargs)
    except RuntimeError as error:
        raise _out_of_bounds(error) from None


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> torch.Tensor:
    """Elements along an axis, by indices of their own for each place of the other axes.

    torch's own takes index 5 of 4 elements for index 1. `gather` checks at no cost on the CPU; on a
    device its check would end the process.
    """
    indices = _long(indices)
    if not -x.ndim <= axis < x.ndim:
        return xp.take_along_axis(x, indices, axis=axis)
    extent = x.shape[axis]
    indices = torch.where(indices < 0, indices + extent, indices)
    if x.device.type != "cpu" or x.ndim != indices.ndim:
        return torch.take_along_dim(x, indices, dim=axis)
    shapes = [list(each.shape) for each in (x, indices)]
    shapes[0][axis] = shapes[1][axis] = 1
    if shapes[0] != shapes[1]:
        common = list(torch.broadcast_shapes(*shapes))
        common[axis] = -1
        x, indices = x.expand(common), indices.expand(common)
    try:
        return torch.gather(x, axis, indices)
    except RuntimeError as error:
        raise _out_of_bounds(error) from None


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> torch.Tensor:
    """Elements, each so many times."""
    return torch.repeat_interleave(x, _long(repeats), axis)


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
        take,
        "take: indices of any integer data type; out of bounds they are an IndexError",
        "no issue known",
        lambda xp: xp.take(xp.ones(200), _narrow([-1], xp.int8)).shape != (1,),
    ),
    Correction(
        "take_along_axis",
        take_along_axis,
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
        repeat,
        "repeat: repeats of any integer data type",
        "https://github.com/pytorch/pytorch/issues/151311",
        lambda xp: xp.repeat(xp.ones(1), _narrow([2], xp.uint64)).shape != (2,),
    ),
)
