"""MLX. Its import copies everything, on the CPU and on Apple's GPU.

Its arrays are values: an operation on one never shows in another, though slices share memory. A
write through an exported view would show in all of them, so exports are read-only. They use DLPack,
not the buffer protocol, which keeps the Python object alive but not its memory: an in-place
operation gives the object other memory, and the exported memory may be written or freed.

Export evaluates a lazy array, which before has neither memory nor strides. Inside ``mx.grad`` that
cuts the gradient: an array does not tell Python that MLX traces it.
"""

import mlx.core as mx

from ..core.kernel import compact_copy
from ..core.library import Computing, Devices, Library
from ..core.records import Accepts, ConversionError, TensorInfo, without_memory
from ..dlpack import CPU, DataType, Device, DeviceType, ManagedTensor, from_capsule
from ..layout import is_non_negative, relaxed
from ..ndarrays import NATIVE
from .numpy.exchange import LIBRARY as NUMPY

_NAMES = {*NATIVE, "bfloat16"} - {"complex128"}
_BFLOAT16, _UINT16 = DataType.named("bfloat16"), DataType.named("uint16")


class _Devices(Devices):
    def place(self, device: object) -> Device | None:
        kind = device.type if isinstance(device, mx.Device) else device
        if not isinstance(kind, mx.DeviceType):
            return None
        return CPU if kind == mx.DeviceType.cpu else Device(DeviceType.METAL)


class _Computing(Computing):
    from_python = staticmethod(mx.array)

    def can_cast(self, info: TensorInfo, dtype: DataType, axes: tuple[int, ...]) -> bool:
        return axes == tuple(range(len(axes)))

    def astype(self, x: mx.array, dtype: DataType, axes: tuple[int, ...]) -> mx.array:
        return x.astype(mx.bool_ if dtype.name == "bool" else getattr(mx, dtype.name))


class MLX(Library):
    """``mx.array``."""

    name = "mlx"
    devices = _Devices()
    computing = _Computing()
    accepts = Accepts(
        library="mlx",
        tested="0.32.4",
        dtypes=frozenset(_NAMES),
        readonly=True,
        copies=True,
        canonical_booleans=True,
        remedies={"complex128": "it would be narrowed; convert it to complex64 first"},
    )

    def owns(self, array_type: type) -> bool:
        return issubclass(array_type, mx.array)

    def describe(self, x: mx.array) -> TensorInfo:
        try:
            return TensorInfo.of_tensor(self.export(x), "mlx")
        except ConversionError as error:  # a placeholder
            dtype = DataType.named(str(x.dtype).rpartition(".")[2])
            return without_memory("mlx", x.shape, dtype, CPU, str(error))

    def export(self, x: mx.array, stream: int | None = None) -> ManagedTensor:
        try:
            tensor = from_capsule(x.__dlpack__())
        except ValueError as error:
            # Inside compile and vmap an array is a placeholder that cannot be evaluated.
            raise ConversionError(
                f"MLX could not evaluate the array ({error}): convert it outside compile and vmap"
            ) from error
        tensor.readonly, tensor.legacy = True, False
        return tensor

    def wrap(self, tensor: ManagedTensor) -> mx.array:
        if not is_non_negative(tensor.shape, tensor.strides):
            tensor = compact_copy(tensor)  # its importer refuses negative strides,
        kind, shape = tensor.dtype, tensor.shape
        strides = relaxed(shape, tensor.strides)  # including those that reach no element
        same = _UINT16 if kind == _BFLOAT16 else kind  # no need for ml_dtypes
        bits = ManagedTensor.adopt(tensor.pointer, shape, same, owner=tensor.owner, strides=strides)
        array = NUMPY.wrap(bits)
        if kind == _BFLOAT16:
            return mx.array(array).view(mx.bfloat16)
        # float64 is narrowed unless the dtype is passed.
        return mx.array(array, dtype=mx.float64) if kind.name == "float64" else mx.array(array)

    def copy(self, x: mx.array) -> mx.array:
        return self.wrap(compact_copy(self.export(x)))  # its own import keeps permuted axes


LIBRARY = MLX()
