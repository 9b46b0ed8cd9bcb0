"""ONNX Runtime. An ``OrtValue`` is dense, in C order, and here always on the host.

It is made by its own zero-copy import. ``ortvalue_from_numpy`` is not used: the value does not keep
the memory alive, only the Python object around it does, and neither ``numpy()`` nor DLPack exports
keep that. ONNX Runtime treats read-only memory as writable, so it only gets it on request.

An OrtValue may be no tensor: strings, sequences, maps and sparse tensors are refused with the
remedy.
"""

import numpy as np
import onnxruntime

from ..core.library import Library, array_itself
from ..core.records import IN_PARTS, NO_DTYPE, Accepts, ConversionError, TensorInfo
from ..dlpack import CPU, DataType, Device, ManagedTensor, c_strides, to_capsule
from .numpy.exchange import is_writable

#: ``TensorProto.DataType`` in the ONNX standard, named as here, from 1 on. ONNX Runtime has no
#: complex numbers.
_CODES = (
    "float32 uint8 int8 uint16 int16 int32 int64 string bool float16 float64 uint32 uint64 "
    "complex64 complex128 bfloat16 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz "
    "uint4 int4 float4_e2m1fn float8_e8m0fnu uint2 int2"
).split()
_dlpack_dtypes = {
    code: DataType.named(name)
    for code, name in enumerate(_CODES, 1)
    if name not in ("string", "complex64", "complex128")
}
OrtValue = onnxruntime.OrtValue
_native = type(OrtValue.ortvalue_from_numpy(np.zeros(1, np.float32))._ortvalue)
_from_capsule = _native.from_dlpack


class OnnxRuntime(Library):
    """``onnxruntime.OrtValue``."""

    name = "onnxruntime"
    accepts = Accepts(
        library="onnxruntime",
        tested="1.32.0",
        dtypes=frozenset(
            f"{dtype.name} (packed)" if dtype.subbyte else dtype.name
            for dtype in _dlpack_dtypes.values()
        ),
        strides="c",
        canonical_booleans=True,
        remedies=IN_PARTS,
    )

    def owns(self, array_type: type) -> bool:
        return issubclass(array_type, OrtValue | onnxruntime.SparseTensor)

    def describe(self, x: onnxruntime.OrtValue) -> TensorInfo:
        if isinstance(x, onnxruntime.SparseTensor) or not x.is_tensor():
            why = f"a value of type {x.data_type()} is no dense tensor: convert those in it"
            return TensorInfo("onnxruntime", 0, 0, (), (), NO_DTYPE, CPU, refused=why)
        shape, dtype = tuple(x.shape()), _dlpack_dtypes.get(x.element_type())
        if dtype is None:
            why = f"ONNX Runtime's {x.data_type()} has no DLPack type: pass x.numpy()"
            return TensorInfo("onnxruntime", 0, 0, shape, (), NO_DTYPE, CPU, refused=why)
        given = x._numpy_obj  # may own this memory
        readonly = given is not None and not is_writable(given)
        data, place = x.data_ptr(), _place(x)
        return TensorInfo("onnxruntime", data, 0, shape, c_strides(shape), dtype, place, readonly)

    def may_change(self, x: onnxruntime.OrtValue) -> bool:
        return True  # the memory may have other users

    memory_owner = array_itself

    def wrap(self, tensor: ManagedTensor) -> onnxruntime.OrtValue:
        return OrtValue(_from_capsule(to_capsule(tensor, versioned=False)))


def _place(x: onnxruntime.OrtValue) -> Device:
    if x.device_name() == "cpu":
        return CPU
    try:
        return Device(*x.__dlpack_device__())
    except Exception as error:
        raise ConversionError(
            f"ONNX Runtime's device {x.device_name()!r} has no DLPack device: bind the output to "
            "the host, binding.copy_outputs_to_cpu()"
        ) from error


LIBRARY = OnnxRuntime()
