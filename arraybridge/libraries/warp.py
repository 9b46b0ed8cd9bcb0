"""NVIDIA Warp. Its arrays are made from a pointer, not by its DLPack importer.

That importer ignores ``byte_offset`` and only supports legacy capsules. Strides of any sign work,
in its kernels too, but are stored as 32-bit numbers of bytes without a check: larger ones are
refused. There are 1 to 4 axes and no read-only arrays.

Vectors and matrices as dtypes become trailing axes, as in ``array.numpy()``. An array with
``requires_grad`` converts without its gradient, a separate array, ``x.grad``: kernels recorded by a
``wp.Tape`` are differentiated, not arrays.
"""

import warp as wp

from ..core.library import Devices, Library, array_itself, on_memory
from ..core.planner import check_present
from ..core.records import NO_DTYPE, Accepts, ConversionError, TensorInfo
from ..dlpack import CPU, DataType, Device, DeviceType, ManagedTensor, acquire
from ..layout import c_strides, in_bytes, in_elements, relaxed, span
from ..ndarrays import NATIVE
from .numpy.exchange import LIBRARY as NUMPY

_REAL = [name for name in NATIVE if not name.startswith("complex")]  # NumPy's, of the same names
_warp_types = {
    DataType.named(name): getattr(wp, name) for name in (*_REAL, "bfloat16") if hasattr(wp, name)
}
_dlpack_dtypes = {kind: dtype for dtype, kind in _warp_types.items()}


def _start() -> None:
    """Initialize Warp without the banner that it prints."""
    config = wp.config
    name, quiet = ("log_level", 30) if hasattr(config, "log_level") else ("quiet", True)
    before = getattr(config, name)
    setattr(config, name, quiet)
    try:
        wp.init()  # does nothing if Warp runs already
    finally:
        setattr(config, name, before)


_start()


_ON_CUDA = (DeviceType.CUDA, DeviceType.CUDA_MANAGED)
_GPUS = (DeviceType.CUDA_HOST, *_ON_CUDA) if wp.is_cuda_available() else ()


class _Devices(Devices):
    def empty(self, info: TensorInfo, like: object = None) -> wp.array:
        device = f"cuda:{info.device.id}"
        return wp.empty(info.shape, _warp_types[info.dtype], device, requires_grad=False)

    def to_device(self, x: object, device: Device) -> wp.array:
        name = f"cuda:{device.id}" if device.type in _ON_CUDA else "cpu"
        host = x if isinstance(x, wp.array) else LIBRARY.wrap(NUMPY.export(x))
        moved = wp.clone(
            host, device=name, requires_grad=False, pinned=device.type == DeviceType.CUDA_HOST
        )
        wp.synchronize_device(host.device if name == "cpu" else name)
        return moved

    def native_device(self, device: Device) -> str:
        if device.type not in _ON_CUDA:
            return "cpu"
        check_present("Warp", device, wp.get_cuda_device_count())
        return f"cuda:{device.id}"

    def place(self, device: object) -> Device | None:
        if not isinstance(device, wp.Device):
            return None
        return CPU if device.is_cpu else Device(DeviceType.CUDA, device.ordinal)

    def current_stream(self, device: Device) -> int | None:
        if device.type not in _ON_CUDA:
            return None
        return wp.get_stream(f"cuda:{device.id}").cuda_stream or 1


class Warp(Library):
    """``wp.array`` on the CPU and on CUDA devices."""

    name = "warp"
    devices = _Devices()
    accepts = Accepts(
        library="warp",
        tested="1.19.0",
        dtypes=frozenset(dtype.name for dtype in _warp_types),
        devices=frozenset({DeviceType.CPU, *_GPUS}),
        canonical_booleans=True,
        ndim=(1, 4),
        largest=2**31 - 1,  # array_t of Warp's native code has int32 extents and strides
        remedies=dict.fromkeys(("complex64", "complex128"), "pass its real and imaginary parts"),
    )

    def owns(self, array_type: type) -> bool:
        return issubclass(array_type, wp.array | wp.indexedarray)

    def describe(self, x: wp.array) -> TensorInfo:
        if not isinstance(x, wp.array):
            raise ConversionError(
                f"a Warp {type(x).__name__} is not strided memory: convert x.contiguous()"
            )
        if x.device is None:
            raise ConversionError("this Warp array is an annotation: it has no memory")
        dtype, shape, strides, refused = _flat(x)
        steps, whole = in_elements(shape, strides, dtype.itemsize)
        pending = () if whole else ("fraction",)
        data, place = x.ptr or 0, _place(x)
        return TensorInfo(
            "warp", data, 0, shape, steps, dtype, place, pending=pending, refused=refused
        )

    def export(self, x: wp.array, stream: int | None = None) -> ManagedTensor:
        info = self.describe(x)
        if stream is not None and info.device.type != DeviceType.CPU:
            tensor = acquire(x, stream=stream)  # its __dlpack__ orders the stream after Warp's own
            tensor.readonly = False  # its legacy capsule cannot mark it
            return tensor
        return on_memory(info, x)

    memory_owner = array_itself

    def wrap(self, tensor: ManagedTensor) -> wp.array:
        shape, kind, device = tensor.shape, _warp_types[tensor.dtype], tensor.device
        name = self.devices.native_device(device)
        strides = in_bytes(relaxed(shape, tensor.strides), tensor.dtype.itemsize)
        _, high = span(shape, strides, tensor.dtype.itemsize)
        owner = tensor.owner

        def release(pointer: int, nbytes: int, owner: object = owner) -> None:
            """Keep the memory's owner, as a default argument, until Warp frees the array."""

        return wp.array(
            ptr=tensor.pointer,
            shape=shape,
            strides=strides,
            dtype=kind,
            capacity=high,
            device=name,
            pinned=device.type == DeviceType.CUDA_HOST,
            deleter=release,
        )

    def resolve(self, x: wp.array) -> wp.array:
        return wp.clone(x, requires_grad=False)

    def copy(self, x: wp.array) -> wp.array | None:
        return None if x.device.is_cpu else wp.clone(x, requires_grad=False)


def _flat(x: wp.array) -> tuple[DataType, tuple[int, ...], tuple[int, ...], str | None]:
    """Return (data type, shape, strides in bytes, refused), with vectors' and matrices' axes."""
    kind = x.dtype
    shape, strides = x.shape, x.strides
    if hasattr(kind, "_wp_scalar_type_"):
        kind, inner = kind._wp_scalar_type_, kind._shape_
        itemsize = _dlpack_dtypes.get(kind, NO_DTYPE).itemsize
        shape, strides = shape + inner, strides + c_strides(inner, itemsize)
    dtype = _dlpack_dtypes.get(kind)
    if dtype is not None:
        return dtype, shape, strides, None
    name = getattr(x.dtype, "__name__", None) or getattr(x.dtype, "key", x.dtype)
    why = f"Warp arrays of {name} have no DLPack type: convert their fields one by one"
    return NO_DTYPE, shape, strides, why


def _place(x: wp.array) -> Device:
    if x.pinned:
        return Device(DeviceType.CUDA_HOST)
    return CPU if x.device.is_cpu else Device(DeviceType.CUDA, x.device.ordinal)


LIBRARY = Warp()
