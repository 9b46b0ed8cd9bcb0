"""Apache Arrow, through pyarrow. The targets are ``pyarrow.Tensor`` and ``pyarrow.Array``.

A tensor has any rank, only numbers, no negative strides, and the memory's read-only flag. It
ignores byte order and would take booleans for numbers, so it is given neither.

Sources are tensors, arrays and chunked arrays of numbers or booleans, and tables of them. Arrow's
arrays are immutable. Nulls (NumPy would make them NaN), dates and text are refused. Booleans are
packed eight to a byte and chunks are separate, so both are copied. A fixed-size list is an axis.
A ``FixedShapeTensorArray`` converts as its tensor; its own ``to_tensor`` ignores nulls inside an
element.
"""

from math import prod
from typing import Any

import numpy as np
import pyarrow as pa

from ..core.library import Library, Routing, array_itself, exported
from ..core.records import Accepts, ConversionError, TensorInfo, without_memory
from ..core.registry import library_named
from ..dlpack import CPU, DataType, ManagedTensor, c_strides
from ..layout import in_elements
from ..protocols.frames import frame, no_numbers, nulls
from ..protocols.producer import Producer

_NAMES = ("int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64").split()
_dlpack_dtypes = {getattr(pa, name)(): DataType.named(name) for name in _NAMES}
_BOOL, _BOOL_TYPE = DataType.named("bool"), pa.bool_()
_arrow_types = {dtype: kind for kind, dtype in _dlpack_dtypes.items()} | {_BOOL: _BOOL_TYPE}
_SPARSE = (pa.SparseCOOTensor, pa.SparseCSRMatrix, pa.SparseCSCMatrix, pa.SparseCSFTensor)

#: What to pass instead of data types that Arrow lacks.
_REMEDIES = {
    "complex64": "pass arraybridge.convert(x, 'numpy')[..., None].view('float32')",
    "complex128": "pass arraybridge.convert(x, 'numpy')[..., None].view('float64')",
    "bfloat16": "pass arraybridge.convert(x, 'numpy').astype('float32')",
    "complex32": "pass torch.view_as_real(x)",
    "": "pass its bits, arraybridge.convert(x, 'numpy').view('uint8')",
}


