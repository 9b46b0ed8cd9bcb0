"""Check every field of a ``DLTensor`` before it is used.

Nothing here reads the tensor's data or follows a pointer: the values have already been read. A
wrong address other than NULL cannot be detected.
"""

import ctypes
from functools import lru_cache
from math import prod
from operator import index
from typing import Any

from ..layout import MAX_NDIM, c_strides, span
from .errors import MalformedTensorError, UnsupportedVersionError
from .header import VERSION
from .types import (
    ADDRESSABLE,
    KNOWN_DEVICE_CODES,
    KNOWN_DEVICES,
    KNOWN_DTYPES,
    LEGAL_BITS,
    DataType,
    Device,
    DeviceType,
)

_MAX_BYTES = 2**63 - 1
_MAX_ADDRESS = 2**64 - 1
_MAX_ID = 2**31 - 1
_PAGE = 4096  # never mapped: a smaller address is a stray number


def check_version(version: tuple[int, int]) -> None:
    """Raise UnsupportedVersionError for another major version: only its deleter may be used."""
    if version[0] != VERSION[0]:
        raise UnsupportedVersionError(
            f"the tensor has DLPack version {version[0]}.{version[1]}; arraybridge reads version "
            f"{VERSION[0]}.x: pass max_version={VERSION} to __dlpack__"
        )


def struct_address(address: object, what: str) -> int:
    """Check a struct's address; MalformedTensorError for NULL, a stray or a misaligned one."""
    place = pointer(address, what)
    if not place:
        raise MalformedTensorError(f"{what} is NULL")
    if not _PAGE <= place <= _MAX_ADDRESS or place % 8:
        raise MalformedTensorError(
            f"{what} is {place}; expected an address: a multiple of 8, from {_PAGE} to 2**64 - 1"
        )
    return place


def pointer(address: Any, what: str) -> int:
    """Convert an address, an integer or a ``ctypes.c_void_p``, to an int."""
    if isinstance(address, ctypes.c_void_p):
        return address.value or 0
    try:
        if not isinstance(address, bool):
            return index(address)
    except TypeError:
        pass
    raise TypeError(
        f"{what} must be an address (int or ctypes.c_void_p), got {type(address).__name__}: pass "
        "ctypes.addressof(...) of an object of ctypes, or call from_dlpack for an array"
    )


