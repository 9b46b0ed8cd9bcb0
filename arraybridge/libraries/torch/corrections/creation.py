"""Corrected creation functions for PyTorch: overflow, sequences of arrays, read-only memory."""

from __future__ import annotations

from typing import Any

import numpy
import torch
from array_api_compat import torch as xp

from ....dispatch.records import ConversionError, no_copy_allowed
from ....dispatch.registry import library_named
from ....exchange import imported
from ....xp.corrections import Correction, spaces
from ..state import check_shape
from .promotion import result_type


def asarray(
    obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None, **kwargs: Any
) -> torch.Tensor:
    """Create a tensor; nested sequences may hold tensors, whose gradients are kept."""
    if isinstance(obj, list | tuple) and _holds_arrays(obj):
        if copy is False:
            raise ConversionError(no_copy_allowed("arrays in a sequence are copied"))
        obj, copy = _stacked(obj, dtype, device), None
    if isinstance(obj, torch.Tensor):
        check_shape(obj)
        device = obj.device if device is None else device  # torch's own default is another one
        # torch's own warns of gradients, although it keeps them
        kwargs.setdefault("requires_grad", obj.requires_grad)
    elif dtype in _UNSIGNED:  # torch's own wraps negative numbers
        obj = numpy.asarray(obj, str(dtype).removeprefix("torch."), copy=copy)
    try:
        return torch.asarray(obj, dtype=dtype, device=device, copy=copy, **kwargs)
    except (RuntimeError, ValueError) as error:
        if "verflow" in str(error):
            raise OverflowError(f"{error}: pass a dtype that holds the numbers") from None
        if "infer dtype" in str(error):
            raise TypeError(str(error)) from None
        raise


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> torch.Tensor:
    """Import an array as a view where possible; copy read-only memory and negative strides.

    PyTorch's own lets the former be written and fails on the latter.
    """
    tensor: torch.Tensor = imported(x, "torch", device, copy)
    return tensor


def _stacked(nested: Any, dtype: Any, device: Any) -> torch.Tensor:
    for each in nested:
        if isinstance(each, torch.Tensor):
            library_named("torch").check_carried(each, read=True)
    leaves = [
        asarray(each, dtype=dtype, device=device)
        if isinstance(each, list | tuple | torch.Tensor)
        else torch.as_tensor(numpy.asarray(each))  # which has a dtype of its own
        if isinstance(each, numpy.generic)
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


def _integer_name(dtype: Any) -> str | None:
    name = str(dtype).removeprefix("torch.")
    return name if name.removeprefix("u").startswith("int") else None


def _from_numpy(x: numpy.ndarray, *, dtype: torch.dtype, device: Any) -> torch.Tensor:
    return torch.asarray(x, dtype=dtype, device=device)


_READ_ONLY = numpy.zeros(1)
_READ_ONLY.flags.writeable = False

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
        "from_dlpack",
        from_dlpack,
        "from_dlpack: memory that may not be written is not written, and any strides are taken",
        "https://github.com/pytorch/pytorch/issues/188023",
        lambda xp: xp.from_dlpack(_READ_ONLY).data_ptr() == _READ_ONLY.ctypes.data,
    ),
    spaces.correction(xp, torch.linspace, _integer_name, _from_numpy),
)
