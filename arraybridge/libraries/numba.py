"""Numba's CUDA arrays, through the CUDA array interface: they have no ``__dlpack__`` (numba#4719).

Under the simulator (``NUMBA_ENABLE_CUDASIM=1``) an array is a NumPy array in disguise. It is
treated as the array on CUDA device 0 that it simulates: a missing transfer fails there too.
"""

from typing import Any

import numpy as np
from numba import cuda
from numba.cuda.cudadrv import devicearray
from numba.cuda.cudadrv.error import CudaSupportError

try:
    from numba.cuda.core import config
except ImportError:  # Numba's own CUDA target, before numba-cuda
    from numba import config

from ..core.library import Devices, Library
from ..core.records import NO_DTYPE, Accepts, ConversionError, TensorInfo
from ..dlpack import DataType, Device, DeviceType, ManagedTensor
from ..layout import in_elements, span
from ..ndarrays import NATIVE, dlpack_dtype, numpy_dtype
from ..protocols.cuda_array_interface import interface_of, order, tensor_of

_SIMULATED = hasattr(devicearray, "FakeCUDAArray")
_Array = devicearray.FakeCUDAArray if _SIMULATED else devicearray.DeviceNDArrayBase


class _Devices(Devices):
    def empty(self, info: TensorInfo, like: object = None) -> Any:
        with cuda.gpus[info.device.id]:
            return cuda.device_array(info.shape, numpy_dtype(info.dtype))

    def to_device(self, x: Any, device: Device) -> Any:
        host = x if isinstance(x, np.ndarray) else self._fetched(x)
        if device.host:
            return host
        with self.native_device(device):
            return cuda.to_device(np.ascontiguousarray(host).reshape(host.shape))

    def _fetched(self, x: Any) -> np.ndarray:
        # Numba refuses negative strides and misreads others: copy the span as bytes.
        low, high = span(x.shape, x.strides, x.dtype.itemsize)
        if low == high:
            return np.empty(x.shape, x.dtype)
        flat = tensor_of(x)
        flat = ManagedTensor.adopt(
            flat.pointer + low, (high - low,), DataType(1, 8), owner=x, device=flat.device
        )
        order(x.__cuda_array_interface__["stream"], self.current_stream(flat.device), flat.device)
        bytes_there: Any = LIBRARY.wrap(flat)
        block = bytes_there.copy_to_host()
        return np.ndarray(x.shape, x.dtype, block, -low, x.strides)

    def native_device(self, device: Device) -> Any:
        try:
            return cuda.gpus[device.id]
        except (IndexError, CudaSupportError) as error:
            raise ConversionError(
                f"Numba finds no {device} here: python -m numba -s shows what it finds"
            ) from error

    def current_stream(self, device: Device) -> int | None:
        return 2 if getattr(config, "CUDA_PER_THREAD_DEFAULT_STREAM", 0) else 1


class NumbaCUDA(Library):
    """Arrays on a CUDA device."""

    name = "numba"
    devices = _Devices()
    accepts = Accepts(
        library="numba",
        tested="0.30.4",  # of numba-cuda
        dtypes=frozenset(NATIVE),
        devices=frozenset({DeviceType.CUDA, DeviceType.CUDA_MANAGED}),
        remedies={"bfloat16": "pass its bits as uint16"},
    )

    def owns(self, array_type: type) -> bool:
        return issubclass(array_type, _Array)

    def describe(self, x: Any) -> TensorInfo:
        return _described(x, x.device_ctypes_pointer.value or 0, _place(x))

    def export(self, x: Any, stream: int | None = None) -> ManagedTensor:
        interface = x.__cuda_array_interface__
        tensor = tensor_of(x, interface, _place(x))
        if x.gpu_data is not None:
            tensor.owner = x.gpu_data  # ``x.gpu_data = `` may replace the array's memory
        own = interface["stream"] or self.devices.current_stream(tensor.device)
        order(own, stream, tensor.device)
        return tensor

    def wrap(self, tensor: ManagedTensor) -> Any:
        with cuda.gpus[tensor.device.id]:
            return cuda.from_cuda_array_interface(
                interface_of(tensor), owner=tensor.owner, sync=False
            )


class _SimulatedDevices(_Devices):
    empty = Devices.empty

    def _fetched(self, x: Any) -> np.ndarray:
        return x._ary.copy(order="C")

    def current_stream(self, device: Device) -> int | None:
        return 1


class Simulator(NumbaCUDA):
    """Arrays of the simulator: they are on the host, and no CUDA kernel may write to them."""

    devices = _SimulatedDevices()

    def describe(self, x: Any) -> TensorInfo:
        return _described(x._ary, x._ary.ctypes.data, Device(DeviceType.CUDA))

    def export(self, x: Any, stream: int | None = None) -> ManagedTensor:
        raise ConversionError(
            "an array of Numba's simulator has no device memory: pass device='cpu', or "
            "run without NUMBA_ENABLE_CUDASIM"
        )

    def wrap(self, tensor: ManagedTensor) -> Any:
        raise ConversionError(
            "Numba's simulator cannot read device memory: pass device='cpu' first"
        )

    def copy(self, x: Any) -> Any:
        return cuda.to_device(x._ary.copy(order="C"))


def _described(x: Any, pointer: int, place: Device) -> TensorInfo:
    shape, strides, itemsize = tuple(x.shape), tuple(x.strides), x.dtype.itemsize
    kind, refused = dlpack_dtype(x.dtype), None
    steps, whole = in_elements(shape, strides, itemsize)
    if kind is None:
        kind = NO_DTYPE
        refused = f"{x.dtype} has no DLPack type: pass its fields or its bytes"
    if not whole:
        refused = refused or f"strides {strides} are not multiples of the item size {itemsize}"
    return TensorInfo("numba", pointer, 0, shape, steps, kind, place, refused=refused)


def _place(x: Any) -> Device:
    kind = DeviceType.CUDA
    if isinstance(x, getattr(devicearray, "ManagedNDArray", ())):
        kind = DeviceType.CUDA_MANAGED
    return Device(kind, x.gpu_data.context.device.id)


LIBRARY: Library = Simulator() if _SIMULATED else NumbaCUDA()
