"""Data type functions of PyTorch put right."""

from __future__ import annotations

from typing import Any

import numpy
import torch
from array_api_compat import torch as xp

from .. import Correction
from ..limits import Limits
from .promotion import PROMOTED, result_type


def _described(plain: Any) -> Any:
    """``finfo`` or ``iinfo`` whose dtype is a dtype; torch's own has its name."""

    def function(type, /):
        own = plain(type)
        return Limits(own, dtype=getattr(torch, own.dtype))

    function.__name__ = function.__qualname__ = plain.__name__
    return function


def can_cast(from_: Any, to: torch.dtype, /) -> bool:
    """Whether promotion leads from one dtype to another; torch's own narrows, too."""
    if isinstance(from_, torch.Tensor):
        from_ = from_.dtype
    return from_ == to or PROMOTED.get((from_, to)) == to


def asarray(
    obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None, **kwargs: Any
) -> torch.Tensor:
    """An array of numbers; nested sequences may hold arrays, whose gradients go on."""
    if isinstance(obj, list | tuple) and _holds_arrays(obj):
        if copy is False:
            raise ValueError("asarray(..., copy=False): arrays in a sequence are copied")
        obj, copy = _stacked(obj, dtype, device), None
    if isinstance(obj, torch.Tensor):
        # torch's own warns of gradients, which go on, too
        kwargs.setdefault("requires_grad", obj.requires_grad)
    elif dtype in _UNSIGNED:  # torch's own wraps negative numbers
        obj = numpy.asarray(obj, str(dtype).removeprefix("torch."), copy=copy)
    try:
        return xp.asarray(obj, dtype=dtype, device=device, copy=copy, **kwargs)
    except (RuntimeError, ValueError) as error:
        if "verflow" in str(error):
            raise OverflowError(f"{error}: pass a dtype that holds the numbers") from None
        if "infer dtype" in str(error):
            raise TypeError(str(error)) from None
        raise


def _stacked(nested: Any, dtype: Any, device: Any) -> torch.Tensor:
    leaves = [
        asarray(each, dtype=dtype, device=device)
        if isinstance(each, list | tuple | torch.Tensor)
        else each
        for each in nested
    ]
    common = dtype or result_type(*leaves)
    place = next(leaf.device for leaf in leaves if isinstance(leaf, torch.Tensor))
    parts = [_leaf(leaf, common, place) for leaf in leaves]
    shapes = {tuple(part.shape) for part in parts}
    if len(shapes) > 1:
        raise ValueError(f"asarray of a sequence whose elements differ in shape: {shapes}")
    return torch.stack(parts)  # which takes every dtype, unlike torch's own reading of numbers


def _leaf(x: Any, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    if isinstance(x, torch.Tensor):
        return x.to(device, dtype)
    return torch.as_tensor(x, dtype=dtype, device=device)


_UNSIGNED = frozenset({torch.uint8, torch.uint16, torch.uint32, torch.uint64})


def _holds_arrays(nested: Any) -> bool:
    kinds = set(map(type, nested))
    if any(issubclass(kind, torch.Tensor) for kind in kinds):
        return True
    if kinds & {list, tuple}:
        return any(_holds_arrays(each) for each in nested if isinstance(each, list | tuple))
    return False


CORRECTIONS = (
    Correction(
        "asarray",
        asarray,
        "asarray: nested sequences of arrays, of any data type; no number wraps",
        "no issue known",
        lambda xp: (
            xp.asarray([xp.asarray(2**64 - 1, dtype=xp.uint64)], dtype=xp.uint64).dtype != xp.uint64
            or not xp.asarray([torch.ones((), requires_grad=True)]).requires_grad
        ),
    ),
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
