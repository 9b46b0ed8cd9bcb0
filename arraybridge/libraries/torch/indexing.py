"""Corrected indexing for PyTorch: negative steps, arrays of any integer type, unsigned elements.

An integer combined with an index array counts as one, as in NumPy, which decides the position of
the arrays' axes: PyTorch selects first, and then sees the arrays as adjacent.

Elements of uint16, uint32 and uint64 are moved as the signed integers of the same bits, which have
all kernels on every device.
"""

from typing import Any

import numpy
import torch

from ...array.indexing import axes_of, booleans_as_masks, set_apart, steps_of
from ...conversion import convert
from ...core.records import ConversionError
from .promotion import in_range
from .state import differentiated, no_memory, transformed

_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}

_ARRAYS = (torch.Tensor, numpy.ndarray, list, tuple, range)


def get(native: torch.Tensor, key: Any) -> torch.Tensor:
    """Get elements: a view if torch returns one, a copy if a step is negative."""
    parts = key if key.__class__ is tuple else (key,)
    ellipses = 0
    for part in parts:
        if part is ...:
            ellipses += 1
            if ellipses > 1:
                break
        elif part.__class__ is slice:
            if part.step is not None and part.step < 0:
                break
        elif part.__class__ is not int and part is not None:
            break
    else:
        return native[key]
    signed = _SIGNED.get(native.dtype)
    source = native if signed is None else native.view(signed)
    source, key = booleans_as_masks(source, key)
    result = _get(source, *_parts(source, key))
    return result if signed is None else result.view(native.dtype)


def _get(native: torch.Tensor, parts: tuple[Any, ...], extra: int | None) -> torch.Tensor:
    steps = steps_of(parts, tuple(native.shape))
    if steps is None:
        result = native[parts]
    else:
        result = native[steps.forward].flip(steps.flipped)[steps.rest]
    return result if extra is None else result.squeeze(extra)


def set(native: torch.Tensor, key: Any, value: Any) -> torch.Tensor:
    """Write elements into the array's memory, and return the array."""
    tensor = isinstance(value, torch.Tensor)
    if tensor and type(value) is not type(native) and (objection := no_memory(value)):
        raise ConversionError(objection)  # such as a mask, which would be lost
    if tensor and share(native, value):
        if _is_there(native, key, value):
            return native
        value = value.clone()
    elif isinstance(value, int | float | complex) and abs(value) > 6e4:
        value = in_range(value, native.dtype)
    signed = _SIGNED.get(native.dtype)
    target = native
    if signed is not None:
        target = native.view(signed)
        value = torch.as_tensor(value, dtype=native.dtype, device=native.device).view(signed)
    elif tensor and value.dtype != native.dtype:
        value = value.to(native.dtype)
    target, key = booleans_as_masks(target, key)
    parts, extra = _parts(target, key, writing=True)
    steps = steps_of(parts, tuple(target.shape))
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
    """Whether ``x`` may change while the array is written, because they share memory.

    torch refuses that if it detects it, and else reads elements that were just written. Transformed
    tensors show no memory; a compiler drops unnecessary copies.
    """
    return transformed() or torch._C._is_alias_of(native, x) or _meet(native, x)


def _meet(native: torch.Tensor, x: torch.Tensor) -> bool:
    """Whether storages overlap that another library made over the same memory."""
    try:
        first, second = native.data_ptr(), x.data_ptr()
        if first > second:
            first, second, native, x = second, first, x, native
        # No stride is negative, so only the end of the first one matters.
        if native.is_contiguous():
            end = first + native.nbytes
        else:
            storage = native.untyped_storage()
            end = storage.data_ptr() + storage.nbytes()
    except (RuntimeError, NotImplementedError):  # no memory: fake, sparse, wrapped tensors
        return False
    return second < end and native.device == x.device


def _is_there(native: torch.Tensor, key: Any, value: torch.Tensor) -> bool:
    """Whether a value already is where it would be written, as in ``x[1:] += y``."""
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
    native: torch.Tensor, key: Any, *, writing: bool = False
) -> tuple[tuple[Any, ...], int | None]:
    """Convert the parts of an index to a form that torch reads as NumPy does.

    Also return an axis of extent 1 that the result has because of that, to be removed.
    """
    parts: list[Any] = []
    axis = ellipses = 0
    key = key if key.__class__ is tuple else (key,)
    key = tuple([_tensor(part, native) if isinstance(part, _ARRAYS) else part for part in key])
    left = native.ndim - sum(axes_of(part) for part in key)
    for part in key:
        if isinstance(part, torch.Tensor):
            part = _array(part, tuple(native.shape[axis : axis + axes_of(part)]))
            if writing and share(native, part):
                part = part.clone()
        ellipses += part is ...
        if ellipses > 1:
            raise IndexError("an index can only have one ellipsis")
        parts.append(part)
        axis += left if part is ... else axes_of(part)
    extra = set_apart(
        parts, native.shape, lambda index: torch.full((1,), index, device=native.device)
    )
    return tuple(parts), extra


def _tensor(part: Any, native: torch.Tensor) -> Any:
    """Convert an index array or a nested sequence; a zero-dimensional integer is kept."""
    if isinstance(part, torch.Tensor):
        return part
    array = numpy.asarray(part)
    if not (array.size or isinstance(part, numpy.ndarray)):  # an empty list is float64
        array = array.astype(int)
    if not torch.compiler.is_compiling() and array.dtype.kind in "biu":
        array = convert(array, "torch")  # which takes every layout
    return torch.as_tensor(array, device=native.device)


def _array(part: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    if part.dtype is not torch.bool:
        return part.long()  # torch would read uint8 as a mask
    if 0 in part.shape and part.shape != shape and len(shape) == part.ndim:
        pairs = zip(part.shape, shape, strict=True)
        if all(mask in (extent, 0) for mask, extent in pairs):
            return part.new_zeros(shape)  # nothing is selected
    return part
