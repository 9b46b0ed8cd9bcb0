"""NumPy, through the array interface, which supports all strides and the read-only flag.

bfloat16, float8 and the padded sub-byte types become ml_dtypes views.
"""

from functools import partial
from math import prod
from numbers import Number
from typing import Any

import numpy as np

from ... import dlpack
from ...core.library import Computing, Library, Routing, array_itself, deferred
from ...core.records import NO_DTYPE, Accepts, Edge, TensorInfo
from ...core.registry import RECORDS, remembered
from ...dlpack import CPU, DataType, DeviceType
from ...layout import Memory, in_bytes, in_elements
from ...native import C
from ...ndarrays import (
    EXTENDED,
    NATIVE,
    PLAIN,
    address_of,
    canonical,
    dlpack_dtype,
    extended_dtype,
    numpy_dtype,
)

# For results of numpy.broadcast_arrays, `flags.writeable` warns that it will become read-only.
WRITEABLE = 0x400
WRITING = WRITEABLE | -1 << 31
_KINDS = {dtype: kind for dtype in PLAIN if (kind := dlpack_dtype(dtype)) is not None}
_USUAL = tuple(TensorInfo._field_defaults.values())[1:]  # of the fields after `readonly`
_made: Any = tuple.__new__
_BYTES = "numpy.frombuffer(x.tobytes(), '{}')"
#: The data types of ml_dtypes, by their size, that `numpy.save` most likely stored as bytes.
_SAVED = {1: "float8_e4m3fn", 2: "bfloat16"}


def _refusal(x: np.ndarray) -> str:
    dtype = x.dtype
    if dtype.names:
        return (
            f"a structured dtype ({dtype}) has no DLPack type: convert its fields one by one, "
            f"x[{dtype.names[0]!r}]"
        )
    integers = "x.view('int64')" if dtype.isnative else "x.astype('int64')"
    remedy = {
        "O": _of_objects(x) if dtype.kind == "O" else "",
        "M": f"pass its integers, {integers}",
        "m": f"pass its integers, {integers}",
        "U": f"encode it, or pass its code points, {_BYTES.format('uint32')}",
        "S": f"pass its bytes, {_BYTES.format('uint8')}",
        "V": f"pass its bytes, {_BYTES.format('uint8')}",
        "T": "convert it to fixed-width text first, numpy.array(x.tolist())",
        "c": "pass x.astype('complex128'), which rounds",
    }.get(dtype.kind, "pass x.astype('float64'), which rounds")
    saved = _SAVED.get(dtype.itemsize) if dtype.kind == "V" else None
    if saved and extended_dtype(saved) is not None:  # by its name from now on
        remedy += f"; or, if it was saved as {saved}, pass x.view({saved!r})"
    return f"NumPy's dtype {dtype} has no DLPack type: {remedy}"


def _of_objects(x: np.ndarray) -> str:
    """Return what to pass instead of an array of Python objects, by the first ones."""
    some = x.flat[:1000].tolist()
    if all(y is None or isinstance(y, Number | np.bool_) for y in some):
        kind = np.array(some).dtype.name if some else "float64"
        return f"pass its numbers in one dtype, x.astype({kind if kind in NATIVE else 'float64'!r})"
    if all(isinstance(y, list | tuple) or hasattr(y, "__array__") for y in some):
        return "its elements are arrays or lists: pass each by itself, numpy.asarray(x.flat[0])"
    return "make numbers of its objects first"


#: Objects that show another object's memory, and the attribute that has it.
_HOLDS = {np.ndarray: "base", memoryview: "obj", Memory: "owner"}


def is_writable(x: np.ndarray) -> bool:
    """Whether an array is writable, and not about to become read-only."""
    return x.flags.num & WRITING == WRITEABLE


