"""State that a tensor's memory does not show: modes, transformations, tangents, storage sizes."""

from functools import cache
from operator import mul

import torch
from torch.autograd import forward_ad
from torch.nn.parameter import UninitializedTensorMixin

from ...core.records import ConversionError
from ...core.registry import TypeCache, package_of

modes = torch._C._len_torch_dispatch_stack
level = torch._C._functorch.maybe_current_level  # None outside torch.func's functions
is_transformed = torch._C._functorch.is_functorch_wrapped_tensor  # by vmap, grad, jvp
_NO_DISPATCH = torch._C._disabled_torch_dispatch_impl
#: `__torch_function__` of classes whose value is their memory: `Tensor`'s, and `Parameter`'s.
_OWN_FUNCTIONS = (torch.Tensor.__torch_function__.__func__, torch._C._disabled_torch_function_impl)
_KNOWN_SUBCLASSES = frozenset({"torchvision"})  # tv_tensors, which only keep their class
#: Attributes by which a tensor's memory is described, kept and copied.
_OF_MEMORY = (
    "__getattribute__ _is_zerotensor clone contiguous copy_ data data_ptr detach device dim dtype "
    "element_size is_conj is_contiguous is_cpu is_cuda is_meta is_neg is_nested is_quantized "
    "itemsize layout nbytes ndim numel permute requires_grad resolve_conj resolve_neg set_ shape "
    "size storage_offset stride to untyped_storage view"
).split()


def transformed() -> bool:
    """Whether values must not be read: inside torch.compile, or torch.func's transforms."""
    return torch.compiler.is_compiling() or torch._C._functorch.peek_interpreter_stack() is not None


def differentiated(x: torch.Tensor) -> bool:
    """Whether ``x`` may be differentiated, in backward or forward mode."""
    return x.requires_grad or transformed() or forward_ad._current_level >= 0


def check_shape(x: torch.Tensor) -> None:
    """Raise for nested and uninitialized tensors, whose shape cannot be read."""
    if x.is_nested:
        raise ConversionError(
            "a nested tensor's parts differ in shape: pass torch.nested.to_padded_tensor(x, 0.0), "
            "or its parts, x.unbind()"
        )
    if type(x) is not torch.Tensor and isinstance(x, UninitializedTensorMixin):
        raise ConversionError(
            f"an {type(x).__name__} has no shape yet: run the module once, or call "
            "x.materialize(shape) and pass x.detach()"
        )


def has_tangent(x: torch.Tensor) -> bool:
    """Whether it is a dual number of forward-mode differentiation."""
    return forward_ad._current_level >= 0 and forward_ad.unpack_dual(x).tangent is not None


def no_memory(x: torch.Tensor) -> str | None:
    """Return why a tensor is not one dense block of memory, or None."""
    if x.layout is not torch.strided:
        return f"a {x.layout} tensor is not dense memory: pass x.to_dense()"
    if type(x) in (torch.Tensor, torch.nn.Parameter):
        return None
    from ...protocols.rejections import lost  # which a first view does not need

    return _CLASSES[type(x)] or lost(x)


def _not_its_memory(cls: type) -> str | None:
    """Return why the value of a class's instances may not be what their memory has, or None."""
    if getattr(cls, "__torch_dispatch__", _NO_DISPATCH) is not _NO_DISPATCH:
        if hasattr(cls, "device_mesh"):
            return f"a {cls.__name__} has shards in several processes: use arraybridge.sharding"
        return f"{cls.__name__} wraps other tensors: convert the wrapped tensors"
    function = cls.__torch_function__  # type: ignore[attr-defined]
    known = getattr(function, "__func__", function) in _OWN_FUNCTIONS and all(
        getattr(cls, each) is getattr(torch.Tensor, each) for each in _OF_MEMORY
    )
    if known or package_of(cls) in _KNOWN_SUBCLASSES:
        return None
    return (
        f"a {cls.__name__} decides itself what PyTorch's functions do, so its value may not be "
        "what its memory has: pass x.as_subclass(torch.Tensor) for the memory"
    )


_CLASSES = TypeCache(_not_its_memory)


def span_of(x: torch.Tensor) -> int:
    """Return the number of elements from the first in memory to the last, inclusive."""
    size = x.numel()
    if x.is_contiguous() or not size:
        return size
    strides = x.stride()
    return 1 + sum(map(mul, x.shape, strides)) - sum(strides)


def lacks_memory(x: torch.Tensor, data: int) -> str | None:
    """Return why the elements are not in the memory that the tensor reports, or None."""
    span = span_of(x)
    if not span:
        return None
    start = x.storage_offset() * x.itemsize
    if data in (0, start):  # a null pointer
        if x._is_zerotensor():
            return "its zeros have no memory: pass x.clone()"
        if torch._is_functional_tensor(x):
            return "it is functionalized, without memory: convert outside torch.func.functionalize"
    needed = start + span * x.itemsize
    storage = x.untyped_storage()
    there = storage.nbytes()
    if there < needed:
        if not storage.resizable():
            return (
                f"its storage was resized to {there} bytes, or could not be resized to the "
                f"{needed} that its elements need, as a view pins it: make a new tensor"
            )
        return (
            f"its storage was resized to {there} bytes, but its elements need {needed}: pass "
            f"x after x.untyped_storage().resize_({needed})"
        )
    return None


def in_storage(x: torch.Tensor) -> bool:
    """Whether the storage has all elements."""
    span = span_of(x)
    if not span:
        return True
    storage = x.untyped_storage()
    # Zeros without memory have a size.
    return storage.nbytes() >= (x.storage_offset() + span) * x.itemsize and storage.data_ptr() != 0


def not_negated(x: torch.Tensor) -> str | None:
    """Return why the negative bit of a tensor cannot be applied, or None."""
    if _negates(x.dtype):
        return None
    return (
        f"its negative bit is set, and PyTorch negates no {x.dtype}: pass torch._neg_view(x), "
        "the values in its memory"
    )


@cache
def _negates(dtype: torch.dtype) -> bool:
    try:
        torch.zeros(1, dtype=dtype, device="cpu").neg()
    except RuntimeError:
        return False
    return True
