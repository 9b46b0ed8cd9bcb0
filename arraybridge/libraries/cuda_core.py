"""cuda.core: its ``StridedMemoryView``, which describes memory and holds what it was made of.

It has any strides and keeps the read-only flag. Of bfloat16 it is made, but exports none; float8 it
refuses. It is asked for no stream: what is given to it here is host memory, or has been waited for.

As a target it is measured on the host alone; a view of a GPU's memory is described, not made.
"""

from cuda.core import Device as CudaDevice
from cuda.core.utils import StridedMemoryView

from ..core.library import Devices, Library, array_itself
from ..core.records import NO_DTYPE, Accepts, TensorInfo
from ..dlpack import Device, DeviceType, ManagedTensor, c_strides
from ..ndarrays import NATIVE, dlpack_dtype
from ..protocols.producer import Producer

_NO_WAIT = -1  # as stream_ptr


class _Devices(Devices):
    def place(self, device: object) -> Device | None:
        if isinstance(device, CudaDevice):
            return Device(DeviceType.CUDA, device.device_id)
        return None


class CudaCore(Library):
    """``cuda.core.utils.StridedMemoryView``."""

    name = "cuda_core"
    devices = _Devices()
    accepts = Accepts(
        library="cuda_core", tested="1.2.2", dtypes=frozenset({*NATIVE, "bfloat16"}), readonly=True
    )

    def owns(self, array_type: type) -> bool:
        return issubclass(array_type, StridedMemoryView)

    def describe(self, x: StridedMemoryView) -> TensorInfo:
        shape, strides = x.shape, x.strides  # in elements; None in C order
        strides = c_strides(shape) if strides is None else strides
        place, readonly = Device(*x.__dlpack_device__()), bool(x.readonly)
        dtype = None if x.dtype is None else dlpack_dtype(x.dtype)
        info = TensorInfo("cuda_core", x.ptr, 0, shape, strides, dtype or NO_DTYPE, place, readonly)
        if dtype is not None:
            return info
        why = f"a view of dtype {x.dtype} has no DLPack type: give it one, x.view(dtype=...)"
        return info._replace(refused=why)

    def may_change(self, x: StridedMemoryView) -> bool:
        return True  # it shows memory of whoever made it

    memory_owner = array_itself

    def wrap(self, tensor: ManagedTensor) -> StridedMemoryView:
        return StridedMemoryView.from_dlpack(Producer(tensor), stream_ptr=_NO_WAIT)


LIBRARY = CudaCore()
