"""The size of an owner's memory, against which ``from_pointer`` checks its arguments."""

from __future__ import annotations

from typing import Any

import numpy
from numpy.lib.array_utils import byte_bounds

from ..dispatch.registry import library_named, package_of
from ..dlpack import Device, ManagedTensor, is_capsule
from ..dlpack.validate import extent
from ..layout import span
from ..protocols.objects import as_source


def check_extent(tensor: ManagedTensor, pointer: int) -> Any:
    """Check that a tensor that begins in its owner's memory also ends in it.

    Where that memory is read-only, the tensor becomes so.

    Parameters
    ----------
    tensor : ManagedTensor
    pointer : int
        What its offset counts from.

    Returns
    -------
    object
        What holds that memory: the owner's exported buffer, which cannot be resized or closed
        meanwhile, or what its library exports, since an array can be given other memory. None where
        the owner has none or its memory is somewhere else.

    Raises
    ------
    ValueError
        For a tensor that reaches past the memory: how many bytes it needs, and how many there are.
    """
    owner = tensor.owner
    if owner is None or not tensor.device.addressable:
        return None
    known = _memory_of(owner, tensor.device)
    if known is None:
        return None
    low, high, readonly, held = known
    strides, first, end = extent(tensor.shape, tensor.strides, tensor.dtype)
    begin, end = tensor.pointer + first, tensor.pointer + end
    if not (low <= pointer <= high or (begin < high and end > low)):
        return None  # what keeps memory alive need not be where it lies
    if begin != end and not low <= begin <= end <= high:
        raise ValueError(
            f"shape {tensor.shape} of {tensor.dtype} with strides {strides} (elements) needs "
            f"{end - begin} bytes, {begin - low} to {end - low} of its owner's memory; the "
            f"{type(owner).__name__} has {high - low}: correct them, or pass as owner what has all"
        )
    tensor.readonly |= readonly
    return held


def _memory_of(owner: Any, device: Device) -> tuple[int, int, bool, Any] | None:
    """Return (first byte, end, read-only, holder) of an object's memory; None if unknown."""
    root = _root(owner)
    if device.host:
        kind = type(root)
        if package_of(kind) == "multiprocessing":  # its SharedMemory
            root = getattr(root, "buf", root)
        if all(callable(getattr(kind, name, None)) for name in ("data_ptr", "nbytes")):
            return root.data_ptr(), root.data_ptr() + root.nbytes(), False, None  # torch's storage
        if isinstance(root, numpy.ndarray):
            return *byte_bounds(root), _readonly(owner), None
        try:
            held = numpy.frombuffer(root, numpy.uint8)
        except (TypeError, ValueError, BufferError):  # no buffer, or not in one piece
            pass
        else:
            place = held.ctypes.data
            return place, place + held.nbytes, _readonly(owner) or not held.flags.writeable, held
    if is_capsule(owner) or isinstance(owner, type):
        return None
    try:
        x, library = as_source(owner)
        info = library.describe(x)
        if info.refused and hasattr(x, "detach"):  # as for gradients, which matter to no memory
            x = x.detach()
            info = library.describe(x)
    except Exception:  # no array, or one without memory: an owner may be anything
        return None
    if info.refused or info.pending or (info.device != device and not info.device.host):
        return None
    low, high = (place * info.itemsize for place in span(info.shape, info.strides, 1))
    tensor = library.export_described(x, info)
    return info.pointer + low, info.pointer + high, info.readonly, tensor


def _readonly(owner: Any) -> bool:
    """Whether a view is read-only although its base is writable."""
    if isinstance(owner, memoryview):
        return owner.readonly
    return isinstance(owner, numpy.ndarray) and library_named("numpy").describe(owner).readonly


def _root(owner: Any) -> Any:
    """Return the object at the end of a chain of views: the whole of the memory."""
    while True:
        try:
            base = owner.obj if isinstance(owner, memoryview) else owner.base
        except (AttributeError, ValueError):  # it has none, or was released
            return owner
        if base is None or not isinstance(owner, memoryview | numpy.ndarray):
            return owner
        if not isinstance(base, memoryview | numpy.ndarray):
            try:
                memoryview(base)
            except TypeError:
                return owner  # something with an array interface: the view is all that is known
        owner = base
