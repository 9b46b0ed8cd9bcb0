"""Apache Arrow, through pyarrow. A conversion to it gives a ``pyarrow.Tensor``.

That has any rank, numbers only, no negative strides, and is read-only or not as the memory is. It
takes swapped bytes and booleans for numbers as they stand, so neither is shown to it.

Tensors, arrays and chunked arrays of numbers or booleans are taken. Arrow's arrays are immutable.
What no tensor holds is refused with the remedy: nulls (NumPy would make them NaN), dates, text.
Booleans are packed eight to a byte and chunks lie apart, so both are copied. A fixed-size list is
an axis.
A ``FixedShapeTensorArray`` is taken as the tensor that it means; its own ``to_tensor`` overlooks
nulls inside an element.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ...dispatch.library import Library
from ...dispatch.records import NO_DTYPE, Accepts, ConversionError, TensorInfo
from ...dlpack import CPU, DataType, ManagedTensor, c_strides
from ...layout import in_elements
from ...protocols.arrow_export import REMEDIES
from ...protocols.assembled import Piece, unpacked
from ...protocols.producer import Producer
from ..numpy.exchange import LIBRARY as NUMPY
from ..numpy.exchange import is_writable

_NAMES = ("int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64").split()
_dlpack_dtypes = {getattr(pa, name)(): DataType.named(name) for name in _NAMES}
_numpy_dtypes = frozenset(np.dtype(name) for name in _NAMES)
_BOOL, _BOOL_TYPE = DataType.named("bool"), pa.bool_()
_SPARSE = (pa.SparseCOOTensor, pa.SparseCSRMatrix, pa.SparseCSCMatrix, pa.SparseCSFTensor)


class PyArrow(Library):
    """Apache Arrow."""

    name = "pyarrow"
    exports_description = True
    accepts = Accepts(
        library="pyarrow",
        tested="26.0.1",
        dtypes=frozenset(_NAMES),
        strides="non-negative",
        readonly=True,
        remedies=REMEDIES
        | {"bool": "pass a uint8 view, arraybridge.convert(x, 'numpy').view('uint8')"},
    )

    def owns(self, array_type: type) -> bool:
        return issubclass(array_type, (pa.Tensor, pa.Array, pa.ChunkedArray, *_SPARSE))

    def describe(self, x: object) -> TensorInfo:
        if isinstance(x, pa.Tensor):
            return _of_tensor(x)
        if isinstance(x, pa.FixedShapeTensorArray):
            return _of_tensor_array(x)
        if isinstance(x, pa.FixedSizeListArray):
            return self._of_lists(x)
        if isinstance(x, pa.Array):
            return _of_array(x)
        if isinstance(x, pa.ChunkedArray):
            return self._of_chunks(x)
        if isinstance(x, ManagedTensor):  # what resolve makes of booleans
            return TensorInfo.of_tensor(x, "pyarrow")
        raise ConversionError(f"a {type(x).__name__} is not dense memory: pass x.to_tensor()")

    def may_change(self, x: object) -> bool:
        return isinstance(x, pa.Tensor)  # over an array of NumPy, say; other data of Arrow never do

    def _of_lists(self, x: pa.FixedSizeListArray) -> TensorInfo:
        """Describe lists of one size, which are an axis, as are lists that they hold."""
        refused = _nulls(x)
        if refused is not None:
            return TensorInfo(
                "pyarrow", 0, 0, (len(x),), (1,), NO_DTYPE, CPU, True, refused=refused
            )
        info = self.describe(x.flatten())  # a view, without nulls
        if info.refused:
            return info._replace(refused=_restated(info.refused, x))
        shape = (len(x), x.type.list_size, *info.shape[1:])
        if info.pending:
            return info._replace(shape=shape, strides=c_strides(shape))
        steps = info.strides
        return info._replace(shape=shape, strides=(steps[0] * shape[1], *steps))

    def _of_chunks(self, x: pa.ChunkedArray) -> TensorInfo:
        chunks = [chunk for chunk in x.chunks if len(chunk)]
        if len(chunks) < 2:
            chunk = chunks[0] if chunks else x.combine_chunks()
            info = self.describe(chunk)
            whole = "x" if _is_plain(x.type) else "x.combine_chunks()"  # which lacks methods
            refused = info.refused and _restated(info.refused, chunk, whole)
            return info._replace(refused=refused)
        info = self.describe(chunks[0])
        shape = (len(x), *info.shape[1:])
        if _is_plain(x.type):
            refused = _nulls(x)
        else:
            chunk = max(
                chunks, key=lambda chunk: (self.describe(chunk).refused or "", chunk.null_count)
            )
            refused = self.describe(chunk).refused
            refused = refused and _restated(refused, chunk, "x.combine_chunks()")
        return info._replace(
            data=0,
            shape=shape,
            strides=c_strides(shape),
            pending=("chunks", *info.pending),
            refused=refused,
        )

    def wrap(self, tensor: ManagedTensor, *, move: bool = False) -> pa.Tensor:
        return pa.Tensor.from_dlpack(Producer(tensor, move=move))

    def resolve(self, x: Any) -> pa.Tensor | ManagedTensor:
        if isinstance(x, pa.Tensor):
            return pa.Tensor.from_numpy(x.to_numpy().copy())
        if isinstance(x, pa.ChunkedArray):
            x = x.combine_chunks()
        info = self.describe(x)
        if not info.pending:
            tensor = self.export_described(x, info)
            tensor.readonly = False  # nobody else has this memory
            return self.wrap(tensor)
        while isinstance(x, pa.FixedSizeListArray):
            x = x.flatten()
        bits = unpacked(Piece(self.describe(x).data, x.offset % 8, len(x)), 1)
        return ManagedTensor.adopt(bits.ctypes.data, info.shape, _BOOL, owner=bits)

    def data_type(self, dtype: Any) -> DataType | None:
        if not isinstance(dtype, pa.DataType):
            return None
        return _BOOL if dtype == _BOOL_TYPE else _dlpack_dtypes.get(dtype)

    def copy(self, x: object) -> object | None:
        if isinstance(x, pa.ChunkedArray):
            return x.combine_chunks()
        # Packed booleans are immutable, and have no other form here.
        packed = isinstance(x, pa.BooleanArray | pa.FixedSizeListArray)
        return x if packed and "bitpacked" in self.describe(x).pending else None


def _is_plain(kind: pa.DataType) -> bool:
    return kind == _BOOL_TYPE or kind in _dlpack_dtypes


def _restated(refused: str, x: pa.Array, name: str = "x") -> str:
    """Restate why the elements, or a chunk, of something are refused for the whole of it."""
    from .remedies import remedy  # when something is wrong

    return f"{refused.rpartition(': ')[0]}: {remedy(x, name)}"


def _of_tensor(x: pa.Tensor) -> TensorInfo:
    dtype = _dlpack_dtypes[x.type]
    shape = x.shape
    steps, whole = in_elements(shape, x.strides, dtype.itemsize)
    pending = () if whole else ("fraction",)
    data = pa.py_buffer(x).address if x.size else 0  # which ends the process for a NULL pointer
    return TensorInfo(
        "pyarrow", data, 0, shape, steps, dtype, CPU, not x.is_mutable, pending=pending
    )


def _of_array(x: pa.Array) -> TensorInfo:
    kind, shape = x.type, (len(x),)
    dtype = _dlpack_dtypes.get(kind)
    pending = refused = None
    data = 0
    if dtype is None:
        if kind == _BOOL_TYPE:
            dtype, pending = _BOOL, ("bitpacked",)
        else:
            dtype, refused = NO_DTYPE, _restated(f"Arrow's {kind} is not a tensor dtype: ", x)
    if refused is None:
        buffer = x.buffers()[1]  # None is allowed for an array without elements
        if buffer is not None and not buffer.is_cpu:
            raise ConversionError(
                "arraybridge cannot tell where the array's device memory is: copy it first, "
                "x.copy_to(pyarrow.default_cpu_memory_manager())"
            )
        if buffer is not None:
            data = buffer.address + (x.offset // 8 if pending else x.offset * dtype.itemsize)
        elif len(x) > x.null_count:
            raise ConversionError("the array is malformed, as x.validate() says: it has no data")
        refused = _nulls(x)
    return TensorInfo(
        "pyarrow", data, 0, shape, (1,), dtype, CPU, True, pending=pending or (), refused=refused
    )


def _of_tensor_array(x: pa.FixedShapeTensorArray) -> TensorInfo:
    refused = _nulls(x, "pass x.drop_null()") or _nulls(
        x.storage.flatten(), "pass x.storage.flatten().fill_null(value)"
    )
    if refused is None:
        try:
            return _of_tensor(x.to_tensor())._replace(readonly=True)
        except pa.ArrowTypeError:
            refused = f"Arrow's {x.type.value_type} is not a tensor dtype: pass x.storage.flatten()"
    return TensorInfo("pyarrow", 0, 0, (len(x),), (1,), NO_DTYPE, CPU, True, refused=refused)


def _nulls(x: pa.Array | pa.ChunkedArray, told: str = "") -> str | None:
    count = x.null_count
    if not count:
        return None
    from .remedies import remedy  # when something is wrong

    return (
        f"{count} of {len(x)} elements {'is' if count == 1 else 'are'} null, which no tensor "
        f"holds: {told or remedy(x)}"
    )


def _from_numpy(x: np.ndarray) -> pa.Tensor | None:
    """Arrow's own view, which keeps NumPy's read-only flag; its error for negative strides is slow.

    Where elements of these dtypes are aligned, their strides are whole elements.
    """
    flags = x.flags
    plain = flags.aligned and flags.writeable == is_writable(x) and x.size
    if plain and x.dtype in _numpy_dtypes and (flags.forc or min(x.strides) >= 0):
        return pa.Tensor.from_numpy(x)
    return None


def _from_tvm_ffi(x: object) -> pa.Tensor:
    """Import by DLPack: pyarrow refuses what it lacks."""
    return pa.Tensor.from_dlpack(x)


def _to_numpy(x: object) -> np.ndarray | None:
    """Arrow's own view, read-only where the memory is; None where the planned route must decide."""
    if isinstance(x, pa.Tensor):
        result = x.to_numpy()
        return result if result.flags.aligned and result.size else None
    if isinstance(x, pa.Array) and x.type in _dlpack_dtypes and not x.null_count:
        return x.to_numpy()
    return None


LIBRARY = PyArrow()
LIBRARY.doors = {"numpy": _from_numpy, "tvm_ffi": _from_tvm_ffi}
NUMPY.doors["pyarrow"] = _to_numpy
