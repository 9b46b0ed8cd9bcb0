"""``Tensor``: a borrowed description of memory.

It holds plain Python values: the struct is read and checked once, and never again.
"""

from collections.abc import Sequence
from ctypes import c_void_p
from math import prod
from typing import Any

from . import header, validate
from .types import DataType, Device


class Tensor:
    """A borrowed tensor: a description of memory that other code keeps alive.

    It is made from the address of a raw ``DLTensor``, an int or a ``c_void_p``, as C libraries pass
    it. The struct is read and checked now, and may be freed afterwards: MalformedTensorError if a
    field contradicts ``dlpack.h``, or the address is invalid (NULL, misaligned).

    Attributes
    ----------
    data : int
        The pointer: an address, or an opaque handle on OpenCL, Vulkan or Metal.
    byte_offset : int
        The number of bytes from ``data`` to the first element.
    shape, strides : tuple of int
        Extents, and strides in elements.
    dtype : DataType
        The data type of the elements.
    device : Device
        The device of the memory.
    readonly, copied, padded : bool
        The flags of the versioned struct. ``padded``: each sub-byte element takes one byte.
    version : tuple of int or None
        ``(major, minor)`` of the struct; None for a legacy struct or a raw ``DLTensor``.
    legacy : bool
        True for a legacy struct, which counts as read-only; otherwise unset.
    ordered : bool
        True if CUDA's legacy default stream waits for the producer; otherwise unset.
    immutable : bool
        Whether the memory never changes, for which DLPack has no flag; unset if unknown.

    Examples
    --------
    >>> import ctypes
    >>> from arraybridge import dlpack
    >>> owner = dlpack.ManagedTensor.allocate((2, 3), dlpack.DataType("float32"))
    >>> address = owner.to_struct()                 # as a C library passes it
    >>> tensor = dlpack.Tensor(address + dlpack.DLManagedTensorVersioned.dl_tensor.offset)
    >>> tensor
    <Tensor float32 (2, 3) on cpu>
    >>> tensor.ndim, tensor.size, tensor.nbytes, tensor.flags, tensor.pointer == owner.pointer
    (2, 6, 24, 0, True)
    >>> struct = dlpack.DLManagedTensorVersioned.from_address(address)
    >>> ctypes.CFUNCTYPE(None, ctypes.c_void_p)(struct.deleter)(address)
    """

    __slots__ = (
        "anew", "byte_offset", "copied", "data", "device", "dtype", "immutable", "legacy",
        "ordered", "padded", "producer", "readonly", "shape", "strides", "version",
    )  # fmt: skip
    anew: bool  # set if an object makes the memory anew at each look
    immutable: bool  # set if a frame is
    legacy: bool  # set for a legacy struct
    ordered: bool  # set if the producer was given no stream
    producer: int | None  # its stream, set by the CUDA array interface
    version: tuple[int, int] | None

    def __init__(self, address: int | c_void_p) -> None:
        place = validate.struct_address(address, "the DLTensor pointer")
        window = header.TENSOR_BYTES.from_address(place)
        self._read(header.TENSOR_FIELDS.unpack_from(window), None, 0)

    def _read(self, fields: Sequence[Any], version: tuple[int, int] | None, flags: int) -> None:
        """Set the fields of a ``DLTensor``, checking each before its use."""
        data, device_type, device_id, ndim, code, bits, lanes, shape, strides, byte_offset = fields
        validate.check_ndim(ndim, shape)
        device = validate.checked_device(device_type, device_id)
        dtype = validate.checked_dtype(code, bits, lanes)
        window, unpack = header.int64s(ndim)
        extents = unpack(window(shape)) if ndim else ()
        # NULL strides: compact and row-major (allowed before DLPack 1.2, and still in use).
        steps = unpack(window(strides)) if ndim and strides else None
        self._set(data, byte_offset, extents, steps, dtype, device, flags)
        self.version = version

    def _set(
        self,
        data: int,
        byte_offset: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None,
        dtype: DataType,
        device: Device,
        flags: int,
    ) -> None:
        self.strides, first, end = validate.extent(shape, strides, dtype)
        validate.check_address(data, byte_offset, first, end, device)
        self.data = data
        self.byte_offset = byte_offset
        self.shape = shape
        self.dtype = dtype
        self.device = device
        self.readonly = flags & header.FLAG_READ_ONLY != 0
        self.copied = flags & header.FLAG_IS_COPIED != 0
        self.padded = flags & header.FLAG_IS_SUBBYTE_TYPE_PADDED != 0
        self.version = None

    def _read_managed(self, address: int, versioned: bool) -> None:
        """Set the fields of a ``DLManagedTensorVersioned`` or of the legacy struct."""
        if versioned:
            window: Any = header.VERSIONED_BYTES.from_address(address)
            version = header.VERSIONED_HEAD.unpack_from(window)
            validate.check_version(version)  # in another version nothing after the deleter is known
            flags, *fields = header.VERSIONED_BODY.unpack_from(window, header.FLAGS_OFFSET)
            self._read(fields, version, flags)
        else:
            window = header.LEGACY_BYTES.from_address(address)
            *fields, _, _ = header.LEGACY_FIELDS.unpack_from(window)
            self._read(fields, None, header.FLAG_READ_ONLY)
            self.legacy = True

    def __reduce__(self) -> Any:
        raise TypeError("addresses are only valid in this process: pickle or copy the arrays")

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
        """The number of bytes of the elements in a compact layout."""
        return self.dtype.nbytes(self.size, self.padded)

    @property
    def pointer(self) -> int:
        """The address of the first element, if the device uses addresses."""
        return self.data + self.byte_offset

    @property
    def flags(self) -> int:
        """The flags of a versioned struct."""
        return (
            self.readonly * header.FLAG_READ_ONLY
            | self.copied * header.FLAG_IS_COPIED
            | self.padded * header.FLAG_IS_SUBBYTE_TYPE_PADDED
        )

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.dtype} {self.shape} on {self.device}"
            f"{', read-only' if self.readonly else ''}>"
        )
