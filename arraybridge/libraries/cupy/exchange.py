"""CuPy. Its arrays are made from a pointer and exported from their attributes.

Its DLPack importer ignores the read-only flag and refuses pinned memory; its exporter divides
negative strides as if they were unsigned (cupy#10172, fixed by cupy#10228). ``UnownedMemory`` is
public, has neither problem, and takes strides of any sign in bytes.

Sources: cupy/_core/dlpack.pyx; CuPy's documentation, "Interoperability" and "Low-level CUDA
support".
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import cupy
import numpy as np

from ...core.kernel import NoKernel, kernel_for
from ...core.library import Computing, Devices, Library, Routing, deferred, on_memory
from ...core.planner import check_present
from ...core.records import NO_DTYPE, Accepts, Edge, TensorInfo
from ...dlpack import DataType, Device, DeviceType, ManagedTensor
from ...layout import in_bytes, in_elements, span
from ...ndarrays import NATIVE, dlpack_dtype, numpy_dtype

_BFLOAT16 = {"bfloat16"} if int(cupy.__version__.partition(".")[0]) >= 14 else set()
_HIP = bool(cupy.cuda.runtime.is_hip)
_DEVICES = (
    frozenset({DeviceType.ROCM}) if _HIP else frozenset({DeviceType.CUDA, DeviceType.CUDA_MANAGED})
)
_DEVICE = DeviceType.ROCM if _HIP else DeviceType.CUDA
_places: dict[int, Device] = {}  # by number: making one takes 0.5 µs
_DEFAULT_STREAM = 0 if _HIP else 1  # the legacy default stream, by the standard's numbering


def _copy_on_device(x: cupy.ndarray) -> cupy.ndarray | None:
    kind, number = x.dtype, x.data.device_id
    device = _places.get(number) or _places.setdefault(number, Device(_DEVICE, number))
    kernel = kernel_for(device)
    if kernel is None or not x.size:
        return None
    with x.device:
        block = cupy.empty(x.shape, kind)
    stream = LIBRARY.devices.current_stream(device)
    try:
        kernel.run(
            block.data.ptr, x.data.ptr, x.shape, block.strides, x.strides, kind.itemsize,
            stream, device,
        )  # fmt: skip
    except NoKernel:  # there is no compiler: the plan knows
        return None
    return block


class _Devices(Devices):
    def place(self, device: object) -> Device | None:
        return Device(_DEVICE, device.id) if isinstance(device, cupy.cuda.Device) else None

    def empty(self, info: TensorInfo, like: object = None) -> cupy.ndarray:
        with cupy.cuda.Device(info.device.id):
            return cupy.empty(info.shape, numpy_dtype(info.dtype))

    def to_device(self, x: Any, device: Device) -> np.ndarray | cupy.ndarray:
        if device.host:
            with x.device:
                return cupy.asnumpy(x, order="C")
        with self.native_device(device):
            return cupy.array(x, copy=True, order="C")

    def native_device(self, device: Device) -> cupy.cuda.Device:
        try:
            count = cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError:  # no driver, or none for this build
            count = 0
        check_present("CuPy", device, count)
        return cupy.cuda.Device(device.id)

    def current_stream(self, device: Device) -> int | None:
        return cupy.cuda.get_current_stream(device.id).ptr or _DEFAULT_STREAM


class _Computing(Computing):
    native_namespace = deferred(__package__, "namespace", "native")
    array_class = deferred(__package__, "namespace", "CuPyArray")

    def astype(self, x: cupy.ndarray, dtype: DataType, axes: tuple[int, ...]) -> cupy.ndarray:
        with x.device:
            made = x.transpose(axes).astype(numpy_dtype(dtype), order="C", copy=True)
        return made.transpose([axes.index(axis) for axis in range(len(axes))])

    def assign(self, dst: cupy.ndarray, src: cupy.ndarray) -> None:
        with dst.device:
            cupy.copyto(dst, src)


class CuPy(Library):
    """Arrays on a CUDA or ROCm device."""

    name = "cupy"
    devices = _Devices()
    computing = _Computing()
    routing = Routing(lambda x: type(x) is cupy.ndarray)
    edges = (Edge("cupy", "cupy", _copy_on_device, copies=True),)
    accepts = Accepts(
        library="cupy",
        tested="14.2.0",  # without a device: what it builds, not what it computes
        dtypes=frozenset(NATIVE).union(_BFLOAT16),
        devices=_DEVICES,
        remedies={"bfloat16": "CuPy has it from version 14 on; pass its bits as uint16"},
    )

    def owns(self, array_type: type) -> bool:
        return issubclass(array_type, cupy.ndarray)

    def describe(self, x: cupy.ndarray) -> TensorInfo:
        shape, strides, dtype = x.shape, x.strides, x.dtype
        steps, whole = in_elements(shape, strides, dtype.itemsize)
        kind, refused = dlpack_dtype(dtype), None
        if kind is None:
            kind = NO_DTYPE
            refused = f"CuPy's dtype {dtype} has no DLPack type: convert it first, x.astype(...)"
        if not whole:
            refused = refused or (
                f"strides {strides} (bytes) are not multiples of the item size {dtype.itemsize}: "
                "pass cupy.ascontiguousarray(x)"
            )
        return TensorInfo(
            "cupy", x.data.ptr, 0, shape, steps, kind, self._place(x), refused=refused
        )

    @staticmethod
    def _place(x: cupy.ndarray) -> Device:
        if _HIP:
            return Device(DeviceType.ROCM, x.data.device_id)
        try:
            # Only the runtime can identify managed memory: CuPy calls it here.
            return Device.parse(tuple(map(int, x.__dlpack_device__())))
        except cupy.cuda.runtime.CUDARuntimeError:  # no driver: the description still holds
            return Device(DeviceType.CUDA, x.data.device_id)

    def export(self, x: cupy.ndarray, stream: int | None = None) -> ManagedTensor:
        info = self.describe(x)
        wanted = _DEFAULT_STREAM if stream is None else stream
        if wanted != -1:  # -1: the consumer does not want to wait
            with cupy.cuda.Device(info.device.id):
                current = cupy.cuda.get_current_stream()
                if stream is None and info.device.host:  # the host reads managed memory
                    current.synchronize()
                elif wanted != (current.ptr or _DEFAULT_STREAM):
                    cupy.cuda.ExternalStream(wanted).wait_event(current.record())
        return on_memory(info, x.data)  # the memory itself: ``x.data = `` may replace the array's

    def wrap(self, tensor: ManagedTensor) -> cupy.ndarray:
        shape, dtype, place = tensor.shape, tensor.dtype, tensor.device
        strides = in_bytes(tensor.strides, dtype.itemsize)
        low, high = span(shape, strides, dtype.itemsize)
        memory = cupy.cuda.UnownedMemory(tensor.pointer + low, high - low, tensor.owner, place.id)
        pointer = cupy.cuda.MemoryPointer(memory, -low)
        return cupy.ndarray(shape, numpy_dtype(dtype), pointer, strides)

    def copy(self, x: cupy.ndarray) -> cupy.ndarray:
        with x.device:
            return x.copy(order="C")

    def signature(self, x: cupy.ndarray) -> Hashable:
        """Return dtype, axes and emptiness or shape and strides, the device, the alignment."""
        dtype = x.dtype
        layout = (x.ndim, not x.size) if x.flags.c_contiguous else (x.shape, x.strides)
        return dtype, layout, self._place(x), x.data.ptr % (dtype.itemsize or 1)


LIBRARY = CuPy()
