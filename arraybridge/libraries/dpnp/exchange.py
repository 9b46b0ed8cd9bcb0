"""dpnp. Its arrays are on SYCL devices, DLPack's oneAPI.

Its importer counts memory from the first element up, so negative strides do not fit: here the
whole span is imported flat, and a view has the layout. DLPack has no streams for oneAPI, so an
export waits for the work queued on the array.
"""

from typing import Any

import dpnp
import numpy as np
from dpctl import SyclDevice, SyclDeviceCreationError, get_num_devices
from dpnp.exceptions import DLPackCreationError
from dpnp.tensor import usm_ndarray

from ...core.library import Computing, Devices, Library, deferred
from ...core.planner import check_present
from ...core.records import Accepts, ConversionError, TensorInfo, first_line
from ...dlpack import DataType, Device, DeviceType, ManagedTensor, from_capsule
from ...layout import span
from ...ndarrays import NATIVE, dlpack_dtype, numpy_dtype
from ...protocols.producer import Producer

_ONEAPI = DeviceType.ONEAPI


class _Devices(Devices):
    def place(self, device: object) -> Device | None:
        device = getattr(device, "sycl_device", device)
        return Device(_ONEAPI, device.get_device_id()) if isinstance(device, SyclDevice) else None

    def empty(self, info: TensorInfo, like: Any = None) -> dpnp.ndarray:
        if like is not None:
            return dpnp.empty_like(like, order="C")  # on its queue, with its kind of memory
        return dpnp.empty(
            info.shape, dtype=numpy_dtype(info.dtype), device=str(info.device.id), order="C"
        )

    def native_device(self, device: Device) -> str:
        check_present("dpnp", device, get_num_devices())
        return str(device.id)

    def to_device(self, x: Any, device: Device) -> np.ndarray | dpnp.ndarray:
        if device.host:
            return np.asarray(dpnp.asnumpy(x))  # a 0-d array comes as a scalar
        try:
            if isinstance(x, dpnp.ndarray):
                return x.to_device(str(device.id))
            return dpnp.asarray(x, device=str(device.id), copy=True)
        except (SyclDeviceCreationError, RuntimeError, ValueError) as error:
            # There is no such device, or it lacks the dtype (float64 on many GPUs).
            raise ConversionError(
                f"dpnp could not put {x.dtype} on {device}: {first_line(error)}"
            ) from error


class _Computing(Computing):
    native_namespace = deferred(__package__, "namespace", "native")
    array_class = deferred(__package__, "namespace", "DpnpArray")

    def astype(self, x: dpnp.ndarray, dtype: DataType, axes: tuple[int, ...]) -> dpnp.ndarray:
        made = x.transpose(axes).astype(numpy_dtype(dtype), order="C", copy=True)
        return made.transpose([axes.index(axis) for axis in range(len(axes))])

    def assign(self, dst: dpnp.ndarray, src: dpnp.ndarray) -> None:
        dst[...] = src


class Dpnp(Library):
    """``dpnp.ndarray`` on SYCL devices."""

    name = "dpnp"
    devices = _Devices()
    computing = _Computing()
    accepts = Accepts(
        library="dpnp",
        tested="0.20.0",
        dtypes=frozenset(NATIVE),
        devices=frozenset({_ONEAPI}),
        readonly=True,
    )

    def owns(self, array_type: type) -> bool:
        return issubclass(array_type, dpnp.ndarray)

    def describe(self, x: dpnp.ndarray) -> TensorInfo:
        array = x.get_array()
        dtype = dlpack_dtype(np.dtype(array.dtype))
        assert dtype is not None, f"dpnp {dpnp.__version__} has the new dtype {array.dtype}"
        device, readonly = Device.parse(x.__dlpack_device__()), not array.flags.writable
        return TensorInfo(
            "dpnp", array._pointer, 0, array.shape, array.strides, dtype, device, readonly
        )

    def export(self, x: dpnp.ndarray, stream: int | None = None) -> ManagedTensor:
        x.sycl_queue.wait()
        try:
            tensor = from_capsule(x.__dlpack__(max_version=(1, 0)))
        except DLPackCreationError as error:  # a part of a device, another context
            raise ConversionError(
                f"{first_line(error)}: pass device='cpu', or copy it to a whole device first, "
                "x.to_device('0')"
            ) from error
        # The capsule of one element, x[2, 3], is read-only although the array is not (0.20.0).
        tensor.readonly = not x.get_array().flags.writable
        return tensor

    def wrap(self, tensor: ManagedTensor) -> dpnp.ndarray:
        dtype, shape, strides = tensor.dtype, tensor.shape, tensor.strides
        if 0 in shape:
            result = dpnp.empty(shape, dtype=numpy_dtype(dtype), device=str(tensor.device.id))
        elif min(strides, default=0) >= 0:
            result = dpnp.from_dlpack(Producer(tensor))
        else:
            low, high = span(shape, strides, 1)
            start = tensor.pointer + low * dtype.itemsize
            flat = ManagedTensor.adopt(
                start, (high - low,), dtype, owner=tensor.owner, device=tensor.device
            )
            block = dpnp.from_dlpack(Producer(flat)).get_array()
            result = dpnp.ndarray._create_from_usm_ndarray(
                usm_ndarray(shape, dtype=block.dtype, buffer=block, strides=strides, offset=-low)
            )
        if tensor.readonly:
            result.flags.writable = False
        return result

    def copy(self, x: dpnp.ndarray) -> dpnp.ndarray:
        return x.copy(order="C")


LIBRARY = Dpnp()
