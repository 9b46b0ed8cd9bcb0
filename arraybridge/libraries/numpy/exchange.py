"""NumPy, through the array interface, which takes all strides and keeps the read-only flag.

bfloat16, float8 and the padded sub-byte types reach it as ml_dtypes views.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dispatch.kernel import SMALL
from ...dispatch.library import Library
from ...dispatch.records import NO_DTYPE, Accepts, ConversionError, TensorInfo
from ...dlpack import CPU, DataType, Device, DeviceType, ManagedTensor
from ...dlpack.owners import new_block
from ...kernels import cpu
from ...layout import c_strides, in_bytes, in_elements, may_overlap_itself
from ...protocols.foreign import lost
from ...protocols.numpy_dtypes import CHARS, EXTENDED, NATIVE, dlpack_dtype, numpy_dtype
from . import small
from .address import Memory, address_of
from .writers import is_frozen

if TYPE_CHECKING:
    from ...machine_code.front import Front

# Of a result of numpy.broadcast_arrays, `flags.writeable` warns that it will become read-only.
WRITEABLE = 0x400
DENSE = 0x3  # in the order of C, or of Fortran
ALIGNED = 0x100
WRITING = WRITEABLE | -1 << 31
# The flags of aligned arrays in C order that may be written, the commonest first. To look an
# array's up here takes half the time of asking for their number.
WRITABLE = tuple(x.flags for block in (np.empty((2, 2)), np.empty(2)) for x in (block, block[:]))
PLAIN = frozenset(map(np.dtype, CHARS))
_WHOLE = frozenset(x for x in PLAIN if x.alignment == x.itemsize)  # aligned: strides are so too
SWAPPED = frozenset(x.newbyteorder() for x in PLAIN) - PLAIN
_KINDS = {dtype: kind for dtype in PLAIN if (kind := dlpack_dtype(dtype)) is not None}
_USUAL = tuple(TensorInfo._field_defaults.values())[1:]  # of what follows `readonly`
_made: Any = tuple.__new__
RUNS = 1 << 20  # bytes of a result, and of its runs, that NumPy copies as fast as any
RUN = 512


_BYTES = "numpy.frombuffer(x.tobytes(), '{}')"


def _refusal(dtype: np.dtype) -> str:
    if dtype.names:
        return (
            f"a structured dtype ({dtype}) has no DLPack type: convert its fields one by one, "
            f"x[{dtype.names[0]!r}]"
        )
    integers = "x.view('int64')" if dtype.isnative else "x.astype('int64')"
    remedy = {
        "O": "pass its numbers in one dtype, x.astype('float64')",
        "M": f"pass its integers, {integers}",
        "m": f"pass its integers, {integers}",
        "U": f"encode it, or pass its code points, {_BYTES.format('uint32')}",
        "S": f"pass its bytes, {_BYTES.format('uint8')}",
        "V": f"pass its bytes, {_BYTES.format('uint8')}",
        "T": "convert it to fixed-width text first, numpy.array(x.tolist())",
        "c": "pass x.astype('complex128'), which rounds",
    }.get(dtype.kind, "pass x.astype('float64'), which rounds")
    return f"NumPy's dtype {dtype} has no DLPack type: {remedy}"


def is_writable(x: np.ndarray) -> bool:
    """Whether an array is writable, and not about to become read-only."""
    return x.flags.num & WRITING == WRITEABLE


class NumPy(Library):
    """NumPy."""

    name = "numpy"
    exports_description = True
    on_cpu_alone = True
    accepts = Accepts(
        library="numpy",
        tested="2.4.6",
        dtypes=frozenset(NATIVE + EXTENDED),
        devices=frozenset({DeviceType.CPU}),
        readonly=True,
        remedies={
            "complex32": "pass torch.view_as_real(x)",
            "": "NumPy and ml_dtypes have no such type; convert it in its own library first",
        },
    )

    def owns(self, array_type: type) -> bool:
        return issubclass(array_type, np.ndarray)

    def has_doors(self, array_type: type) -> bool:
        return array_type is np.ndarray

    def describe(self, x: np.ndarray) -> TensorInfo:
        plain = _KINDS.get(x.dtype)
        if plain is not None and type(x) is np.ndarray:
            shape = x.shape
            steps, whole = in_elements(shape, x.strides, plain.itemsize)
            if whole:
                readonly = x.flags.num & WRITING != WRITEABLE
                # As the constructor does, at a third of the time.
                return _made(
                    TensorInfo,
                    ("numpy", address_of(x), 0, shape, steps, plain, CPU, readonly, *_USUAL),
                )
        return self._described(x)

    def _described(self, x: np.ndarray) -> TensorInfo:
        """Describe any array."""
        refused = None
        pending: tuple[str, ...] = ()
        if type(x) is not np.ndarray:
            refused = lost(x)
        dtype = x.dtype
        if not dtype.isnative:
            dtype = dtype.newbyteorder("=")
            pending = ("byteorder",)
        kind = dlpack_dtype(dtype)
        if kind is None:
            refused, kind = refused or _refusal(x.dtype), NO_DTYPE
        shape = x.shape
        steps, whole = in_elements(shape, x.strides, dtype.itemsize or 1)
        if not whole:
            pending += ("fraction",)
        return TensorInfo(
            "numpy",
            address_of(x),
            0,
            shape,
            steps,
            kind,
            CPU,
            readonly=not is_writable(x),
            padded=kind.subbyte,
            pending=pending,
            refused=refused,
        )

    def may_change(self, x: np.ndarray) -> bool:
        return not is_frozen(x)

    def memory(self, x: np.ndarray) -> tuple[int, tuple[int, ...], tuple[int, ...] | None]:
        return address_of(x), x.shape, None if x.flags.c_contiguous else x.strides

    def carries(self, x: np.ndarray, _chars: frozenset[str] = CHARS) -> bool:
        plain = type(x) is np.ndarray and x.dtype.char in _chars
        return plain or self.describe(x).refused is None

    def check_carried(self, x: np.ndarray, *, read: bool = False) -> None:
        if not self.carries(x):
            raise ConversionError(str(self.describe(x).refused))

    def wrap(self, tensor: ManagedTensor, *, move: bool = False) -> np.ndarray:
        dtype = numpy_dtype(tensor.dtype)
        shape = tensor.shape
        if 0 in shape:  # no memory to share, and perhaps no pointer
            result = np.empty(shape, dtype)
            result.flags.writeable = not tensor.readonly
            return result
        strides = in_bytes(tensor.strides, dtype.itemsize)
        owner = tensor.owner
        if (
            type(owner) is np.ndarray  # what was pinned, mostly
            and owner.dtype is dtype
            and owner.shape == shape
            and owner.strides == strides
            and owner.flags.num & WRITING == (0 if tensor.readonly else WRITEABLE)
            and address_of(owner) == tensor.pointer
        ):
            return owner.view()
        plain = dtype.isbuiltin == 1  # not by kind: float8_e5m2 says "f", and then <f1
        typestr = dtype.str if plain else f"|V{dtype.itemsize}"
        memory = Memory(tensor.pointer, shape, strides, typestr, tensor.readonly, tensor.owner)
        result = np.asarray(memory)
        return result if plain else result.view(dtype)

    def resolve(self, x: np.ndarray) -> np.ndarray:
        return x.astype(x.dtype.newbyteorder("="), order="C")

    def copy(self, x: np.ndarray) -> np.ndarray | None:
        # What no other library takes (objects, dates, another byte order) is still NumPy's to copy.
        info = self.describe(x)
        return x.copy(order="C") if info.refused or info.pending else None

    def compact(self, x: np.ndarray) -> np.ndarray | None:
        if type(x) is not np.ndarray or x.dtype.char not in CHARS or not x.dtype.isnative:
            return None
        if x.flags.c_contiguous:
            return x
        if x.size <= SMALL:
            small.learn(x)
            return x.copy()
        # Long runs NumPy moves by memcpy: one thread of its own is as good as ours for a while.
        itemsize = x.itemsize
        shape, strides = x.shape, x.strides
        if strides[-1] == itemsize and x.nbytes <= RUNS and shape[-1] * itemsize >= RUN:
            return x.copy()
        # As HostCopy would, without a description and a tensor: 5 of 10 µs beside the kernel.
        block, data = new_block(x.nbytes)
        dense = c_strides(shape, itemsize)
        cpu.copy(data, address_of(x), shape, dense, strides, itemsize, fresh=block.fresh)
        return np.asarray(Memory(data, shape, dense, x.dtype.str, False, block))

    def fresh(
        self,
        x: np.ndarray,
        _kind: type = np.ndarray,
        _plain: frozenset[np.dtype] = PLAIN,
        _small: int = SMALL,
    ) -> np.ndarray | None:
        if type(x) is _kind and x.size <= _small:
            dtype = x.dtype
            if dtype in _plain:
                return x.copy()
            if dtype in SWAPPED:
                return self.resolve(x)
        return None

    def copies_small(self, x: np.ndarray, info: TensorInfo) -> bool:
        return type(x) is np.ndarray and info.size <= SMALL and x.dtype.char in CHARS

    def pattern(self, x: np.ndarray) -> Hashable | None:
        flags, dtype = x.flags.num, x.dtype
        if flags & DENSE:
            if x.size:
                return dtype, flags, x.ndim
        elif flags & ALIGNED and dtype in _WHOLE:
            strides = x.strides
            if len(strides) == 1:  # of two elements or more
                return dtype, flags, strides[0] < 0, strides[0] == 0
            if 0 not in strides and 1 not in x.shape:
                return dtype, flags, len(strides), min(strides) < 0
        return dtype, flags, x.shape, x.strides

    def serve(self, front: Front, array_type: type) -> None:
        if array_type is np.ndarray:
            small.serve(front, SMALL)

    def assign(self, dst: np.ndarray, src: np.ndarray) -> bool:
        dtype = src.dtype
        if (
            dst.dtype is dtype
            and dtype.char in CHARS
            and type(dst) is type(src) is np.ndarray
            and dst.shape == src.shape
            and dst.flags.writeable
            and (dst.flags.forc or not may_overlap_itself(dst.shape, dst.strides, dtype.itemsize))
            # By the bounds alone. NumPy would mind that they overlap, but not of one axis.
            and not np.may_share_memory(dst, src)
        ):
            if src.size <= SMALL:
                np.copyto(dst, src)
            else:
                cpu.copy(
                    dst.ctypes.data,
                    src.ctypes.data,
                    src.shape,
                    dst.strides,
                    src.strides,
                    dtype.itemsize,
                )
            return True
        return False

    def recasts(self, info: TensorInfo, dtype: DataType, axes: tuple[int, ...]) -> bool:
        return False  # `Recast` does it, into a block

    def native_dtype(self, dtype: DataType) -> np.dtype:
        return numpy_dtype(dtype)

    @staticmethod
    def kind(dtype: np.dtype) -> DataType | None:
        """Return the DataType of a data type in the machine's byte order; else None."""
        return dlpack_dtype(dtype)

    @staticmethod
    def cast(x: np.ndarray, dtype: DataType) -> np.ndarray:
        """Return a copy in another data type."""
        made = np.empty(x.shape, numpy_dtype(dtype))
        LIBRARY.assign_cast(made, x)
        return made

    def assign_cast(self, dst: np.ndarray, src: np.ndarray) -> bool:
        try:
            np.copyto(dst, src, casting="unsafe")
        except TypeError:  # between float8 and its like ml_dtypes has no cast; float32 has them all
            np.copyto(dst, src.astype(np.float32), casting="unsafe")
        return True

    def to_host(self, x: np.ndarray) -> np.ndarray:
        return x

    def to_device(self, x: Any, device: Device) -> np.ndarray:
        return x

    def native_namespace(self) -> Any:
        from .namespace import native

        return native

    def array_class(self) -> Any:
        from .array import NumPyArray

        return NumPyArray


def from_versioned(x: Any, _from: Any = np.from_dlpack) -> np.ndarray:
    """Import by DLPack: NumPy takes all strides and offsets, and refuses what it lacks.

    For libraries that give versioned capsules: of a legacy one NumPy makes a read-only array.
    """
    return _from(x)


LIBRARY = NumPy()
# Most libraries add their own: the library of an array is loaded before its door is needed.
LIBRARY.doors = {"tvm_ffi": from_versioned, "paddle": from_versioned}
