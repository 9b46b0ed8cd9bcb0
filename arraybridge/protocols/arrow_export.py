"""Tensors through Arrow's PyCapsule interface: the first axis is the rows, others are lists.

Arrow only has C order, so other layouts are copied, and packs booleans, eight to a byte. There are
no nulls. Consumers of the capsules share the memory, and no Python code runs when it is released
(`arrow_structs`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.library import Library
from ..core.records import Accepts, ConversionError, TensorInfo, of_native
from ..core.registry import library_named
from ..core.table import execute, routed
from ..dlpack import CPU, DataType, Device, DeviceType, ManagedTensor
from . import arrow_structs
from .arrow_types import NUMBERS

_FORMATS = {dtype.name: char.encode() for char, dtype in NUMBERS.items()}

#: What to pass instead of data types that Arrow lacks.
REMEDIES = {
    "complex64": "pass arraybridge.convert(x, 'numpy')[..., None].view('float32')",
    "complex128": "pass arraybridge.convert(x, 'numpy')[..., None].view('float64')",
    "bfloat16": "pass arraybridge.convert(x, 'numpy').astype('float32')",
    "complex32": "pass torch.view_as_real(x)",
    "": "pass its bits, arraybridge.convert(x, 'numpy').view('uint8')",
}


class Exports(Library):
    """Arrow's interface as a target."""

    name = "arrow"
    accepts = Accepts(
        library="arrow",
        tested="1.5",
        dtypes=frozenset(_FORMATS),
        devices=frozenset(
            {DeviceType.CPU, DeviceType.CUDA, DeviceType.CUDA_HOST, DeviceType.CUDA_MANAGED}
        ),
        strides="c",
        aligned=frozenset(_FORMATS),
        readonly=True,
        ndim=(1, 64),
        copied=frozenset({"bool"}),
        remedies=REMEDIES,
    )

    def owns(self, array_type: type) -> bool:
        return False

    def wrap(self, tensor: ManagedTensor, *, move: bool = False) -> Exported:
        return of_tensor(tensor)


def of_tensor(tensor: ManagedTensor) -> Exported:
    """Return the export of a tensor that `Exports` accepts: in C order, or of booleans."""
    if tensor.dtype.name != "bool":
        return Exported(tensor.shape, tensor.dtype, tensor.pointer, tensor, tensor.device)
    if not tensor.device.host:
        raise ConversionError(
            f"Arrow packs booleans eight to a byte, which is not supported on {tensor.device}: "
            "pass integers"
        )
    numpy: Any = library_named("numpy")
    bits = np.packbits(numpy.wrap(tensor), bitorder="little")
    return Exported(tensor.shape, tensor.dtype, bits.ctypes.data, bits)


@dataclass(slots=True, eq=False)
class Exported:
    """Memory in Arrow's layout, for importers that take an object.

    `data` is the address of the elements in C order, or of the bits of booleans.
    """

    shape: tuple[int, ...]
    dtype: DataType
    data: int
    owner: object
    device: Device = CPU

    __reduce__ = ManagedTensor.__reduce__

    def __arrow_c_schema__(self, name: str = "") -> object:
        return schema_capsule(self.shape, self.dtype, name)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self.__arrow_c_schema__(), self.elements()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return arrow_structs.stream(self.__arrow_c_schema__, self.elements())

    def elements(self) -> object:
        return arrow_structs.array(self.shape, self.data, self.owner)

    def __arrow_c_device_array__(
        self, requested_schema: object = None, **_: object
    ) -> tuple[object, object]:
        kind, number = self.device.type, -1 if self.device.type == CPU.type else self.device.id
        schema = self.__arrow_c_schema__()
        return schema, arrow_structs.array(self.shape, self.data, self.owner, (kind, number))


EXPORTS = Exports()
EXPORTS.forms = (Exported,)


def exported(x: Any, library: Library, device: bool = False, of_array: bool = True) -> Exported:
    """Convert an array to Arrow's layout, as a view if it has that already.

    ConversionError for arrays that Arrow lacks, and for memory off the host unless ``device``; its
    remedies are an Array's if `of_array`.
    """
    alias = library.alias(x)
    found, info = routed(alias, library, EXPORTS)
    if not device and not info.device.host:
        raise ConversionError(
            f"the array is on {info.device}: pass it to a library that takes "
            "__arrow_c_device_array__, or copy it to the host first, to_device('cpu')"
        )
    if found.kind == "refuse":
        why = found.reason(info)
        found = found._replace(why=of_native(why) if of_array else why)
    made = execute(alias, found, info)
    assert isinstance(made, Exported)
    return made


def schema_capsule(shape: tuple[int, ...], dtype: DataType, name: str = "") -> object:
    """Make the capsule with the type of arrays of a shape.

    ConversionError for a data type that Arrow lacks, and for an array without axes.
    """
    form = _FORMATS.get(dtype.name)
    if form is None or not shape:
        info = TensorInfo("", 0, 0, shape, (), dtype, CPU)
        raise ConversionError(f"Arrow has no arrays of {info.dtype_name} and shape {shape}")
    return arrow_structs.schema(shape[1:], form, name)
