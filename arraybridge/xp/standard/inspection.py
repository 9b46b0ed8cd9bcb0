"""Inspection, array API standard 2025.12: what ``__array_namespace_info__()`` returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypedDict

if TYPE_CHECKING:
    from ...dlpack import Device as DLPackDevice
    from .types import Device, DType, Kind

__all__ = ["__array_namespace_info__"]

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
        ...

    def default_device(self) -> DLPackDevice | None:
        """Where an array is created if no device is given; None where that cannot be foretold."""
        ...

    def default_dtypes(self, *, device: Device | None = None) -> DefaultDataTypes:
        """The data types that a kind stands for where none is given, on a device.

        Parameters
        ----------
        device
            None: the current device.
        """
        ...

    def devices(self) -> tuple[DLPackDevice, ...]:
        """The devices available now, each one good for ``device=``."""
        ...

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
        ...


def __array_namespace_info__() -> NamespaceInfo:
    """Return what the namespace says of itself: devices, data types, capabilities."""
    ...
