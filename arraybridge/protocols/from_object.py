"""Arrays of unknown libraries, as owning tensors.

Objects that support DLPack, an array interface or the buffer protocol, and bare capsules.
"""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from ..core.library import Library
from ..core.records import Accepts, ConversionError, TensorInfo
from ..core.registry import RECORDS, library_named
from ..dlpack import DeviceType, ManagedTensor, acquire, exchange_api, is_capsule
from ..layout import span
from .frames import opened_frame
from .rejections import handed_on, lost, no_array, own


class Protocol(Library):
    """The library of core tensors: everything without an array type."""

    name = "dlpack"
    accepts = Accepts(library="dlpack", tested="1.3", dtypes=frozenset())

    def owns(self, array_type: type) -> bool:
        return array_type is ManagedTensor

    def describe(self, x: ManagedTensor | TensorInfo) -> TensorInfo:
        # A capsule that is only described is represented by its info.
        return x if isinstance(x, TensorInfo) else TensorInfo.of_tensor(x)

    def may_change(self, x: ManagedTensor) -> bool:
        return not getattr(x, "immutable", False)

    def export(self, x: ManagedTensor, stream: int | None = None) -> ManagedTensor:
        if hasattr(x, "ordered"):
            # While the legacy default stream is captured in a graph it cannot wait.
            from .cuda_array_interface import captures, order

            order(None if captures(stream, x.device) else 1, stream, x.device)
        return x


LIBRARY = Protocol()
_ON_CUDA = frozenset({DeviceType.CUDA, DeviceType.CUDA_MANAGED})


def as_source(x: Any, looking: bool = False, to: str = "") -> tuple[object, Library]:
    """Return the array or tensor that ``x`` converts as, and its library; consume a capsule.

    If it is only described (`looking`), reading that would consume or compute it is refused. `to`
    is the target, if any, for errors. TypeError if ``x`` is not an array in memory by any protocol;
    ConversionError if it is more than its memory: it has a unit, or forwards the protocol of an
    array that it wraps.
    """
    record = RECORDS[type(x)]
    library = record.library
    if library is not None:
        return x, library
    if record.frame is not None:
        frame: tuple[object, Library] | None = record.frame(x, looking)
        if frame is not None:
            return frame
    if hasattr(type(x), "__arraybridge__"):
        carried: tuple[object, Library] = x.__arraybridge__()
        return carried
    if type(x) is ManagedTensor:
        return x, LIBRARY
    if is_capsule(x):
        return _ordered(acquire(x)), LIBRARY
    if isinstance(x, type):
        raise no_array(x)
    if own(x, "__dlpack__") is not None:
        _guard(x)
        api = exchange_api(type(x))
        tensor = None if api is None else api.acquire(x)
        if tensor is None or tensor.device.type in _ON_CUDA:  # the C function orders none
            tensor = _ordered(acquire(x))
        return tensor, LIBRARY
    if own(x, "__cuda_array_interface__") is not None:
        from .cuda_array_interface import LIBRARY as CUDA_ARRAY_INTERFACE

        return x, CUDA_ARRAY_INTERFACE
    interface = own(x, "__array_interface__")
    if interface is not None:
        _check_interface(x, interface)
        return np.asarray(x), library_named("numpy")
    objection = handed_on(x)
    if objection is not None:
        raise ConversionError(objection)
    opened = opened_frame(x, looking)
    if opened is not None:
        return opened
    try:
        buffer = memoryview(x)
    except TypeError:
        raise no_array(x, to) from None
    try:
        return np.asarray(buffer), library_named("numpy")  # so that bytes are numbers, not text
    except ValueError as error:  # such as pointers of ctypes
        remedy = "x.contents" if hasattr(x, "contents") else "its bytes, memoryview(x).cast('B')"
        raise ConversionError(
            f"the buffer of {type(x).__name__} has the format {buffer.format!r}, for which NumPy "
            f"has no dtype: pass {remedy}"
        ) from error


def _ordered(tensor: ManagedTensor) -> ManagedTensor:
    """Note that the producer was given no stream, so that the legacy default one waits for it."""
    if tensor.device.type in _ON_CUDA:
        tensor.ordered = True
    return tensor


def _check_interface(x: Any, interface: object) -> None:
    """Check what NumPy ignores: a mask, and the end of a buffer."""
    if not isinstance(interface, dict):
        return  # NumPy's error is better
    if interface.get("mask") is not None:
        raise ConversionError(
            f"{type(x).__name__} has a mask in its __array_interface__, which would be lost: fill "
            "it, and pass an array of the result"
        )
    data, offset = interface.get("data"), interface.get("offset", 0)
    if isinstance(data, tuple) or not {"shape", "typestr"} <= interface.keys():
        return
    try:
        with memoryview(x if data is None else data) as view:
            there = view.nbytes
        shape, strides = tuple(map(index, interface["shape"])), interface.get("strides")
        strides = None if strides is None else tuple(map(index, strides))
        low, high = span(shape, strides, np.dtype(interface["typestr"]).itemsize)
        begin, end = low + index(offset), high + index(offset)
    except (TypeError, ValueError, BufferError):
        return  # NumPy's error is better
    if begin < 0 or end > there:
        raise ConversionError(
            f"the elements of {type(x).__name__} are bytes {begin} to {end} of its buffer, which "
            f"has {there}: correct the shape, strides or offset in its __array_interface__"
        )


def _guard(x: object) -> None:
    """Raise for what DLPack cannot express and the C exchange API does not check."""
    objection = lost(x)
    if objection is not None:
        raise ConversionError(objection)
    for flag, remedy in (
        ("requires_grad", "detach it first"),
        ("is_conj", "resolve its conjugate bit first"),
        ("is_neg", "resolve its negative bit first"),
    ):
        state = getattr(x, flag, False)
        if (state() if callable(state) else state) is True:
            raise ConversionError(f"{type(x).__name__} has {flag}: {remedy}")
