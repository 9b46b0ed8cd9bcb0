"""TensorFlow. Its import only takes legacy capsules in C order at 64-byte alignment.

It also takes misaligned data, and aborts at the first operation. It frees a capsule that it refuses
for its device twice, and ``__dlpack__`` of strings aborts: these are never tried. Eager tensors are
immutable. The export is NumPy's view of one, which has ml_dtypes' dtypes; TensorFlow's own export
and import lack float8 and int4, which its constructor copies.

A ``tf.Variable`` converts as its current value: a later assignment does not write to memory that
something else refers to.
"""

import re
from typing import Any

import numpy as np
import tensorflow as tf

from ..core.library import Computing, Devices, Library, Routing
from ..core.planner import check_present
from ..core.records import UNKNOWN, Accepts, ConversionError, Edge, TensorInfo, without_memory
from ..dlpack import CPU, DataType, Device, DeviceType, ManagedTensor, from_capsule, to_capsule
from ..ndarrays import NATIVE
from .numpy.exchange import LIBRARY as NUMPY

try:  # what TensorFlow itself asks; its public interface does not tell
    from tensorflow.python.ops.gradients_util import PossibleTapeGradientTypes as _gradient_types
except ImportError:

    def _gradient_types(tensors: Any) -> int:
        return 0


_NAMES = (*NATIVE, "bfloat16")
_COPIED = frozenset(dir(tf.dtypes.experimental)) & {
    *"float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz".split(),
    *"int2 int4 uint2 uint4 float4_e2m1fn".split(),
}
_numbers = frozenset(getattr(tf, name) for name in _NAMES) | frozenset(
    getattr(tf.dtypes.experimental, name) for name in _COPIED
)
_DEVICE_NAME = re.compile(r"[/:](?P<kind>CPU|GPU)(:(?P<number>\d+))?$", re.IGNORECASE)
_GPU = DeviceType.ROCM if tf.test.is_built_with_rocm() else DeviceType.CUDA
_gpus = tf.test.is_built_with_cuda() or tf.test.is_built_with_rocm()


with tf.init_scope():  # out of a function that is traced now
    _EAGER = type(tf.constant(0))


class _Devices(Devices):
    def place(self, device: object) -> Device | None:
        name = device if isinstance(device, str) else None
        if isinstance(device, tf.config.LogicalDevice | tf.config.PhysicalDevice):
            name = device.name
        elif isinstance(device, tf.DeviceSpec):
            name = device.to_string()
        found = None if name is None else _DEVICE_NAME.search(name)
        if found is None:
            return None
        kind = DeviceType.CPU if found["kind"].upper() == "CPU" else _GPU
        return Device(kind, int(found["number"] or 0))

    def to_device(self, x: object, device: Device) -> np.ndarray | tf.Tensor:
        if device.host:
            return _eager(x).numpy()
        with tf.device(self.native_device(device)):
            return tf.identity(_eager(x) if isinstance(x, tf.Tensor | tf.Variable) else x)

    def native_device(self, device: Device) -> str:
        if device.host:
            return "CPU:0"
        check_present("TensorFlow", device, len(tf.config.list_logical_devices("GPU")))
        return f"GPU:{device.id}"


class _Computing(Computing):
    from_python = staticmethod(tf.convert_to_tensor)

    def can_cast(self, info: TensorInfo, dtype: DataType, axes: tuple[int, ...]) -> bool:
        in_order = axes == tuple(range(len(axes)))  # its only layout
        # `tf.cast` to the same data type returns the array itself.
        return (info.tracked or not info.device.host) and in_order and info.dtype != dtype

    def astype(
        self, x: tf.Tensor | tf.Variable, dtype: DataType, axes: tuple[int, ...]
    ) -> tf.Tensor:
        with tf.device(x.device):
            return tf.cast(x, dtype.name)


