"""Data type functions of the array API standard 2025.12."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ...array import Array
    from .types import Device, DType, Kind

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]


class FInfo(Protocol):
    """The limits of a floating-point data type, as Python scalars; of a complex one its parts'."""

    @property
    def bits(self) -> int:
        """Bits of one element, or of one component of a complex one."""
        ...

    @property
    def eps(self) -> float:
        """The distance from 1.0 to the next larger value."""
        ...

    @property
    def max(self) -> float:
        """The largest finite value."""
        ...

    @property
    def min(self) -> float:
        """The smallest finite value: the most negative one."""
        ...

    @property
    def smallest_normal(self) -> float:
        """The smallest positive value with full precision."""
        ...

    @property
    def dtype(self) -> DType:
        """The real floating-point data type."""
        ...


class IInfo(Protocol):
    """The limits of an integer data type."""

    @property
    def bits(self) -> int:
        """Bits of one element."""
        ...

    @property
    def max(self) -> int:
        """The largest value."""
        ...

    @property
    def min(self) -> int:
        """The smallest value."""
        ...

    @property
    def dtype(self) -> DType:
        """The integer data type."""
        ...


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
    ...


def can_cast(from_: Array | DType, to: DType, /) -> bool:
    """Whether type promotion leads from one data type to the other.

    Parameters
    ----------
    from_
        Of an array, what its device supports counts; of a data type, the standard's whole table.
    """
    ...


def finfo(type: Array | DType, /) -> FInfo:
    """Return the limits of a floating-point data type, or of an array's."""
    ...


def iinfo(type: Array | DType, /) -> IInfo:
    """Return the limits of an integer data type, or of an array's."""
    ...


def isdtype(dtype: DType, kind: DType | Kind | tuple[DType | Kind, ...]) -> bool:
    """Whether a data type is of a kind.

    Parameters
    ----------
    kind
        A kind's name, a data type (equality is tested), or a tuple of those, of which one must fit.
    """
    ...


def result_type(*arrays_and_dtypes: Array | complex | DType) -> DType:
    """Return the data type that type promotion gives for the arguments together.

    Parameters
    ----------
    *arrays_and_dtypes
        At least one array or data type; Python scalars take the type of the others if their kind
        is not the higher one. What data types of several kinds give is the library's choice.
    """
    ...
