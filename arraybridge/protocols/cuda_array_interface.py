"""The CUDA array interface, both ways: ``__cuda_array_interface__`` to a core tensor and back.

An object that has it and no ``__dlpack__`` is described by the dictionary. That has no device and,
before version 3, no stream: the CUDA driver returns the device (without a driver the pointer is
useless anyway, and device 0 is assumed), and an export orders the consumer's stream after the
producer's.

Source: Numba's documentation, "CUDA Array Interface (Version 3)".
"""

from collections.abc import Mapping
from contextlib import suppress
from operator import index
from typing import Any

import numpy as np

from ..core.library import Library
from ..core.records import Accepts, ConversionError, TensorInfo
from ..dlpack import Device, DeviceType, MalformedTensorError, ManagedTensor, c_strides
from ..kernels.cuda import context
from ..kernels.cuda.driver import CUDAError
from ..layout import in_bytes, in_elements
from ..ndarrays import NATIVE, dlpack_dtype, numpy_dtype

_DEVICES = frozenset({DeviceType.CUDA, DeviceType.CUDA_MANAGED, DeviceType.CUDA_HOST})


class CudaArrayInterface(Library):
    """Objects with the interface whose library is unknown."""

    name = "cuda_array_interface"
    accepts = Accepts(library="cuda_array_interface", tested="3", dtypes=frozenset())

    def owns(self, array_type: type) -> bool:
        return False

    def alias(self, x: Any) -> ManagedTensor:
        """Look at the interface once, so that the memory exported is that described."""
        if type(x) is ManagedTensor:
            return x
        interface = x.__cuda_array_interface__
        tensor = tensor_of(x, interface)
        tensor.producer = interface.get("stream")
        return tensor

    def describe(self, x: Any) -> TensorInfo:
        return TensorInfo.of_tensor(self.alias(x), self.name)

    def may_change(self, x: Any) -> bool:
        return True

    def export(self, x: Any, stream: int | None = None) -> ManagedTensor:
        tensor = self.alias(x)
        order(tensor.producer, stream, tensor.device)
        if stream is None:
            tensor.ordered = True
        return tensor


LIBRARY = CudaArrayInterface()


def tensor_of(
    x: Any, interface: Mapping[str, Any] | None = None, device: Device | None = None
) -> ManagedTensor:
    """Return an owning tensor on the memory that ``x.__cuda_array_interface__`` describes.

    The interface and the device are queried if the caller does not pass them. Nothing is
    synchronized: :func:`order` does that. MalformedTensorError for a dictionary that contradicts
    the interface; ConversionError, with what to do, for a mask or elements without a DLPack type.
    """
    if interface is None:
        interface = x.__cuda_array_interface__
    name = type(x).__name__
    try:
        shape, (pointer, readonly) = tuple(map(index, interface["shape"])), interface["data"]
        strides = interface.get("strides")
        strides = None if strides is None else tuple(map(index, strides))
        pointer, dtype = index(pointer), np.dtype(interface["typestr"])
        # Stream 0 is forbidden: it could mean either default stream.
        if not 0 <= index(interface["version"]) <= 3 or interface.get("stream") == 0:
            raise ValueError("expected a version up to 3, and a stream other than 0")
        if strides is not None and len(strides) != len(shape):
            raise ValueError(f"strides {strides} for shape {shape}")
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedTensorError(
            f"{name}.__cuda_array_interface__ is malformed ({error!r}): {dict(interface)}"
        ) from error
    if interface.get("mask") is not None:
        raise ConversionError(
            f"{name} has a mask, which would be lost: convert x.data, or fill it first"
        )
    found = dlpack_dtype(dtype)
    if found is None or not dtype.isnative:
        raise ConversionError(
            f"{name} has elements of type {dtype.str}: swap their bytes, pass fields or bytes"
        )
    steps, whole = in_elements(shape, strides, dtype.itemsize) if strides else (c_strides(shape), 1)
    if not whole:
        raise ConversionError(
            f"{name} has strides {strides} (bytes), not multiples of its item size "
            f"{dtype.itemsize}, which DLPack does not support: make it contiguous first"
        )
    place = device or device_of_pointer(pointer)
    return ManagedTensor.adopt(
        pointer, shape, found, owner=x, strides=steps, device=place, readonly=bool(readonly)
    )


def interface_of(tensor: ManagedTensor, stream: int | None = None) -> dict[str, object]:
    """Make the ``__cuda_array_interface__``, version 3, of a tensor that the caller keeps alive.

    The memory is ready on `stream`; None means that consumers need not wait. ConversionError if
    CUDA cannot address the memory, or a type string cannot name the data type.
    """
    if tensor.device.type not in _DEVICES:
        raise ConversionError(f"the CUDA array interface cannot describe memory on {tensor.device}")
    if tensor.dtype.name not in NATIVE:
        raise ConversionError(
            f"the CUDA array interface has no type string for {tensor.dtype}: pass its bits, "
            "as unsigned integers of the same width"
        )
    shape, strides, dtype = tensor.shape, tensor.strides, numpy_dtype(tensor.dtype)
    return {
        "shape": shape,
        "typestr": dtype.str,
        "data": (0 if 0 in shape else tensor.pointer, tensor.readonly),
        "strides": None if strides == c_strides(shape) else in_bytes(strides, dtype.itemsize),
        "stream": stream,
        "version": 3,
    }


def device_of_pointer(pointer: int) -> Device:
    """Return the device of a pointer by the driver; CUDA device 0 if it does not know it."""
    found = None
    with suppress(CUDAError):
        found = context.memory_of(pointer) if pointer else None
    if found is None:
        return Device(DeviceType.CUDA)
    # For a pointer that the driver does not know, the ordinal is negative (CU_DEVICE_INVALID).
    ordinal, managed = found
    return Device(DeviceType.CUDA_MANAGED if managed else DeviceType.CUDA, max(ordinal, 0))


def captures(stream: int | None, device: Device) -> bool:
    """Return whether work put on a stream becomes part of a CUDA graph."""
    try:
        return stream not in (None, -1) and context.capturing(context.device(device.id), stream)
    except CUDAError:  # the next call raises it
        return False


def order(producer: int | None, consumer: int | None, device: Device) -> None:
    """Make later work on stream ``consumer`` wait for the current work on stream ``producer``.

    CUDA's streams are 1 (legacy default), 2 (per-thread default), or handles. A producer of None
    has no work to wait for. A consumer of None is the host if it can read the memory, which then
    waits, or else the legacy default stream; -1 does not wait. ConversionError if the driver
    refuses, for instance because a stream belongs to another device or was destroyed.
    """
    if producer is None or consumer == -1:
        return
    try:
        if consumer is None and device.host:
            context.wait(device.id, producer)
        else:
            context.order(device.id, consumer, producer)
    except CUDAError as error:
        if error.code is None:
            return  # no driver, so nothing can run
        raise ConversionError(f"the CUDA driver cannot order streams: {error}") from error
