"""What a tensor's memory does not show: modes, transformations, tangents, a storage without it."""

from __future__ import annotations

import torch
from torch.autograd import forward_ad

from ...dispatch.records import ConversionError
from .readonly import ReadOnlyTensor

modes = torch._C._len_torch_dispatch_stack
transformed = torch._C._functorch.maybe_current_level  # None outside torch.func's functions
_NO_DISPATCH = torch._C._disabled_torch_dispatch_impl


def check_shape(x: torch.Tensor) -> None:
    """Refuse nested and uninitialized tensors, whose shape cannot be read."""
    if x.is_nested:
        raise ConversionError(
            "a nested tensor's parts differ in shape: pass torch.nested.to_padded_tensor(x, 0.0), "
            "or its parts, x.unbind()"
        )
    if type(x) is not torch.Tensor and isinstance(x, _UNINITIALIZED):
        raise ConversionError(
            f"an {type(x).__name__} has no shape yet: run the module once, or call "
            "x.materialize(shape) and pass x.detach()"
        )


_UNINITIALIZED = torch.nn.parameter.UninitializedTensorMixin


def has_tangent(x: torch.Tensor) -> bool:
    """Whether it is a dual number of forward-mode differentiation."""
    return forward_ad._current_level >= 0 and forward_ad.unpack_dual(x).tangent is not None


def no_memory(x: torch.Tensor) -> str | None:
    """Why a tensor is not one dense piece of memory, or None."""
    if x.layout is not torch.strided:
        return f"a {x.layout} tensor is not dense memory: pass x.to_dense()"
    if type(x) is not torch.Tensor and type(x) is not ReadOnlyTensor:
        dispatch = getattr(type(x), "__torch_dispatch__", _NO_DISPATCH)
        if dispatch is not _NO_DISPATCH:
            return f"{type(x).__name__} wraps other tensors: convert what it wraps"
    return None


def lacks_memory(
    x: torch.Tensor, data: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> str | None:
    """Why the elements are not in the memory that the tensor reports, or None."""
    if 0 in shape:
        return None
    start = x.storage_offset() * x.itemsize
    if data in (0, start):  # the storage is at address 0
        if x._is_zerotensor():
            return "its zeros are in no memory: pass x.clone()"
        if torch._is_functional_tensor(x):
            return "it is functionalized, without memory: convert outside torch.func.functionalize"
    if x.is_contiguous():
        span = x.numel()
    else:
        span = 1 + sum([(n - 1) * step for n, step in zip(shape, strides, strict=True)])
    needed = start + span * x.itemsize
    there = x.untyped_storage().nbytes()
    if there < needed:
        return (
            f"its storage was resized to {there} bytes, of which its elements need {needed}: pass "
            f"x after x.untyped_storage().resize_({needed})"
        )
    return None


def has_storage(x: torch.Tensor) -> bool:
    """Whether the storage has all elements; False also where that is not seen at once."""
    storage = x.untyped_storage()
    if not storage.resizable():  # NumPy owned it, or has it
        return True
    if not x.is_contiguous():
        return lacks_memory(x, x.data_ptr(), x.shape, x.stride()) is None
    return (x.storage_offset() + x.numel()) * x.itemsize <= storage.nbytes()
