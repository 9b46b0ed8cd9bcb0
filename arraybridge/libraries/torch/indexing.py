"""Corrected indexing for PyTorch: negative steps, arrays of any integer type, unsigned elements.

An integer beside an index array counts as one, as in NumPy, which decides where the axes of the
arrays lie: PyTorch selects first, and then finds the arrays side by side.

Elements of uint16, uint32 and uint64 are moved as the signed integers of the same bits, which have
all kernels on every device.
"""

from __future__ import annotations

from typing import Any

import numpy
import torch

from ...array.indexing import axes_of, set_apart, steps_of
from .readonly import ReadOnlyTensor
from .state import differentiated, transformed

_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}

_ARRAYS = (torch.Tensor, numpy.ndarray, list, tuple, range)


def get(native: torch.Tensor, key: Any) -> torch.Tensor:
    """Get elements: a view where torch gives one, a copy where a step is negative."""
    parts = key if key.__class__ is tuple else (key,)
    ellipses = 0
    for part in parts:
        if part is ...:
            ellipses += 1
            if ellipses > 1:
                raise IndexError("an index can have one ellipsis only")
        elif part.__class__ is slice:
            if part.step is not None and part.step < 0:
                break
        elif isinstance(part, _ARRAYS):
            break
    else:
        return native[key]
    signed = _SIGNED.get(native.dtype)
    source = native if signed is None else native.view(signed)
    result = _get(source, *_parts(native, parts))
    return result if signed is None else result.view(native.dtype)


def _get(native: torch.Tensor, parts: tuple[Any, ...], extra: int | None) -> torch.Tensor:
    steps = steps_of(parts, tuple(native.shape))
    if steps is None:
        result = native[parts]
    else:
        result = native[steps.forward].flip(steps.flipped)[steps.rest]
    return result if extra is None else result.squeeze(extra)


def set(native: torch.Tensor, key: Any, value: Any) -> torch.Tensor:
    """Write elements into the memory of the array, and return the array.

    If it is read-only, a written copy.
    """
    if native.__class__ is ReadOnlyTensor:
        native = native.clone()
    tensor = isinstance(value, torch.Tensor)
    if tensor and share(native, value):
        if _is_there(native, key, value):
            return native
        value = value.clone()
    signed = _SIGNED.get(native.dtype)
    target = native
    if signed is not None:
        target = native.view(signed)
        value = torch.as_tensor(value, dtype=native.dtype, device=native.device).view(signed)
    elif tensor and value.dtype != native.dtype:
        value = value.to(native.dtype)
    parts, extra = _parts(native, key if key.__class__ is tuple else (key,), writing=True)
    steps = steps_of(parts, tuple(native.shape))
    if steps is None and extra is None:
        target[parts] = value
        return native
    value = torch.as_tensor(value, dtype=target.dtype, device=target.device)
    if steps is None or any(isinstance(part, torch.Tensor) for part in parts):
        indices = torch.arange(target.numel(), device=target.device).reshape(target.shape)
        indices = _get(indices, parts, extra)
        target.put_(indices, value.broadcast_to(indices.shape))
        return native
    part = target[steps.forward][steps.rest]
    part[...] = value.broadcast_to(part.shape).flip(steps.turned)
    return native


def share(native: torch.Tensor, x: torch.Tensor) -> bool:
    """Whether ``x`` may change while the array is written: they have memory in common.

    torch refuses that if it notices, and else reads what has just been written. What is transformed
    shows no memory; a compiler drops the copies that it does not need.
    """
    return transformed() or torch._C._is_alias_of(native, x) or _meet(native, x)


def _meet(native: torch.Tensor, x: torch.Tensor) -> bool:
    """Whether the storages overlap, of tensors that another library made on the same memory."""
    try:
        first, second = native.data_ptr(), x.data_ptr()
        if first > second:
            first, second, native, x = second, first, x, native
        # No stride is negative: only the end of the first one matters.
        if native.is_contiguous():
            end = first + native.nbytes
        else:
            storage = native.untyped_storage()
            end = storage.data_ptr() + storage.nbytes()
    except (RuntimeError, NotImplementedError):  # no memory to show: fake, sparse, wrapped tensors
        return False
    return second < end and native.device == x.device


def of_shared_memory(in_place: Any) -> Any:
    """Make an in-place operator correct for operands that share memory, and read-only memory.

    torch refuses ``x += x[1]``, and gets ``x[:, 1:] += x[:, :-1]`` wrong.
    """

    def operator(native: torch.Tensor, other: Any) -> torch.Tensor:
        if native.__class__ is ReadOnlyTensor:
            native = native.clone()
        if other is not native and isinstance(other, torch.Tensor) and share(native, other):
            other = other.clone()
        result: torch.Tensor = in_place(native, other)
        return result

    return operator


def _is_there(native: torch.Tensor, key: Any, value: torch.Tensor) -> bool:
    """Whether a value is already where it is to be written, as that of ``x[1:] += y`` is."""
    if differentiated(native) or differentiated(value) or value.dtype != native.dtype:
        return False
    parts = key if key.__class__ is tuple else (key,)
    if any(isinstance(part, torch.Tensor) for part in parts):
        return False
    place = get(native, key)
    return (place.data_ptr(), place.shape, place.stride()) == (
        value.data_ptr(),
        value.shape,
        value.stride(),
    )


def _parts(
    native: torch.Tensor, key: tuple[Any, ...], *, writing: bool = False
) -> tuple[tuple[Any, ...], int | None]:
    """Convert the parts of an index to what torch reads as NumPy does.

    Returned with them is an axis of extent 1 that the result has by these, and is not to have.
    """
    parts: list[Any] = []
    axis = 0
    key = tuple([_tensor(part, native) if isinstance(part, _ARRAYS) else part for part in key])
    left = native.ndim - sum(axes_of(part) for part in key)
    for part in key:
        if isinstance(part, torch.Tensor):
            part = _array(part, tuple(native.shape[axis : axis + axes_of(part)]))
            if writing and share(native, part):
                part = part.clone()
        parts.append(part)
        axis += left if part is ... else axes_of(part)
    extra = set_apart(
        parts, native.shape, lambda index: torch.full((1,), index, device=native.device)
    )
    return tuple(parts), extra


def _tensor(part: Any, native: torch.Tensor) -> Any:
    """Convert an index array or a nested sequence; an integer of no axes stays one."""
    if isinstance(part, torch.Tensor):
        return part
    array = numpy.asarray(part)
    if not (array.size or isinstance(part, numpy.ndarray)):  # float64, of an empty list
        array = array.astype(int)
    return torch.as_tensor(array, device=native.device)


def _array(part: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    if part.dtype is not torch.bool:
        return part.long()  # torch would take uint8 for a mask
    if 0 in part.shape and part.shape != shape and len(shape) == part.ndim:
        pairs = zip(part.shape, shape, strict=True)
        if all(mask in (extent, 0) for mask, extent in pairs):
            return part.new_zeros(shape)  # nothing is chosen
    return part
