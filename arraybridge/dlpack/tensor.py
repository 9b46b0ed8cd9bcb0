"""``Tensor``, a borrowed description of memory, and ``ManagedTensor``, one that owns it.

Both hold plain Python values: the struct is read once, checked, and never looked at again.
"""

from __future__ import annotations

import ctypes
import struct
from math import prod

from . import pyapi
from .device import CPU, Device
from .dtypes import DataType
from .errors import MalformedTensorError
from .header import (
    DELETER,
    DL_TENSOR_OFFSET,
    DLTENSOR_FIELDS,
    FLAG_IS_COPIED,
    FLAG_IS_SUBBYTE_TYPE_PADDED,
    FLAG_READ_ONLY,
    LEGACY_CONTEXT_OFFSET,
    LEGACY_DELETER_OFFSET,
    VERSION,
    VERSIONED_FIELDS,
)
from .validate import check_device, check_dtype, check_extent, check_ndim, check_version

ALIGNMENT = 64  # bytes; what JAX and TensorFlow want before they take a view


def c_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of the compact, row-major layout; extents of 0 count as 1."""
    strides = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent or 1
    return tuple(reversed(strides))


def _canonical_strides(shape, strides):
    """``strides`` with those of unit extents set as consumers expect them.

    A stride over an extent of 1, or in an empty tensor, is never used, yet consumers refuse "odd"
    ones (onnxruntime#27450, jax#25066).
    """
    compact = c_strides(shape)
    if strides == compact or 0 in shape:
        return compact
    if 1 not in shape:
        return strides
    if all(e == 1 or s == c for e, s, c in zip(shape, strides, compact, strict=True)):
        return compact
    # Elsewhere a unit axis steps over what lies inside it, as compact strides would.
    result = list(strides)
    for axis in range(len(shape) - 1, -1, -1):
        if shape[axis] == 1:
            inner = axis + 1
            result[axis] = abs(result[inner]) * shape[inner] if inner < len(shape) else 1
    return tuple(result)


class Tensor:
    """A borrowed tensor: a description of memory that somebody else keeps alive.

    Parameters
    ----------
    address : int
        The address of a raw ``DLTensor``, as C libraries hand it to a function. It is read and checked
        here, and may go away afterwards.

    Attributes
    ----------
    data : int
        The pointer (an address, or an opaque handle on OpenCL, Vulkan, Metal, ...).
    byte_offset : int
        Bytes from ``data`` to the first element.
    shape, strides : tuple of int
        Strides in elements.
    dtype : DataType
    device : Device
    readonly, copied, padded : bool
        The flags of the versioned struct; ``padded``: a sub-byte type that takes a byte an element.
    version : tuple of int or None
        ``(major, minor)`` of the struct; None for a legacy struct or a bare ``DLTensor``.

    Raises
    ------
    MalformedTensorError
        If a field contradicts ``dlpack.h``.
    """

    __slots__ = (
        "byte_offset",
        "copied",
        "data",
        "device",
        "dtype",
        "padded",
        "readonly",
        "shape",
        "strides",
        "version",
    )

    def __init__(self, address: int) -> None:
        if not address:
            raise MalformedTensorError("the DLTensor pointer is NULL")
        self._read(address, None, 0)

    def _read(self, address, version, flags):
        """Fill the fields from the ``DLTensor`` at ``address``, checking each before its use."""
        fields = DLTENSOR_FIELDS.unpack(ctypes.string_at(address, 48))
        data, device_type, device_id, ndim, code, bits, lanes, shape, strides, byte_offset = fields
        minor = version[1] if version else VERSION[1]
        check_ndim(ndim, shape)
        check_device(device_type, device_id, minor)
        check_dtype(code, bits, lanes, minor)
        extents = struct.unpack(f"={ndim}q", ctypes.string_at(shape, 8 * ndim)) if ndim else ()
        if strides and ndim:
            steps = struct.unpack(f"={ndim}q", ctypes.string_at(strides, 8 * ndim))
        else:
            # NULL: compact and row-major (allowed before DLPack 1.2, and still met).
            steps = None
        dtype = DataType(code, bits, lanes)
        self._set(data, byte_offset, extents, steps, dtype, Device(device_type, device_id), flags)
        self.version = version

    def _set(self, data, byte_offset, shape, strides, dtype, device, flags):
        steps = c_strides(shape) if strides is None else strides
        check_extent(data, byte_offset, shape, steps, dtype, device.type)
        self.data = data
        self.byte_offset = byte_offset
        self.shape = shape
        self.strides = steps
        self.dtype = dtype
        self.device = device
        self.readonly = bool(flags & FLAG_READ_ONLY)
        self.copied = bool(flags & FLAG_IS_COPIED)
        self.padded = bool(flags & FLAG_IS_SUBBYTE_TYPE_PADDED)
        self.version = None

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, were they compact."""
        return self.dtype.nbytes(self.size, self.padded)

    @property
    def pointer(self) -> int:
        """The address of the first element; only where the device is addressable."""
        return self.data + self.byte_offset

    @property
    def flags(self) -> int:
        """The flags as the versioned struct has them."""
        return (
            self.readonly * FLAG_READ_ONLY
            | self.copied * FLAG_IS_COPIED
            | self.padded * FLAG_IS_SUBBYTE_TYPE_PADDED
        )

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.dtype} {self.shape} on {self.device}"
            f"{', read-only' if self.readonly else ''}>"
        )


