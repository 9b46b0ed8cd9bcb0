"""Tensors by Arrow's PyCapsule interface: the first axis is that of rows, others are lists.

Arrow has C order alone, so that other layouts are copied, and packs booleans, eight to a byte.
There are no nulls. Whoever takes the capsules shares the memory, and no Python runs when it is
released (`kernels.cpu.release`).
"""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_void_p
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..core.library import Library
from ..core.records import Accepts, ConversionError, TensorInfo, of_native
from ..core.table import execute, routed
from ..dlpack import CPU, DataType, Device, DeviceType, ManagedTensor
from ..layout import in_bytes
from ..memory import Memory
from ..native import pyapi
from .arrow_memory import Array, DeviceArray, Schema

_FORMATS = {
    "int8": b"c",
    "uint8": b"C",
    "int16": b"s",
    "uint16": b"S",
    "int32": b"i",
    "uint32": b"I",
    "int64": b"l",
    "uint64": b"L",
    "float16": b"e",
    "float32": b"f",
    "float64": b"g",
    "bool": b"b",
}
_NULLABLE = 2  # as the fields of every library are, unless somebody says otherwise


#: What to pass in the place of data types that Arrow lacks.
REMEDIES = {
    "complex64": "pass arraybridge.convert(x, 'numpy')[..., None].view('float32')",
    "complex128": "pass arraybridge.convert(x, 'numpy')[..., None].view('float64')",
    "bfloat16": "pass arraybridge.convert(x, 'numpy').astype('float32')",
    "complex32": "pass torch.view_as_real(x)",
    "": "pass its bits, arraybridge.convert(x, 'numpy').view('uint8')",
}


class _Functions(NamedTuple):
    """Addresses of native functions: release callbacks, and destructors of capsules."""

    release_array: int
    release_schema: int
    destroy_array: int
    destroy_schema: int


@cache
def _functions() -> _Functions:
    from ..kernels.cpu import loader

    return _Functions(
        *(loader.callback("release", *name.split("_")) for name in _Functions._fields)
    )


class Exports(Library):
    """Arrow's interface as a target: what its arrays can be."""

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
    """Return the export of a tensor that `Exports` takes: in C order, or of booleans."""
    if tensor.dtype.name != "bool":
        return Exported(tensor.shape, tensor.dtype, tensor.pointer, tensor, tensor.device)
    if not tensor.device.host:
        raise ConversionError(
            f"Arrow packs booleans eight to a byte, which nothing here does on {tensor.device}: "
            "pass integers"
        )
    bits = np.packbits(_array_on(tensor), bitorder="little")
    return Exported(tensor.shape, tensor.dtype, bits.ctypes.data, bits)


def _array_on(tensor: ManagedTensor) -> np.ndarray:
    """Return the booleans of a tensor in C order."""
    if 0 in tensor.shape:
        return np.empty(0, bool)
    memory = Memory(tensor.pointer, tensor.shape, in_bytes(tensor.strides, 1), "|b1", True)
    return np.asarray(memory).reshape(-1)


@dataclass(slots=True, eq=False)
class Exported:
    """Memory in Arrow's layout, for importers that take an object.

    `data` is the address of the elements, in C order; of booleans, of their bits.
    """

    shape: tuple[int, ...]
    dtype: DataType
    data: int
    owner: object
    device: Device = CPU

    def __arrow_c_schema__(self) -> object:
        return schema_capsule(self.shape, self.dtype)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self.__arrow_c_schema__(), self._capsule(Array, b"arrow_array")

    def __arrow_c_device_array__(
        self, requested_schema: object = None, **_: object
    ) -> tuple[object, object]:
        return self.__arrow_c_schema__(), self._capsule(DeviceArray, b"arrow_device_array")

    def _capsule(self, kind: type[ctypes.Structure], name: bytes) -> object:
        functions = _functions()
        struct: Any = kind()
        array = struct.array if kind is DeviceArray else struct
        _fill(array, self.shape, self.data, self.owner, functions)
        if kind is DeviceArray:
            device = self.device
            struct.device_type = device.type
            struct.device_id = -1 if device.type == CPU.type else device.id
        return _capsule(struct, name, functions.destroy_array)


def _capsule(struct: ctypes.Structure, name: bytes, destructor: int) -> object:
    """Make a capsule that holds a struct."""
    pyapi.incref(struct)
    return pyapi.new_capsule(ctypes.addressof(struct), name, destructor, id(struct))


EXPORTS = Exports()
EXPORTS.forms = (Exported,)


def exported(x: Any, library: Library, device: bool = False) -> Exported:
    """Bring an array into Arrow's layout: a view where it has that already.

    ConversionError for what Arrow has no arrays of, and for memory off the host unless ``device``.
    """
    alias = library.alias(x)
    found, info = routed(alias, library, EXPORTS)
    if not device and not info.device.host:
        raise ConversionError(
            f"the array is on {info.device}: pass it to a library that takes "
            "__arrow_c_device_array__, or copy it to the host first, to_device('cpu')"
        )
    if found.kind == "refuse":
        found = found._replace(why=of_native(found.reason(info)))
    made = execute(alias, found, info)
    assert isinstance(made, Exported)
    return made


def _fill(
    struct: Any, shape: tuple[int, ...], data: int, owner: object, functions: _Functions
) -> None:
    """Fill in an array whose rows are elements, or lists of them."""
    inner = len(shape) > 1
    buffers = (c_void_p * 2)(None, data)
    if not data:  # no elements; some importers want an address all the same
        buffers[1] = ctypes.addressof(buffers)
    struct.length, struct.n_buffers = shape[0], 1 if inner else 2
    struct.buffers = ctypes.addressof(buffers)
    child = children = None
    if inner:
        child = Array()
        children = (c_void_p * 1)(ctypes.addressof(child))
        _fill(child, (shape[0] * shape[1], *shape[2:]), data, owner, functions)
        struct.n_children, struct.children = 1, ctypes.addressof(children)
    _finish(struct, (buffers, children, child, owner), functions.release_array)


def _finish(struct: Any, owner: object, release: int) -> None:
    """Give a struct what it owns: from now on it must be released."""
    pyapi.incref(owner)
    struct.private, struct.release = id(owner), release


def schema_capsule(shape: tuple[int, ...], dtype: DataType) -> object:
    """Make the capsule with the type of the arrays of a shape.

    ConversionError for a data type that Arrow lacks, and an array without axes.
    """
    form = _FORMATS.get(dtype.name)
    if form is None or not shape:
        info = TensorInfo("", 0, 0, shape, (), dtype, CPU)
        raise ConversionError(f"Arrow has no arrays of {info.dtype_name} and shape {shape}")
    functions = _functions()
    struct = Schema()
    _describe(struct, shape[1:], form, b"", functions)
    return _capsule(struct, b"arrow_schema", functions.destroy_schema)


def _describe(
    struct: Any, lists: tuple[int, ...], form: bytes, name: bytes, functions: _Functions
) -> None:
    text = c_char_p(b"+w:%d" % lists[0] if lists else form)
    called = c_char_p(name)
    struct.format, struct.name, struct.flags = text, called, _NULLABLE
    child = children = None
    if lists:
        child = Schema()
        children = (c_void_p * 1)(ctypes.addressof(child))
        _describe(child, lists[1:], form, b"item", functions)
        struct.n_children, struct.children = 1, ctypes.addressof(children)
    _finish(struct, (text, called, children, child), functions.release_schema)
