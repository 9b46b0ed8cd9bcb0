"""Data type functions of the array API standard 2025.12: dtypes, constants and inspection."""
# pyright: reportReturnType=false

from __future__ import annotations

from math import e, inf, nan, pi
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypedDict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...array import Array
    from ...dlpack import Device as DLPackDevice

__all__ = [
    "__array_namespace_info__", "astype", "can_cast", "e", "finfo", "iinfo", "inf", "isdtype",
    "nan", "newaxis", "pi", "result_type",
]  # fmt: skip

# The constants are Python scalars, the same for every library.

newaxis = None
"""An index that inserts an axis of extent 1."""

# The aliases that the templates' annotations use; ``Array`` is :class:`arraybridge.Array`.

# A library's own dtype object (``numpy.dtype``, ``torch.dtype``, ...): they share no base class. As
# a default, None: the function chooses; so also for devices.
DType: TypeAlias = Any

# What a ``device=`` takes: an `arraybridge.Device`, its string, or the library's own device.
Device: TypeAlias = "DLPackDevice | str | object"

# What `asarray` takes: an array, a Python scalar, nested sequences of those, or a buffer.
ArrayLike: TypeAlias = object

Shape: TypeAlias = tuple[int, ...]
# The lengths of Fourier transforms along several axes, or the axes.
Sizes: TypeAlias = "Sequence[int] | None"
Axes: TypeAlias = "int | tuple[int, ...]"

# A kind of data types, as `isdtype` and the inspection's ``dtypes`` name it.
Kind: TypeAlias = Literal[
    "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating",
    "numeric",
]  # fmt: skip

# Which discrete Fourier transforms are scaled: the inverse ones by 1/n ("backward"), both by
# 1/sqrt(n) ("ortho"), or the forward ones by 1/n ("forward").
Norm: TypeAlias = Literal["backward", "ortho", "forward"]

_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_REAL = ("float32", "float64")
_COMPLEX = ("complex64", "complex128")

DATA_TYPES: tuple[str, ...] = ("bool", *_SIGNED, *_UNSIGNED, *_REAL, *_COMPLEX)
"""Every data type that the standard names; a library, or a device, may lack some."""

KINDS: dict[Kind, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": (*_SIGNED, *_UNSIGNED),
    "real floating": _REAL,
    "complex floating": _COMPLEX,
    "numeric": (*_SIGNED, *_UNSIGNED, *_REAL, *_COMPLEX),
}
"""What each kind comprises; a library may count data types of its own among them."""


class FInfo(Protocol):
    """The limits of a floating-point dtype, or of the parts of a complex one, as Python scalars."""

    bits: int  # of an element, or of one part of a complex one
    eps: float  # the distance from 1.0 to the next larger value
    max: float  # the largest finite value
    min: float  # the smallest (most negative) finite value
    smallest_normal: float  # the smallest positive value with full precision
    dtype: DType  # the real floating-point data type


class IInfo(Protocol):
    """The limits of an integer data type, as Python scalars."""

    bits: int
    max: int
    min: int
    dtype: DType


def astype(x: Array, dtype: DType, /, *, copy: bool = True, device: Device = None) -> Array:
    """Cast an array to a dtype, by any cast.

    To cast complex to real numbers, take ``real`` or ``imag`` first. The integers for NaN and
    infinities are up to the library. ``copy=False`` returns ``x`` itself if it already has this
    dtype and device, by default its own.
    """


def can_cast(from_: Array | DType, to: DType, /) -> bool:
    """Return whether promotion leads from a dtype, or an array's on its device, to the other."""


def finfo(type: Array | DType, /) -> FInfo:
    """Return the limits of a floating-point dtype, or of the dtype of an array."""


def iinfo(type: Array | DType, /) -> IInfo:
    """Return the limits of an integer dtype, or of the dtype of an array."""


def isdtype(dtype: DType, kind: DType | Kind | tuple[DType | Kind, ...]) -> bool:
    """Return whether a dtype belongs to a kind.

    ``kind``: the name of a kind, a dtype that must be equal, or a tuple of these, one of which must
    match.
    """


def result_type(*arrays_and_dtypes: Array | complex | DType) -> DType:
    """Return the dtype that type promotion gives for the arguments together.

    ``*arrays_and_dtypes``: at least one array or dtype. Python scalars take the dtype of the others
    unless their kind is higher. The result for dtypes of several kinds is up to the library.
    """


Capabilities = TypedDict(
    "Capabilities",
    {"boolean indexing": bool, "data-dependent shapes": bool, "max dimensions": "int | None"},
)

DefaultDataTypes: TypeAlias = dict[
    Literal["real floating", "complex floating", "integral", "indexing"], DType
]


class NamespaceInfo(Protocol):
    """The properties of a namespace. Devices are :class:`arraybridge.Device` objects.

    ``device=None`` is the current device.
    """

    def capabilities(self) -> Capabilities:
        """Return support for boolean indexing and data-dependent shapes, and the most axes."""

    def default_device(self) -> DLPackDevice | None:
        """Return the device of new arrays by default; None if it is not known in advance."""

    def default_dtypes(self, *, device: Device = None) -> DefaultDataTypes:
        """Return the default dtype of each kind on a device."""

    def devices(self) -> tuple[DLPackDevice, ...]:
        """Return the available devices, each of which ``device=`` accepts."""

    def dtypes(
        self, *, device: Device = None, kind: Kind | tuple[Kind, ...] | None = None
    ) -> dict[str, DType]:
        """Return the standard's dtypes of some kinds (None: of all) that a device supports."""


def __array_namespace_info__() -> NamespaceInfo:
    """Return the devices, dtypes and capabilities of the namespace."""
