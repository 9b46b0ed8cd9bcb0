"""Data type functions of the array API standard 2025.12; data types, constants and inspection."""
# pyright: reportReturnType=false

from __future__ import annotations

from math import e, inf, nan, pi
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypedDict

if TYPE_CHECKING:
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

# A library's own dtype object (``numpy.dtype``, ``torch.dtype``, ...): they share no base class.
DType: TypeAlias = Any

# What a ``device=`` takes: an `arraybridge.Device`, its string, or the library's own device.
Device: TypeAlias = "DLPackDevice | str | object"

# What `asarray` takes: an array, a Python scalar, nested sequences of those, or a buffer.
ArrayLike: TypeAlias = object

Shape: TypeAlias = tuple[int, ...]
Axes: TypeAlias = "int | tuple[int, ...]"

# A kind of data types, as `isdtype` and the inspection's ``dtypes`` name it.
Kind: TypeAlias = Literal[
    "bool",
    "signed integer",
    "unsigned integer",
    "integral",
    "real floating",
    "complex floating",
    "numeric",
]

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
    """The limits of a floating-point data type, as Python scalars; of a complex one its parts'."""

    @property
    def bits(self) -> int:
        """Bits of one element, or of one component of a complex one."""

    @property
    def eps(self) -> float:
        """The distance from 1.0 to the next larger value."""

    @property
    def max(self) -> float:
        """The largest finite value."""

    @property
    def min(self) -> float:
        """The smallest finite value: the most negative one."""

    @property
    def smallest_normal(self) -> float:
        """The smallest positive value with full precision."""

    @property
    def dtype(self) -> DType:
        """The real floating-point data type."""


class IInfo(Protocol):
    """The limits of an integer data type."""

    @property
    def bits(self) -> int:
        """Bits of one element."""

    @property
    def max(self) -> int:
        """The largest value."""

    @property
    def min(self) -> int:
        """The smallest value."""

    @property
    def dtype(self) -> DType:
        """The integer data type."""


def astype(x: Array, dtype: DType, /, *, copy: bool = True, device: Device | None = None) -> Array:
    """Cast to a data type, whatever type promotion would say.

    From complex to real is no cast: take ``real`` or ``imag`` first. What NaN and the infinities
    become as integers is the library's choice.

    Parameters
    ----------
    copy
        False: ``x`` itself, if it has that data type (and is on that device) already.
    device
        None: where ``x`` is.
    """


def can_cast(from_: Array | DType, to: DType, /) -> bool:
    """Whether type promotion leads from one data type to the other.

    Parameters
    ----------
    from_
        Of an array, what its device supports counts; of a data type, the standard's whole table.
    """


def finfo(type: Array | DType, /) -> FInfo:
    """Return the limits of a floating-point data type, or of an array's."""


def iinfo(type: Array | DType, /) -> IInfo:
    """Return the limits of an integer data type, or of an array's."""


def isdtype(dtype: DType, kind: DType | Kind | tuple[DType | Kind, ...]) -> bool:
    """Whether a data type is of a kind.

    Parameters
    ----------
    kind
        A kind's name, a data type (equality is tested), or a tuple of those, of which one must fit.
    """


def result_type(*arrays_and_dtypes: Array | complex | DType) -> DType:
    """Return the data type that type promotion gives for the arguments together.

    Parameters
    ----------
    *arrays_and_dtypes
        At least one array or data type; Python scalars take the type of the others if their kind
        is not the higher one. What data types of several kinds give is the library's choice.
    """


Capabilities = TypedDict(
    "Capabilities",
    {"boolean indexing": bool, "data-dependent shapes": bool, "max dimensions": "int | None"},
)

DefaultDataTypes = TypedDict(
    "DefaultDataTypes",
    {
        "real floating": "DType",
        "complex floating": "DType",
        "integral": "DType",
        "indexing": "DType",
    },
)


class NamespaceInfo(Protocol):
    """What a namespace says of itself. Devices are given as :class:`arraybridge.Device`."""

    def capabilities(self) -> Capabilities:
        """Whether boolean indexing and data-dependent shapes work, and the most axes (or None)."""

    def default_device(self) -> DLPackDevice | None:
        """Where an array is created if no device is given; None where that cannot be foretold."""

    def default_dtypes(self, *, device: Device | None = None) -> DefaultDataTypes:
        """The data types that a kind stands for where none is given, on a device.

        Parameters
        ----------
        device
            None: the current device.
        """

    def devices(self) -> tuple[DLPackDevice, ...]:
        """The devices available now, each one good for ``device=``."""

    def dtypes(
        self, *, device: Device | None = None, kind: Kind | tuple[Kind, ...] | None = None
    ) -> dict[str, DType]:
        """The standard's data types that a device supports, by their standard names.

        Parameters
        ----------
        device
            None: the current device.
        kind
            Only data types of this kind, or of any of these kinds. None: all of them.
        """


def __array_namespace_info__() -> NamespaceInfo:
    """Return what the namespace says of itself: devices, data types, capabilities."""
