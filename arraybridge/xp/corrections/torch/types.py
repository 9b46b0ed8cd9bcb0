"""Data type functions of PyTorch put right."""

from __future__ import annotations

from array import array
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
    """An array of anything; nested sequences may hold arrays, whose gradients go on.

    Buffers are what they hold (torch's own takes each for the bytes of float32 numbers).
    """
    if isinstance(obj, list | tuple) and _holds_arrays(obj):
        leaves = [
            asarray(each, device=device) if isinstance(each, list | tuple | torch.Tensor) else each
            for each in obj
        ]
        common = result_type(*leaves)
        place = next(leaf.device for leaf in leaves if isinstance(leaf, torch.Tensor))
        # stack takes every dtype, unlike torch's own reading of numbers
        obj, copy = torch.stack([_leaf(leaf, common, place) for leaf in leaves]), None
    elif not isinstance(obj, _NO_BUFFERS):
        obj = _of_buffer(obj)
    if isinstance(obj, numpy.ndarray) and not _viewable(obj):
        if copy is False:
            raise ValueError(
                "torch cannot view what is read-only, of another byte order or has negative "
                "strides: asarray(..., copy=False) would have to copy it"
            )
        obj, copy = obj.astype(obj.dtype.newbyteorder("=")), None
    elif isinstance(obj, torch.Tensor):
        # torch's own warns of gradients, which go on, too
        kwargs.setdefault("requires_grad", obj.requires_grad)
    return xp.asarray(obj, dtype=dtype, device=device, copy=copy, **kwargs)


def _leaf(x: Any, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    if isinstance(x, torch.Tensor):
        return x.to(device, dtype)
    return torch.as_tensor(x, dtype=dtype, device=device)


# What asarray knows without asking for a buffer; NumPy's scalars have one, too.
_NO_BUFFERS = (torch.Tensor, numpy.ndarray, list, tuple, int, float, complex, numpy.generic)


def _of_buffer(obj: Any) -> Any:
    """A NumPy view of what speaks the buffer protocol and nothing better; else the object."""
    if hasattr(type(obj), "__dlpack__"):
        return obj
    try:
        buffer = memoryview(obj)
    except TypeError:
        return obj
    return numpy.asarray(buffer)


def _viewable(x: numpy.ndarray) -> bool:
    """Whether torch can share a NumPy array's memory as it is."""
    return x.flags.writeable and x.dtype.isnative and all(step >= 0 for step in x.strides)


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
        "asarray: nested sequences of arrays, of any data type; buffers as what they hold",
        "no issue known",
        lambda xp: (
            xp.asarray(array("d", [1.0])).dtype != xp.float64
            or xp.asarray([xp.asarray(2**64 - 1, dtype=xp.uint64)], dtype=xp.uint64).dtype
            != xp.uint64
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