class TensorFlow(Library):
    """TensorFlow."""

    name = "tensorflow"
    devices = _Devices()
    computing = _Computing()
    routing = Routing(lambda x: isinstance(x, _EAGER))
    accepts = Accepts(
        library="tensorflow",
        tested="2.21.0",
        dtypes=frozenset(_NAMES) | _COPIED,
        devices=frozenset({DeviceType.CPU, _GPU}) if _gpus else frozenset({DeviceType.CPU}),
        strides="c",
        alignment=64,
        readonly=True,
        immutable=True,
        copied=_COPIED,
        canonical_booleans=True,
        remedies={"complex32": "pass torch.view_as_real(x)"},
    )

    def owns(self, array_type: type) -> bool:
        return issubclass(array_type, (tf.Tensor, tf.Variable, *_COMPOSITE))

    def describe(self, x: tf.Tensor | tf.Variable) -> TensorInfo:
        try:
            x = _eager(x)
        except ConversionError as error:
            x = x.value() if isinstance(x, tf.Variable) else x
            if not isinstance(x, tf.Tensor):
                raise
            known = DataType.named(x.dtype.name) if x.dtype in _numbers else None
            shape = (-1,) if x.shape.rank is None else x.shape
            place = UNKNOWN if _gpus else CPU
            return without_memory("tensorflow", shape, known, place, str(error))
        if _on_host(x):
            info = NUMPY.describe(_view(x))._replace(library="tensorflow", readonly=True)
        else:
            info = TensorInfo.of_tensor(self.export(x), "tensorflow")
        if _gradient_types([x]):  # of the tapes and accumulators that are active in this thread
            why = "gradients are tracked and would be cut silently: pass tf.stop_gradient(x)"
            return info._replace(refused=why, tracked=True)
        return info

    def export(self, x: tf.Tensor | tf.Variable, stream: int | None = None) -> ManagedTensor:
        x = _eager(x)
        if _on_host(x):
            tensor = NUMPY.export(_view(x))
        else:
            tensor = from_capsule(x.__dlpack__())  # it has no streams, and waits itself
        tensor.readonly, tensor.legacy = True, False
        return tensor

    def memory_owner(self, x: Any, info: TensorInfo, briefly: bool = False) -> object | None:
        if isinstance(x, tf.Variable):  # its value may have been replaced
            return None
        return _view(x) if _on_host(x) else x

    def wrap(self, tensor: ManagedTensor) -> tf.Tensor:
        if tensor.dtype.name in _COPIED:
            return tf.constant(NUMPY.wrap(tensor))
        capsule = to_capsule(tensor, versioned=False)
        return tf.experimental.dlpack.from_dlpack(capsule)

    def copy(self, x: tf.Tensor | tf.Variable) -> tf.Tensor | None:
        x = _eager(x)
        return None if _on_host(x) else tf.raw_ops.DeepCopy(x=x)


#: Tensors in several parts, and what makes a dense one.
_COMPOSITE = {
    tf.RaggedTensor: "x.to_tensor()",
    tf.SparseTensor: "tf.sparse.to_dense(x)",
    tf.IndexedSlices: "tf.convert_to_tensor(x)",
}


def _eager(x: Any) -> tf.Tensor:
    """Return the eager tensor of numbers that ``x`` is, or has as its value."""
    if isinstance(x, tf.Variable):
        x = x.value()
    if not isinstance(x, _EAGER):
        remedy = next((dense for kind, dense in _COMPOSITE.items() if isinstance(x, kind)), None)
        if remedy is not None:
            raise ConversionError(f"a {type(x).__name__} is not dense memory: pass {remedy}")
        raise ConversionError(
            f"a symbolic tensor ({type(x).__name__}) has no memory: convert outside tf.function, "
            "or go through tf.py_function"
        )
    if x.dtype not in _numbers:
        raise ConversionError(
            f"{x.dtype.name} tensors hold no plain numbers: decode, parse or tf.bitcast them first"
        )
    return x


def _view(x: tf.Tensor) -> np.ndarray:
    """Return NumPy's view of an eager tensor on the CPU, writable if NumPy lacks the dtype."""
    if x.ndim:
        return np.asarray(x)
    return np.asarray(tf.reshape(x, [1])).reshape(())  # a bfloat16 scalar has no array


def _on_host(x: tf.Tensor) -> bool:
    return "device:CPU:" in x.device


LIBRARY = TensorFlow()
# The read-only view that TensorFlow keeps.
LIBRARY.edges = (Edge("tensorflow", "numpy", lambda x: _view(x), lambda s: s.dtype_name in NATIVE),)