def integer(value: Any, wanted: str, where: str = "") -> int:
    """Convert to an int; TypeError, with `wanted` and `where`, for floats and booleans, too."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{wanted}, got {value!r}{where}")
    return index(value)


def integers(values: Any, what: str) -> tuple[int, ...]:
    """Convert a shape or strides to a tuple of ints; a single integer counts as one axis."""
    wanted = f"{what} must be a tuple of ints"
    if hasattr(values, "__index__") and not hasattr(values, "__len__"):
        values = (values,)
    try:
        found = tuple(values)
    except TypeError:
        raise TypeError(f"{wanted}, got {values!r}") from None
    if {int}.issuperset(map(type, found)):
        return found
    return tuple(integer(value, wanted, f" in {values!r}") for value in found)


def checked_dtype(code: int, bits: int, lanes: int) -> DataType:
    """Return the data type of a ``DLDataType``; a later code passes, as a number."""
    known = KNOWN_DTYPES.get((code, bits, lanes))
    if known is not None:
        return known
    if not 1 <= lanes <= 0xFFFF:
        raise MalformedTensorError(
            f"dtype (code {code}, bits {bits}) has lanes={lanes}; expected 1 for a scalar type, at "
            "most 65535"
        )
    if not 0 <= code <= 0xFF:
        raise MalformedTensorError(f"dtype code is {code}; expected 0 to 255")
    legal = LEGAL_BITS.get(code)
    if legal is None:  # of a later minor version, or reserved before a release
        if not 1 <= bits <= 0xFF:
            raise MalformedTensorError(f"dtype code {code} has {bits} bits; expected 1 to 255")
    elif bits not in legal:
        raise MalformedTensorError(
            f"dtype code {code} has {bits} bits; expected one of {', '.join(map(str, legal))}"
        )
    return DataType(code, bits, lanes)


def checked_device(code: int, index: int) -> Device:
    """Return the device of a ``DLDevice``; a later code passes, as a number."""
    known = KNOWN_DEVICES.get((code, index))
    if known is not None:
        return known
    if code not in KNOWN_DEVICE_CODES and not max(KNOWN_DEVICE_CODES) < code <= _MAX_ID:
        raise MalformedTensorError(
            f"unknown device type {code}: dlpack.h has "
            + ", ".join(f"{int(known)} ({known.name})" for known in KNOWN_DEVICE_CODES.values())
        )
    if not 0 <= index <= _MAX_ID:
        raise MalformedTensorError(f"device id is {index}; expected 0 to {_MAX_ID}")
    return Device(code, index)


def check_ndim(ndim: int, shape: int) -> None:
    """Check ``ndim``, and that the address ``shape`` is not NULL, before the shape is read."""
    if not 0 <= ndim <= MAX_NDIM:
        raise MalformedTensorError(f"ndim is {ndim}; expected 0 to {MAX_NDIM}")
    if ndim and not shape:
        raise MalformedTensorError(f"shape is NULL although ndim is {ndim}")


@lru_cache(maxsize=1024)
def extent(
    shape: tuple[int, ...], strides: tuple[int, ...] | None, dtype: DataType
) -> tuple[tuple[int, ...], int, int]:
    """Return (strides, first byte, end byte) of a layout, relative to element 0; cached.

    Strides are in elements; None is C order. MalformedTensorError for negative extents, and for
    sizes or strides that overflow 63 bits of elements or bytes.
    """
    if shape and min(shape) < 0:
        raise MalformedTensorError(f"shape {shape} has a negative extent; expected 0 or more")
    width = max(dtype.bits * dtype.lanes, 8)  # in bits, so that packed elements can be counted
    if prod(extent or 1 for extent in shape) * width > _MAX_BYTES * 8:
        raise MalformedTensorError(
            f"shape {shape} of {dtype} overflows; expected less than 2**63 elements and bytes"
        )
    if strides is None:
        strides = c_strides(shape)
    elif len(strides) != len(shape):
        raise MalformedTensorError(
            f"got {len(strides)} strides for {len(shape)} {'axis' if len(shape) == 1 else 'axes'}; "
            "expected one stride per axis"
        )
    first, end = span(shape, strides, 1)
    if (end - first) * width > _MAX_BYTES * 8:
        raise MalformedTensorError(
            f"strides {strides} over shape {shape} of {dtype} overflow; expected a span of less "
            "than 2**63 elements and bytes"
        )
    width = dtype.bits * dtype.lanes
    return strides, first * width // 8, -(-end * width // 8)


def check_address(data: int, byte_offset: int, first: int, end: int, device: Device) -> None:
    """Check that memory from byte `first` to byte `end` of element 0 can exist.

    MalformedTensorError for a NULL pointer with elements, and for addresses that wrap around.
    """
    if not data and first != end:
        raise MalformedTensorError(
            f"data is NULL although the tensor has elements; expected an address on {device}"
        )
    if not (0 <= byte_offset <= _MAX_BYTES and 0 <= data <= _MAX_ADDRESS):
        raise MalformedTensorError(
            f"data {data:#x} + byte_offset {byte_offset}; expected 64 bits, and less than 2**63"
        )
    start = data + byte_offset
    if (start + first < 0 or start + end > _MAX_ADDRESS) and device[0] in ADDRESSABLE:
        raise MalformedTensorError(
            f"data {data:#x} + byte_offset {byte_offset}, with elements in bytes {first} to {end} "
            "from there, leaves the 64-bit address space"
        )


def check_stream(stream: Any, device: Device) -> None:
    """Check the ``stream`` argument of ``__dlpack__``, by the standard's numbering, for a device.

    TypeError if it is not None or an integer, which booleans are not; ValueError if the device has
    no such stream.

    Examples
    --------
    >>> from arraybridge import dlpack
    >>> dlpack.check_stream(2, dlpack.Device("cuda"))
    >>> dlpack.check_stream(0, dlpack.Device("cuda"))
    Traceback (most recent call last):
        ...
    ValueError: stream 0 is ambiguous on CUDA: pass 1 (legacy default) or 2 (per-thread
        default)
    """
    if stream is None:
        return
    if not isinstance(stream, int) or isinstance(stream, bool) or stream < -1:
        kind = ValueError if isinstance(stream, int) and stream < -1 else TypeError
        raise kind(f"stream is {stream!r}; expected None, -1, or a stream's number or handle")
    if device.type == DeviceType.CPU and stream != -1:
        raise ValueError(f"stream is {stream}; the CPU has no streams: pass None")
    if device.type in (DeviceType.CUDA, DeviceType.CUDA_MANAGED) and stream == 0:
        raise ValueError(
            "stream 0 is ambiguous on CUDA: pass 1 (legacy default) or 2 (per-thread default)"
        )


def reads_versioned(max_version: Any) -> bool:
    """Whether a consumer reads versioned capsules; TypeError for an invalid `max_version`."""
    if max_version is None:
        return False
    try:
        return bool(max_version[0] >= 1)
    except (TypeError, LookupError):
        raise TypeError(
            f"max_version is {max_version!r}; expected None or a pair of integers, such as (1, 3)"
        ) from None


def buffer_of(owner: object) -> memoryview | None:
    """Return the buffer that an object exports, during which it cannot be resized, or None."""
    try:
        return memoryview(owner)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError, BufferError):  # no buffer, or an unsupported format
        return None