class PyArrow(Library):
    """Apache Arrow."""

    name = "pyarrow"
    routing = Routing(lambda x: isinstance(x, pa.Tensor | pa.NumericArray))
    accepts = Accepts(
        library="pyarrow",
        tested="26.0.1",
        dtypes=frozenset(_NAMES),
        strides="non-negative",
        readonly=True,
        remedies=_REMEDIES
        | {"bool": "pass a uint8 view, arraybridge.convert(x, 'numpy').view('uint8')"},
    )

    def owns(self, array_type: type) -> bool:
        return issubclass(array_type, (pa.Tensor, pa.Array, pa.ChunkedArray, *_SPARSE))

    def describe(self, x: object) -> TensorInfo:
        if isinstance(x, pa.Tensor):
            return _of_tensor(x)
        if isinstance(x, pa.Array):
            return _of_array(x)
        if isinstance(x, pa.ChunkedArray):
            return _of_chunks(x)
        if isinstance(x, ManagedTensor):  # booleans after resolve
            return TensorInfo.of_tensor(x, "pyarrow")
        raise ConversionError(f"a {type(x).__name__} is not dense memory: pass x.to_tensor()")

    def may_change(self, x: object) -> bool:
        return isinstance(x, pa.Tensor)  # it may be NumPy's memory; other data never change

    memory_owner = array_itself

    def wrap(self, tensor: ManagedTensor) -> pa.Tensor:
        return pa.Tensor.from_dlpack(Producer(tensor))

    def resolve(self, x: Any) -> pa.Tensor | ManagedTensor:
        if isinstance(x, pa.Tensor):
            return pa.Tensor.from_numpy(x.to_numpy().copy())
        if isinstance(x, pa.ChunkedArray):
            x = pa.concat_arrays(_chunks(x))
        info = self.describe(x)
        if not info.pending:
            tensor = exported(self, x, info)
            tensor.readonly = False  # nobody else has this memory
            return self.wrap(tensor)
        while isinstance(x, pa.FixedSizeListArray):
            x = x.flatten()
        first, end = x.offset // 8, x.offset + len(x)
        packed = np.frombuffer(x.buffers()[1] or b"", np.uint8)[first : (end + 7) // 8]
        bits = np.unpackbits(packed, count=end - 8 * first, bitorder="little")[x.offset % 8 :]
        return ManagedTensor.adopt(bits.ctypes.data, info.shape, _BOOL, owner=bits)

    def read(self, x: Any) -> tuple[object, Library]:
        """Return the array or frame that an object's capsules hold, and its library."""
        as_array = getattr(type(x), "__arrow_c_array__", None) is not None
        try:
            found = pa.array(x) if as_array else pa.chunked_array(x)
            found.validate()
        except pa.ArrowException as error:
            raise ConversionError(f"pyarrow cannot read {type(x).__name__}: {error}") from error
        if not pa.types.is_struct(found.type):
            return found, self
        labels = [field.name for field in found.type]
        columns = zip(labels, found.flatten(), [self] * len(labels), strict=True)
        return frame(len(found), columns)

    table = staticmethod(pa.table)

    def copy(self, x: object) -> object | None:
        if isinstance(x, pa.ChunkedArray):
            return pa.concat_arrays(_chunks(x))
        # Packed booleans are immutable, and have no other form here.
        packed = isinstance(x, pa.BooleanArray | pa.FixedSizeListArray)
        return x if packed and "bitpacked" in self.describe(x).pending else None


def _of_tensor(x: pa.Tensor) -> TensorInfo:
    dtype = _dlpack_dtypes[x.type]
    shape = x.shape
    steps, whole = in_elements(shape, x.strides, dtype.itemsize)
    pending = () if whole else ("fraction",)
    data = pa.py_buffer(x).address if x.size else 0  # it aborts for a NULL pointer
    return TensorInfo(
        "pyarrow", data, 0, shape, steps, dtype, CPU, not x.is_mutable, pending=pending
    )


def _of_array(given: pa.Array) -> TensorInfo:
    """Describe an array; each level of fixed-size lists is an axis."""
    x, shape = given, [len(given)]
    missing = x.null_count
    if isinstance(x, pa.FixedShapeTensorArray):
        missing += x.storage.flatten().null_count
        if not missing and x.type.value_type in _dlpack_dtypes:
            return _of_tensor(x.to_tensor())._replace(readonly=True)
    while isinstance(x, pa.FixedSizeListArray):
        shape.append(x.type.list_size)
        x = x.flatten()  # a view, without null lists
        missing += x.null_count
    dtype = _BOOL if x.type == _BOOL_TYPE else _dlpack_dtypes.get(x.type)
    if dtype is None:
        text = no_numbers(f"Arrow's {given.type}")
        return without_memory("pyarrow", (len(given),), None, CPU, text)
    buffer, bits = x.buffers()[1], dtype == _BOOL  # without elements, it may be None
    if buffer is not None and not buffer.is_cpu:
        raise ConversionError("arraybridge cannot locate the array on a device: copy it first")
    if buffer is None and len(x):
        raise ConversionError("the array is malformed: it has no data, see x.validate()")
    # Two slices may begin within one byte of bits, so its address would not tell them apart.
    data = 0 if bits or buffer is None else buffer.address + x.offset * dtype.itemsize
    pending = ("bitpacked",) if bits else ()
    extents, why = tuple(shape), nulls(missing, prod(shape)) if missing else None
    return TensorInfo(
        "pyarrow", data, 0, extents, c_strides(extents), dtype, CPU, True,
        pending=pending, refused=why,
    )  # fmt: skip


def _chunks(x: pa.ChunkedArray) -> list[pa.Array]:
    """Return the chunks with elements, or else an array without elements."""
    return [chunk for chunk in x.chunks if len(chunk)] or [pa.array([], x.type)]


def _of_chunks(x: pa.ChunkedArray) -> TensorInfo:
    chunks = _chunks(x)
    if len(chunks) == 1:
        return _of_array(chunks[0])
    infos = list(map(_of_array, chunks))
    refused = next((info.refused for info in infos if info.refused), None)
    if x.null_count:
        refused = nulls(x.null_count, len(x))
    shape = (len(x), *infos[0].shape[1:])
    pending = ("chunks", *infos[0].pending)
    strides = c_strides(shape)
    return infos[0]._replace(data=0, shape=shape, strides=strides, pending=pending, refused=refused)


LIBRARY = PyArrow()


class Arrays(Library):
    """``"pyarrow.Array"``: Arrow's arrays as a target; as sources they belong to ``"pyarrow"``.

    The array has an axis of rows; other axes are fixed-size lists. Memory in C order is shared, as
    by ``pyarrow.array``; other layouts are copied, and so are booleans, which Arrow packs eight to
    a byte. Arrow computes at once, so later writes to the memory do not change its results.
    """

    name = "pyarrow.Array"
    accepts = Accepts(
        library="pyarrow.Array",
        tested="26.0.1",
        dtypes=frozenset((*_NAMES, "bool")),
        strides="c",
        aligned=frozenset((*_NAMES, "bool")),
        readonly=True,
        ndim=(1, 64),
        copied=frozenset({"bool"}),
        remedies=_REMEDIES,
        results=(pa.Array,),
    )

    def owns(self, array_type: type) -> bool:
        return False

    def wrap(self, tensor: ManagedTensor) -> pa.Array:
        shape, kind = tensor.shape, _arrow_types[tensor.dtype]
        size = prod(shape)
        if tensor.dtype == _BOOL:
            numpy: Any = library_named("numpy")
            memory = pa.py_buffer(np.packbits(numpy.wrap(tensor), bitorder="little"))
        else:  # 64: some importers require an address
            memory = pa.foreign_buffer(tensor.pointer or 64, size * tensor.dtype.itemsize, tensor)
        array = pa.Array.from_buffers(kind, size, [None, memory])
        for axis in range(len(shape) - 1, 0, -1):
            kind = pa.list_(kind, shape[axis])
            array = pa.Array.from_buffers(kind, prod(shape[:axis]), [None], children=[array])
        return array


ARRAY_LIBRARY = Arrays()


def opened(x: Any) -> tuple[object, Library] | None:
    """Return what a table converts as, and its library; None for another object."""
    if not isinstance(x, pa.Table | pa.RecordBatch):
        return None
    columns = zip(x.column_names, x.columns, [LIBRARY] * x.num_columns, strict=True)
    return frame(x.num_rows, columns)
