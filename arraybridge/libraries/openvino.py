"""OpenVINO. A ``Tensor`` made of an array is a bare address, which the Python object keeps alive.

So it must outlive its use: an infer request does not keep it. It has neither DLPack nor a read-only
flag. Its ``data`` shows bfloat16 as float16 and float8 as uint8, and its constructor ignores the
byte order; ``element_type`` is the actual type.

Sub-byte elements are packed, and linear in ``data``. A region of another tensor has strides.
"""

from math import prod

import openvino as ov

from ..core.library import Library, array_itself
from ..core.records import IN_PARTS, NO_DTYPE, Accepts, ConversionError, TensorInfo
from ..dlpack import CPU, DataType, ManagedTensor
from ..layout import in_elements
from ..ndarrays import address_of
from .numpy.exchange import LIBRARY as NUMPY

_NAMED = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
_TYPES = {
    "bool": ov.Type.boolean,
    **{name: getattr(ov.Type, f"{name[0]}{DataType.named(name).bits}") for name in _NAMED},  # u8
    "bfloat16": ov.Type.bf16,
    "float8_e4m3fn": ov.Type.f8e4m3,
    "float8_e5m2": ov.Type.f8e5m2,
    "float8_e8m0fnu": ov.Type.f8e8m0,
}
_ov_types = {DataType.named(name): kind for name, kind in _TYPES.items()}
_dlpack_dtypes = {kind: dtype for dtype, kind in _ov_types.items()}
_BYTE = DataType.named("uint8")


class OpenVINO(Library):
    """``openvino.Tensor``."""

    name = "openvino"
    accepts = Accepts(
        library="openvino",
        tested="2026.4.1",
        dtypes=frozenset(_TYPES),
        strides="c",
        canonical_booleans=True,
        remedies=IN_PARTS,
    )

    def owns(self, array_type: type) -> bool:
        return issubclass(array_type, ov.Tensor | ov.RemoteTensor)

    def describe(self, x: ov.Tensor) -> TensorInfo:
        if isinstance(x, ov.RemoteTensor):
            raise ConversionError(
                "arraybridge cannot locate a remote tensor's memory: copy it first, "
                "x.copy_to(openvino.Tensor(element_type, x.get_shape()))"
            )
        kind = x.element_type
        dtype = _dlpack_dtypes.get(kind)
        if dtype is None:
            why = (
                f"OpenVINO's {kind.to_string()} has no DLPack type: pass its bytes, x.data, or the "
                "strings in it, x.str_data"
            )
            return TensorInfo("openvino", 0, 0, (), (), NO_DTYPE, CPU, refused=why)
        data = x.data  # its shape takes a hundredth of the time of the tensor's own
        shape = data.shape
        steps, whole = in_elements(shape, data.strides, dtype.itemsize)
        pending = () if whole else ("fraction",)
        return TensorInfo(
            "openvino", address_of(data), 0, shape, steps, dtype, CPU, pending=pending
        )

    memory_owner = array_itself

    def wrap(self, tensor: ManagedTensor) -> ov.Tensor:
        shape = tensor.shape
        if 0 in shape:  # no memory to share
            return ov.Tensor(_ov_types[tensor.dtype], shape)
        octets = ManagedTensor.adopt(
            tensor.pointer, (prod(shape) * tensor.dtype.itemsize,), _BYTE, owner=tensor.owner
        )
        return ov.Tensor(NUMPY.wrap(octets), shape, _ov_types[tensor.dtype])


LIBRARY = OpenVINO()
