"""Apache Arrow, through pyarrow. The target is a ``pyarrow.Tensor``.

A tensor has any rank, only numbers, no negative strides, and the memory's read-only flag. It
ignores byte order and would take booleans for numbers, so it is given neither.

Sources are tensors, arrays and chunked arrays of numbers or booleans. Arrow's arrays are immutable.
Data that no tensor holds is refused with the remedy: nulls (NumPy would make them NaN), dates,
text. Booleans are packed eight to a byte and chunks are separate, so both are copied. A fixed-size
list is an axis. A ``FixedShapeTensorArray`` converts as its tensor; its own ``to_tensor`` ignores
nulls inside an element.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pyarrow as pa

from ..core.library import Library
from ..core.records import NO_DTYPE, Accepts, ConversionError, Edge, TensorInfo
from ..dlpack import CPU, DataType, DeviceType, ManagedTensor, c_strides
from ..layout import in_elements
from ..ndarrays import with_plain_strides
from ..protocols.arrow import assembled
from ..protocols.arrow_export import EXPORTS, REMEDIES, of_tensor
from ..protocols.arrow_types import spells_number
from ..protocols.assembled import LIBRARY as FRAMES
from ..protocols.assembled import Piece, unpacked
from ..protocols.producer import Producer

_NAMES = ("int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64").split()
_dlpack_dtypes = {getattr(pa, name)(): DataType.named(name) for name in _NAMES}
_BOOL, _BOOL_TYPE = DataType.named("bool"), pa.bool_()
_arrow_types = {dtype: kind for kind, dtype in _dlpack_dtypes.items()} | {_BOOL: _BOOL_TYPE}
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

    def has_edges(self, array_type: type) -> bool:
        return issubclass(array_type, pa.Tensor | pa.NumericArray)

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
        if isinstance(x, ManagedTensor):  # booleans after resolve
            return TensorInfo.of_tensor(x, "pyarrow")
        raise ConversionError(f"a {type(x).__name__} is not dense memory: pass x.to_tensor()")

    def may_change(self, x: object) -> bool:
        return isinstance(x, pa.Tensor)  # it may be NumPy's memory; other data never change

    def _of_lists(self, x: pa.FixedSizeListArray) -> TensorInfo:
        """Describe lists of a fixed size as an axis, and the lists that they contain as others."""
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
            whole = "x" if _is_plain(x.type) else "x.combine_chunks()"  # it lacks methods
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
    """Restate a refusal of the elements, or of a chunk, for the whole array."""
    return f"{refused.rpartition(': ')[0]}: {remedy(x, name)}"


def _of_tensor(x: pa.Tensor) -> TensorInfo:
    dtype = _dlpack_dtypes[x.type]
    shape = x.shape
    steps, whole = in_elements(shape, x.strides, dtype.itemsize)
    pending = () if whole else ("fraction",)
    data = pa.py_buffer(x).address if x.size else 0  # it aborts for a NULL pointer
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
                "arraybridge cannot locate the array's device memory: copy it first, "
                "x.copy_to(pyarrow.default_cpu_memory_manager())"
            )
        if buffer is not None:
            data = buffer.address + (x.offset // 8 if pending else x.offset * dtype.itemsize)
        elif len(x) > x.null_count:
            raise ConversionError("the array is malformed: it has no data, see x.validate()")
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


def _nulls(x: pa.Array | pa.ChunkedArray, advice: str = "") -> str | None:
    count = x.null_count
    if not count:
        return None
    return (
        f"{count} of {len(x)} elements {'is' if count == 1 else 'are'} null, which no tensor "
        f"holds: {advice or remedy(x)}"
    )


def _from_numpy(x: np.ndarray) -> pa.Tensor:
    """Return Arrow's own view, which keeps NumPy's read-only flag."""
    try:
        return pa.Tensor.from_numpy(x)
    except ValueError:  # an axis of one element
        return pa.Tensor.from_numpy(with_plain_strides(x))


def _whole(s: Any) -> bool:
    return s.dtype_name in _NAMES and not s.empty and s.aligned_to(s.dtype.itemsize)


LIBRARY = PyArrow()
LIBRARY.edges = (
    Edge("numpy", "pyarrow", _from_numpy, lambda s: _whole(s) and not s.negative),
    Edge("tvm_ffi", "pyarrow", pa.Tensor.from_dlpack, lambda s: min(s.strides, default=0) >= 0),
    # Arrow's own view, read-only if the memory is.
    Edge("pyarrow", "numpy", lambda x: x.to_numpy(), _whole),
)


class Arrays(Library):
    """``"pyarrow.Array"``: Arrow's arrays as a target; as sources they belong to ``"pyarrow"``.

    The array has an axis of rows; other axes are fixed-size lists. Memory in C order is shared, as
    by ``pyarrow.array``; other layouts are copied, and so are booleans, which Arrow packs eight to
    a byte. Arrow computes at once, so later writes to the memory do not change its results.
    """

    name = "pyarrow.Array"
    forms = (pa.Array,)
    accepts = EXPORTS.accepts._replace(
        library="pyarrow.Array", tested="26.0.1", devices=frozenset({DeviceType.CPU})
    )

    def owns(self, array_type: type) -> bool:
        return False

    def wrap(self, tensor: ManagedTensor, *, move: bool = False) -> pa.Array:
        x, value = of_tensor(tensor), _arrow_types[tensor.dtype]
        shape, size = x.shape, prod(x.shape)
        memory = pa.foreign_buffer(x.data or 64, size * value.bit_width + 7 >> 3, x.owner)
        array = pa.Array.from_buffers(value, size, [None, memory])
        for axis in range(len(shape) - 1, 0, -1):
            value = pa.list_(value, shape[axis])
            rows = prod(shape[:axis])
            array = pa.Array.from_buffers(value, rows, [None], children=[array])
        return array


ARRAY_LIBRARY = Arrays()


# Tables and record batches: what to pass instead of one that is no matrix.


def opened(x: Any) -> tuple[object, Library] | None:
    """Return what a table converts as, and its library; None for another object."""
    if not isinstance(x, pa.Table | pa.RecordBatch):
        return None
    found = assembled(x)
    if found.refused is None:
        return found, FRAMES
    column, advice = _refused(x, found.refused), found.refused.rpartition(": ")[2]
    return found.advised(
        advice if column is None else _remedy(x, column), "pass x.drop_null()"
    ), FRAMES


def _refused(x: Any, why: str) -> int | None:
    """Return the column that a refusal is about."""
    names = x.schema.names
    return next((at for at, name in enumerate(names) if why.startswith(f"column {name!r}: ")), None)


def _remedy(x: Any, at: int, called: str = "x") -> str:
    column, kinds = x.column(at), set(x.schema.types)
    kind = column.type
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if column.null_count and len(kinds) == 1 and number:
        return "pass x.drop_null()"
    name = x.schema.names[at]
    code = f"{called}.column({(name if x.schema.names.count(name) == 1 else at)!r})"
    if isinstance(column, pa.ChunkedArray):
        column = telling_chunk(column)
        if not number:
            code += ".combine_chunks()"
    return remedy(column, code)


# What to pass instead of an array that no tensor holds, by its type and its nulls.

_types = pa.types
_LISTS = tuple(
    getattr(pa, name)
    for name in ("ListArray", "LargeListArray", "ListViewArray", "LargeListViewArray")
    if hasattr(pa, name)
)
_TEXT = (
    "is_string", "is_large_string", "is_string_view",
    "is_binary", "is_large_binary", "is_binary_view", "is_fixed_size_binary",
)  # fmt: skip


def telling_chunk(x: pa.ChunkedArray) -> pa.Array:
    """Return the chunk with the most nulls, whose remedy serves all."""
    chunks = [chunk for chunk in x.chunks if len(chunk)]
    return max(chunks, key=lambda c: c.null_count) if chunks else x.combine_chunks()


def remedy(x: pa.Array, name: str = "x") -> str:
    """Return what to do about an array; ``name`` is its name in the code."""
    kind = x.type
    if _types.is_null(kind):
        return f"convert it to numbers first, {name}.cast('float64').fill_null(value)"
    if _is_number(kind):
        if not x.null_count:
            return f"pass {name}"
        value = "False" if _types.is_boolean(kind) else "value"
        return f"pass {name}.fill_null({value}) or {name}.drop_null()"
    if isinstance(x, pa.ExtensionArray):
        return remedy(x.storage, f"{name}.storage").replace("pass", "pass its storage,", 1)
    if _is(kind, "is_string_view", "is_binary_view"):
        plain = "string" if _types.is_string_view(kind) else "binary"
        x, name = x.cast(plain), f"{name}.cast({plain!r})"
        kind = x.type
    if x.null_count:
        x, name = x.drop_null(), f"{name}.drop_null()"
    if isinstance(x, pa.MapArray):
        return remedy(x.items, f"{name}.items")
    if isinstance(x, (*_LISTS, pa.FixedSizeListArray)):
        below = x.flatten()  # type: ignore[attr-defined]
        if _is_number(below.type) and not below.null_count:
            if isinstance(x, pa.FixedSizeListArray):
                return f"pass {name}"
            return f"pass {name}.flatten(), since its rows may differ in length"
        return remedy(below, f"{name}.flatten()")
    if isinstance(x, pa.StructArray | pa.UnionArray):
        if not kind.num_fields:
            return "it has no fields"
        at = next((n for n in range(kind.num_fields) if _is_number(kind.field(n).type)), 0)
        advice = remedy(x.field(at), f"{name}.field({at})")
        return advice.replace("pass", "pass each of its fields,", 1)
    if _types.is_temporal(kind) and not _types.is_interval(kind):
        return f"pass its integers, {name}.view('int{kind.bit_width}')"
    if _types.is_decimal(kind):
        return f"pass {name}.cast('float64'), which rounds"
    if _types.is_run_end_encoded(kind):
        import pyarrow.compute  # noqa: F401 # pyright: ignore[reportUnusedImport] - is pa.compute

        return remedy(pa.compute.run_end_decode(x), f"pyarrow.compute.run_end_decode({name})")
    if _types.is_dictionary(kind):
        codes, x, name = (
            f"pass its codes, {name}.indices",
            x.dictionary_decode(),
            f"{name}.dictionary_decode()",
        )
        kind = x.type
        if not _is(kind, *_TEXT):  # the codes are the dictionary's
            return f"{codes}, or, decoded, {remedy(x, name).removeprefix('pass ')}"
    else:
        codes = f"pass codes, {name}.dictionary_encode().indices"
    if _is(kind, "is_string", "is_large_string") and len(x) and spells_number(x[0].as_py()):
        codes += f", or the numbers that it spells, {name}.cast('float64')"
    return codes


def _is_number(kind: pa.DataType) -> bool:
    return bool(_types.is_integer(kind) or _types.is_floating(kind) or _types.is_boolean(kind))


def _is(kind: pa.DataType, *names: str) -> bool:
    return any(getattr(_types, name, lambda _: False)(kind) for name in names)