def empty_aligned(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return an array aligned to 64 bytes."""
    line = dlpack.ALIGNMENT
    memory = np.empty(prod(shape) * dtype.itemsize + line, np.uint8)
    return np.ndarray(shape, dtype, memory, -address_of(memory) % line)


def copy(x: np.ndarray, aligned: bool = False) -> np.ndarray | None:
    """Copy an array to a new one in C order and native byte order.

    Without the C extension, return None if a kernel is faster than NumPy.
    """
    dtype = x.dtype
    if not dtype.isnative:
        dtype = dtype.newbyteorder("=")
    elif C is None:
        from ...core.kernel import by_numpy

        if not by_numpy(x.shape, x.strides, x.itemsize):
            return None
    made = empty_aligned(x.shape, dtype) if aligned else np.empty(x.shape, dtype)
    np.copyto(made, x)
    return made


_ways: dict[bytes, bytes] = {}  # by layout; see `kernels.cpu.copying`


def _new_way(key: bytes) -> bytes:
    from ...kernels.cpu.copying import way_of_key

    return remembered(_ways, key, way_of_key(key), 1024)


def _num_threads() -> int:
    from ...kernels.cpu.pool import get_num_threads

    return get_num_threads()


copy_aligned = partial(copy, aligned=True)
if C is not None:
    copy, copy_aligned = (
        C.numpy_copy(_ways, _new_way, _num_threads, partial(copy, aligned=aligned), aligned)
        for aligned in (False, True)
    )


def _plain(x: np.ndarray) -> bool:
    # `broadcast_arrays` gives arrays that warn when they are written.
    return type(x) is np.ndarray and x.flags.num >= 0


class _Computing(Computing):
    native_namespace = deferred(__package__, "namespace", "native")
    array_class = deferred(__package__, "array", "NumPyArray")

    def assign(self, dst: np.ndarray, src: np.ndarray) -> None:
        try:
            np.copyto(dst, canonical(src, dst.dtype), casting="unsafe")
        except TypeError:  # ml_dtypes only casts between float8 types through float32
            np.copyto(dst, src.astype(np.float32), casting="unsafe")


class NumPy(Library):
    """NumPy."""

    name = "numpy"
    computing = _Computing()
    casts = frozenset(NATIVE)  # data types that its own casts connect
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

    edges = (Edge("numpy", "numpy", copy, copies=True),)
    copy_aligned = staticmethod(copy_aligned)
    empty_aligned = staticmethod(empty_aligned)
    routing = Routing(_plain, address_of, aligned=64)

    def describe(self, x: np.ndarray) -> TensorInfo:
        plain = _KINDS.get(x.dtype)
        if plain is not None and type(x) is np.ndarray:
            shape = x.shape
            steps, whole = in_elements(shape, x.strides, x.itemsize)
            if whole:
                readonly = x.flags.num & WRITING != WRITEABLE
                # As the constructor does, in a third of the time.
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
            from ...protocols.rejections import lost

            refused = lost(x)
            x = np.asarray(x)  # whose shape and flags are its memory's
        dtype = x.dtype
        if not dtype.isnative:
            dtype = dtype.newbyteorder("=")
            pending = ("byteorder",)
        kind = dlpack_dtype(dtype)
        if kind is None:
            refused, kind = refused or _refusal(x), NO_DTYPE
        shape = x.shape
        steps, whole = in_elements(shape, x.strides, dtype.itemsize or 1)
        if not whole:
            pending += ("fraction",)
        return TensorInfo(
            "numpy", address_of(x), 0, shape, steps, kind, CPU, readonly=not is_writable(x),
            padded=kind.subbyte, pending=pending, refused=refused,
        )  # fmt: skip

    def may_change(self, x: np.ndarray) -> bool:
        """Return whether memory may be written though an array is read-only.

        A flag is no promise that nobody writes: only `bytes`, Arrow's data, and arrays of libraries
        whose arrays never change, are safe owners.
        """
        if x.flags.num & WRITEABLE:
            return True
        from ...protocols.frames import speaks_arrow

        owner: Any = x
        while type(owner) in _HOLDS:
            owner = getattr(owner, _HOLDS[type(owner)])
        kind = type(owner)
        if kind is bytes or (speaks_arrow(kind) and not hasattr(kind, "__arraybridge__")):
            return False
        library = RECORDS[kind].library
        return library is None or not library.accepts.immutable

    memory_owner = array_itself

    def wrap(self, tensor: "dlpack.ManagedTensor") -> np.ndarray:
        dtype = numpy_dtype(tensor.dtype)
        shape = tensor.shape
        if 0 in shape:  # no memory to share, and perhaps no pointer
            result = np.empty(shape, dtype)
            result.flags.writeable = not tensor.readonly
            return result
        strides = in_bytes(tensor.strides, dtype.itemsize)
        plain = dtype.isbuiltin == 1  # not by kind: float8_e5m2 has "f", and then <f1
        typestr = dtype.str if plain else f"|V{dtype.itemsize}"
        memory = Memory(tensor.pointer, shape, strides, typestr, tensor.readonly, tensor.owner)
        result = np.asarray(memory)
        return result if plain else result.view(dtype)

    def resolve(self, x: np.ndarray) -> np.ndarray:
        x = np.asarray(x)  # a subclass may have its own methods
        return x.astype(x.dtype.newbyteorder("="), order="C")

    def copy(self, x: np.ndarray) -> np.ndarray | None:
        # NumPy copies arrays that no other library takes (objects, dates, another byte order).
        info = self.describe(x)
        return x.copy(order="C") if info.refused or info.pending else None

    @staticmethod
    def cast(x: np.ndarray, dtype: DataType) -> np.ndarray:
        """Return a copy in another data type."""
        made = np.empty(x.shape, numpy_dtype(dtype))
        LIBRARY.computing.assign(made, x)
        return made


LIBRARY = NumPy()
if C is not None:
    LIBRARY.routing.exact = C.numpy_signature(LIBRARY.signature, True)
    LIBRARY.signature = C.numpy_signature(LIBRARY.signature, False)  # type: ignore[method-assign]
