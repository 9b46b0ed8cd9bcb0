"""``ManagedTensor``: a tensor that owns its memory and can export it."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_void_p
from functools import lru_cache
from math import prod
from typing import Any

from ..layout import relaxed
from ..native import pyapi
from ..native.blocks import new_block
from ..native.deleters import export, owner_of, release
from ..native.pyapi import CapsuleType
from . import header, validate
from .errors import DLPackError
from .tensor import Tensor
from .types import CPU, DataType, Device


@lru_cache(1024)
def _dense(shape: tuple[int, ...], dtype: DataType, padded: bool) -> tuple[tuple[int, ...], int]:
    """Return the strides of a dense tensor, and the bytes of its elements."""
    strides, _, _ = validate.extent(shape, None, dtype)
    return strides, dtype.nbytes(prod(shape), padded)


class ManagedTensor(Tensor):
    """An owning tensor: its memory lives as long as the tensor and all that is exported from it.

    Make one with :meth:`adopt`, :meth:`allocate`, :meth:`from_struct` or
    :func:`arraybridge.dlpack.acquire`.

    Attributes
    ----------
    owner : object
        The object that keeps the memory alive.

    Examples
    --------
    >>> from arraybridge import dlpack
    >>> import numpy as np
    >>> tensor = dlpack.ManagedTensor.allocate((2, 3), dlpack.DataType("float32"))
    >>> tensor.pointer % dlpack.ALIGNMENT, tensor.copied
    (0, True)
    >>> np.from_dlpack(tensor).ctypes.data == tensor.pointer
    True
    """

    __slots__ = "fresh", "owner"
    owner: Any  # whatever keeps the memory alive
    fresh: bool  # of `allocate`: whether the memory has no pages yet

    def __init__(self) -> None:
        raise TypeError("use ManagedTensor.adopt, .allocate, .from_struct or dlpack.acquire")

    @classmethod
    def adopt(
        cls,
        data: int | c_void_p,
        shape: int | Sequence[int],
        dtype: DataType,
        *,
        owner: object,
        device: Device = CPU,
        strides: int | Sequence[int] | None = None,
        byte_offset: int = 0,
        readonly: bool = False,
        copied: bool = False,
        padded: bool = False,
    ) -> ManagedTensor:
        """Make a tensor on memory that ``owner`` keeps alive; strides are in elements.

        It is read-only if ``readonly`` is True or the owner exports a read-only buffer.
        MalformedTensorError if shape, strides and offset describe memory that cannot exist;
        TypeError if a number is not an integer.

        Examples
        --------
        >>> import ctypes
        >>> from arraybridge import dlpack
        >>> memory = bytearray(24)
        >>> address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        >>> dlpack.ManagedTensor.adopt(address, (2, 3), dlpack.DataType("int32"), owner=memory)
        <ManagedTensor int32 (2, 3) on cpu>
        """
        self = cls.__new__(cls)
        if type(data) is not int:
            data = validate.pointer(data, "ptr")
        if type(byte_offset) is not int:
            byte_offset = validate.integer(byte_offset, "byte_offset is an int")
        shape = validate.integers(shape, "shape")
        if strides is not None:
            strides = validate.integers(strides, "strides")
        validate.check_ndim(len(shape), 1)
        try:
            dtype, device = validate.checked_dtype(*dtype), validate.checked_device(*device)
        except TypeError:
            raise TypeError(f"expected DataType and Device, got {dtype!r}, {device!r}") from None
        self._set(data, byte_offset, shape, strides, dtype, device, 0)
        buffer = validate.buffer_of(owner) if device.host and owner is not None else None
        self.readonly = bool(readonly) or (buffer is not None and buffer.readonly)
        self.copied, self.padded = copied, padded
        self.owner = owner
        return self

    @classmethod
    def trusted(
        cls,
        data: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: DataType,
        device: Device,
        readonly: bool,
        padded: bool,
        owner: object,
    ) -> ManagedTensor:
        """Make a tensor as :meth:`adopt` does, with few checks, from an array library's own array.

        MalformedTensorError if the pointer is NULL although there are elements.
        """
        if not data and 0 not in shape:
            validate.check_address(data, 0, 0, 1, device)
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
        """Allocate a C-contiguous tensor on the CPU, aligned to 64 bytes and flagged as a copy.

        Raises
        ------
        MemoryError
            If there is not enough memory.
        MalformedTensorError
            If the shape is invalid.
        """
        strides, nbytes = _dense(shape, dtype, padded)
        try:
            owner, data, fresh = new_block(nbytes)
        except MemoryError as error:
            raise MemoryError(f"{error} for a tensor of shape {shape} and dtype {dtype}") from None
        self = cls.trusted(data, shape, strides, dtype, CPU, False, padded, owner)
        self.copied, self.fresh = True, fresh
        return self

    @classmethod
    def from_struct(cls, address: int, versioned: bool) -> ManagedTensor:
        """Take ownership of a ``DLManagedTensor`` or ``DLManagedTensorVersioned``.

        The struct's deleter runs exactly once: now if the struct is refused, else when the last
        reference is gone. Memory of a legacy struct, which has no read-only flag, counts as
        read-only, as in NumPy. UnsupportedVersionError if the major version is not 1: fields after
        the deleter are not read. MalformedTensorError if a field contradicts ``dlpack.h``, or the
        address is invalid.

        Examples
        --------
        >>> from arraybridge import dlpack
        >>> tensor = dlpack.ManagedTensor.allocate((2, 3), dlpack.DataType("float32"))
        >>> address = tensor.to_struct()
        >>> dlpack.ManagedTensor.from_struct(address, versioned=True)
        <ManagedTensor float32 (2, 3) on cpu>
        """
        if not 4096 <= address < 2**64 or address & 7:  # quick: every import passes here
            validate.struct_address(address, "the DLManagedTensor pointer")
        return read_struct(address, owner_of(address, versioned), versioned)

    def __dlpack_device__(self) -> tuple[int, int]:
        return int(self.device.type), self.device.id

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """Return a capsule that shares the memory, as the standard says; never copy.

        ``DLPackError``, a BufferError, if the export needs a copy: ``copy=True``, another
        ``dl_device``, or read-only memory without ``max_version``, because a legacy capsule has no
        read-only flag. To copy, export an :class:`arraybridge.Array`.

        Examples
        --------
        >>> from arraybridge import dlpack
        >>> tensor = dlpack.ManagedTensor.allocate((3,), dlpack.DataType("float32"))
        >>> tensor.__dlpack__(max_version=(1, 3))
        <capsule object "dltensor_versioned" at ...>
        """
        validate.check_stream(stream, self.device)
        versioned = validate.reads_versioned(max_version)
        if copy:
            problem = "copy=True requests a copy"
        elif dl_device is not None and tuple(dl_device) != self.device:
            problem = f"a transfer from {self.device} to {tuple(dl_device)} requires a copy"
        elif self.padded and not versioned:
            problem = "a legacy capsule cannot mark padded elements (pass max_version=(1, 0))"
        elif self.readonly and not versioned:
            problem = "a legacy capsule cannot mark read-only memory (pass max_version=(1, 0))"
        else:
            return self._capsule(versioned)
        raise DLPackError(
            f"a bare tensor exports its memory without a copy, and {problem}: pass "
            "arraybridge.from_dlpack(tensor), which copies if necessary"
        )

    def to_struct(self, versioned: bool = True) -> int:
        """Return the address of a new struct that keeps this tensor's owner alive.

        The caller owns the struct. ``byte_offset`` is added to ``data`` if the device uses
        addresses, because consumers ignore or refuse it. Strides that reach no element are replaced
        by those of a dense array. MemoryError if there is not enough memory.

        Examples
        --------
        >>> import ctypes
        >>> from arraybridge import dlpack
        >>> tensor = dlpack.ManagedTensor.allocate((2, 3), dlpack.DataType("float32"))
        >>> address = tensor.to_struct()                # for a C function, which calls the deleter
        >>> struct = dlpack.DLManagedTensorVersioned.from_address(address)
        >>> struct.dl_tensor.data == tensor.pointer
        True
        >>> ctypes.CFUNCTYPE(None, ctypes.c_void_p)(struct.deleter)(address)
        """
        return pyapi.claim(self._capsule(versioned), bool(versioned))

    def _capsule(self, versioned: bool = True) -> CapsuleType:
        shape, device, byte_offset = self.shape, self.device, self.byte_offset
        data, ndim = self.data, len(shape)
        if byte_offset and device.addressable:
            data, byte_offset = data + byte_offset, 0
        # A struct with codes of a later minor version keeps that version.
        version = self.version
        if version is None or version < header.VERSION:
            version = header.VERSION
        capsule, address, context, deleter, axes = export(
            self.owner, (*shape, *relaxed(shape, self.strides)), versioned
        )
        tensor = data, *device, ndim, *self.dtype, axes, axes + 8 * ndim, byte_offset
        if versioned:
            image = header.VERSIONED_FIELDS.pack(*version, context, deleter, self.flags, *tensor)
            header.VERSIONED_BYTES.from_address(address).raw = image  # faster than pack_into
        else:
            image = header.LEGACY_FIELDS.pack(*tensor, context, deleter)
            header.LEGACY_BYTES.from_address(address).raw = image
        return capsule


def read_struct(address: int, owner: object, versioned: bool) -> ManagedTensor:
    """Return the tensor of a producer's struct; `owner` runs its deleter."""
    try:
        if not 4096 <= address < 2**64 or address & 7:
            validate.struct_address(address, "the DLManagedTensor pointer")
        self = ManagedTensor.__new__(ManagedTensor)
        self.owner = owner
        self._read_managed(address, versioned)
    except BaseException:
        release(owner, versioned)  # now, not when the traceback that holds this frame is freed
        raise
    return self