def read_head(address: int) -> tuple[tuple[int, int], int, int]:
    """(version, deleter, flags) of a ``DLManagedTensorVersioned``."""
    major, minor, _, deleter, flags = VERSIONED_FIELDS.unpack(ctypes.string_at(address, 32))
    return (major, minor), deleter, flags


class _Imported:
    """Owns a struct of a producer: its deleter runs when the last reference goes, once."""

    __slots__ = ("address", "deleter")

    def __init__(self, address, deleter):
        self.address = address
        self.deleter = deleter

    def release(self, _deleter_type=DELETER):
        deleter, self.deleter = self.deleter, 0
        if deleter:
            _deleter_type(deleter)(self.address)

    __del__ = release


class _Block:
    """Owns memory of ``malloc``."""

    __slots__ = ("address",)

    def __init__(self, address):
        self.address = address

    def __del__(self, _free=pyapi.free):
        if self.address:
            _free(self.address)


class ManagedTensor(Tensor):
    """An owning tensor: the memory lives as long as the ManagedTensor or anything exported from it.

    Not called directly: see :meth:`adopt`, :meth:`allocate`, :meth:`from_struct` and
    :func:`arraybridge.dlpack.acquire`.

    Attributes
    ----------
    owner : object
        What keeps the memory alive.
    """

    __slots__ = ("owner",)

    def __init__(self) -> None:
        raise TypeError("use ManagedTensor.adopt, .allocate, .from_struct or dlpack.acquire")

    @classmethod
    def adopt(
        cls,
        data: int,
        shape: tuple[int, ...],
        dtype: DataType,
        *,
        owner: object,
        device: Device = CPU,
        strides: tuple[int, ...] | None = None,
        byte_offset: int = 0,
        readonly: bool = False,
        copied: bool = False,
        padded: bool = False,
    ) -> ManagedTensor:
        """A tensor on memory that ``owner`` keeps alive; strides in elements, None for C order.

        Raises
        ------
        MalformedTensorError
            If shape, strides and offset describe memory that cannot exist.
        """
        self = cls.__new__(cls)
        flags = (
            readonly * FLAG_READ_ONLY
            | copied * FLAG_IS_COPIED
            | padded * FLAG_IS_SUBBYTE_TYPE_PADDED
        )
        check_ndim(len(shape), 1)
        self._set(data, byte_offset, shape, strides, dtype, device, flags)
        self.owner = owner
        return self

    @classmethod
    def trusted(cls, data, shape, strides, dtype, device, readonly, padded, owner) -> ManagedTensor:
        """As :meth:`adopt`, unchecked: for what an array library itself says of its own array."""
        self = cls.__new__(cls)
        self.data = data
        self.byte_offset = 0
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.device = device
        self.readonly = readonly
        self.copied = False
        self.padded = padded
        self.version = None
        self.owner = owner
        return self

    @classmethod
    def allocate(
        cls, shape: tuple[int, ...], dtype: DataType, *, padded: bool = False
    ) -> ManagedTensor:
        """A new C-contiguous tensor on the CPU, aligned to 64 bytes, flagged as a copy.

        Header and data are one block of ``malloc``, so that handing it over (:meth:`hand_over`)
        makes C's own ``free`` its deleter.

        Raises
        ------
        MemoryError
        """
        head = DL_TENSOR_OFFSET + DLTENSOR_FIELDS.size + 16 * len(shape)
        nbytes = dtype.nbytes(prod(shape), padded)
        address = pyapi.malloc(head + ALIGNMENT + nbytes)
        if not address:
            raise MemoryError(f"no {nbytes} bytes for a tensor of shape {shape} and type {dtype}")
        data = -(-(address + head) // ALIGNMENT) * ALIGNMENT
        strides = c_strides(shape)
        self = cls.trusted(data, shape, strides, dtype, CPU, False, padded, _Block(address))
        self.copied = True
        return self

    @classmethod
    def from_struct(cls, address: int, versioned: bool) -> ManagedTensor:
        """Take over a ``DLManagedTensor`` or ``DLManagedTensorVersioned``.

        Whatever happens, its deleter runs exactly once: at once if the struct is refused, else when the
        last reference goes.

        Raises
        ------
        UnsupportedVersionError
            For another major version than 1; no field behind the deleter has been read.
        MalformedTensorError
            If a field contradicts ``dlpack.h``.
        """
        if not address:
            raise MalformedTensorError("the capsule holds a NULL pointer")
        self = cls.__new__(cls)
        if versioned:
            version, deleter, flags = read_head(address)
            tensor = address + DL_TENSOR_OFFSET
        else:
            version, flags, tensor = None, 0, address
            deleter = ctypes.c_uint64.from_address(address + LEGACY_DELETER_OFFSET).value
        self.owner = _Imported(address, deleter)
        try:
            check_version(version)
            self._read(tensor, version, flags)
        except BaseException:
            self.owner.release()  # now, not when the traceback that holds this frame goes
            raise
        return self

    @property
    def linear(self) -> bool:
        """Whether this is a block of :meth:`allocate` that can still be handed over whole."""
        return type(self.owner) is _Block

    def to_struct(self, versioned: bool = True) -> int:
        """The address of a new struct that keeps this tensor's owner alive until its deleter runs.

        ``byte_offset`` is folded into ``data`` where the device is addressable, since consumers
        ignore or refuse it. The caller owns the struct.
        """
        from . import native

        functions = native.functions()
        head = DL_TENSOR_OFFSET if versioned else 0
        size = (head + 48 if versioned else LEGACY_CONTEXT_OFFSET + 16) + 16 * len(self.shape)
        address = pyapi.malloc(size)
        if not address:
            raise MemoryError("no memory for a DLManagedTensor")
        owner = self.owner
        release = functions.release_versioned if versioned else functions.release_legacy
        self._write(address, versioned, id(owner), release)
        pyapi.incref(owner)
        return address

    def hand_over(self, versioned: bool = True) -> int:
        """As :meth:`to_struct`, but a block of :meth:`allocate` moves out whole: nothing of Python is
        left behind it, and this object must not be used again."""
        if not self.linear:
            return self.to_struct(versioned)
        address = self.owner.address
        self._write(address, versioned, 0, pyapi.free_address())
        self.owner.address = 0
        self.owner = None
        return address

    def _write(self, address, versioned, context, deleter):
        ndim = len(self.shape)
        head = DL_TENSOR_OFFSET if versioned else 0
        arrays = address + (head + 48 if versioned else LEGACY_CONTEXT_OFFSET + 16)
        data, byte_offset = self.data, self.byte_offset
        if byte_offset and self.device.addressable:
            data, byte_offset = data + byte_offset, 0
        tensor = DLTENSOR_FIELDS.pack(
            data, *self.device, ndim, *self.dtype, arrays, arrays + 8 * ndim, byte_offset
        )
        if versioned:
            image = VERSIONED_FIELDS.pack(*VERSION, context, deleter, self.flags) + tensor
        else:
            image = tensor + struct.pack("=QQ", context, deleter)
        strides = _canonical_strides(self.shape, self.strides)
        image += struct.pack(f"={2 * ndim}q", *self.shape, *strides)
        ctypes.memmove(address, image, len(image))
