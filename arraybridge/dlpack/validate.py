"""Every field of a ``DLTensor`` is checked before it is used.

Nothing here reads the tensor's data, or follows a pointer: the values have been read already. An address
that is not NULL and still wrong cannot be told from a right one.
"""

from __future__ import annotations

from math import prod

from .device import ADDRESSABLE, KNOWN_DEVICE_CODES
from .dtypes import LEGAL_BITS, DataType
from .errors import MalformedTensorError, UnsupportedVersionError
from .header import VERSION

MAX_NDIM = 64  # NumPy's limit, the largest of any library
_MAX_BYTES = 2**63 - 1
_MAX_ADDRESS = 2**64 - 1


def check_version(version: tuple[int, int] | None) -> None:
    """Check the version of a versioned struct; None stands for a legacy one.

    Raises
    ------
    UnsupportedVersionError
        For another major version: the layout behind ``flags`` is unknown, only the deleter may be called.
    """
    if version is not None and version[0] != VERSION[0]:
        raise UnsupportedVersionError(
            f"the tensor has DLPack version {version[0]}.{version[1]}; arraybridge reads version "
            f"{VERSION[0]}.x: pass max_version={VERSION} to __dlpack__"
        )


def check_dtype(code: int, bits: int, lanes: int, minor: int = VERSION[1]) -> None:
    """Check a ``DLDataType``; a code that a minor version after 1.3 may have added is let through.

    Raises
    ------
    MalformedTensorError
    """
    if lanes < 1:
        raise MalformedTensorError(
            f"dtype (code {code}, bits {bits}) has lanes={lanes}; a scalar type has 1 lane"
        )
    legal = LEGAL_BITS.get(code)
    if legal is None:
        if minor <= VERSION[1]:
            raise MalformedTensorError(
                f"unknown dtype code {code}: dlpack.h 1.{VERSION[1]} has the codes 0 to "
                f"{max(LEGAL_BITS)}"
            )
        legal = (bits,) if bits else (8,)
    if bits not in legal:
        raise MalformedTensorError(
            f"dtype code {code} has {bits} bits; expected one of {', '.join(map(str, legal))}"
        )


def check_device(code: int, index: int, minor: int = VERSION[1]) -> None:
    """Check a ``DLDevice``; a code that a minor version after 1.3 may have added is let through.

    Raises
    ------
    MalformedTensorError
    """
    newest = max(KNOWN_DEVICE_CODES)
    if code not in KNOWN_DEVICE_CODES and not (code > newest and minor > VERSION[1]):
        raise MalformedTensorError(
            f"unknown device type {code}: dlpack.h 1.{VERSION[1]} has "
            + ", ".join(f"{int(known)} ({known.name})" for known in KNOWN_DEVICE_CODES.values())
        )
    if index < 0:
        raise MalformedTensorError(f"device id {index} is negative")


def check_ndim(ndim: int, shape: int) -> None:
    """Check ``ndim`` and that ``shape`` (an address) is there before it is read."""
    if not 0 <= ndim <= MAX_NDIM:
        raise MalformedTensorError(f"ndim is {ndim}; expected 0 to {MAX_NDIM}")
    if ndim and not shape:
        raise MalformedTensorError(f"shape is NULL although ndim is {ndim}")


def check_extent(
    data: int,
    byte_offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: DataType,
    device_type: int,
) -> None:
    """Check that shape, strides (in elements) and offset describe memory that can exist.

    Raises
    ------
    MalformedTensorError
        For negative extents, sizes or strides that overflow 63 bits of bytes, a NULL pointer under
        elements, and addresses that wrap around.
    """
    if shape and min(shape) < 0:
        raise MalformedTensorError(f"shape {shape} has a negative extent")
    width = dtype.bits * dtype.lanes
    if prod(extent or 1 for extent in shape) * width > _MAX_BYTES * 8:
        raise MalformedTensorError(f"shape {shape} of {dtype} overflows 2**63 bytes")
    if 0 in shape:
        return
    if not data:
        raise MalformedTensorError(f"data is NULL although shape {shape} has elements")
    low = high = 0
    for extent, stride in zip(shape, strides, strict=True):
        reach = (extent - 1) * stride
        if reach < 0:
            low += reach
        else:
            high += reach
    low, high = low * width // 8, (high + 1) * width // 8
    if high - low > _MAX_BYTES or byte_offset > _MAX_BYTES:
        raise MalformedTensorError(
            f"strides {strides} over shape {shape} of {dtype} (byte_offset {byte_offset}) "
            "overflow 2**63 bytes"
        )
    if device_type in ADDRESSABLE:
        start = data + byte_offset
        if start + low < 0 or start + high > _MAX_ADDRESS:
            raise MalformedTensorError(
                f"data {data:#x} + byte_offset {byte_offset} with strides {strides} over shape "
                f"{shape} leaves the 64-bit address space"
            )
