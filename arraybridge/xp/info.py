"""``__array_namespace_info__`` of Arrays, with devices as Device objects.

Array API standard 2025.12, "Inspection".
"""

import warnings
from typing import Any

from ..array.library_array import LibraryArray
from ..core.records import ConversionError
from ..dlpack import Device
from .asarray import native_device


class Devices(tuple[Any, ...]):
    """The devices of a namespace: a tuple, as in 2025.12.

    It was a list before, and SciPy 1.17 still adds a list to it.
    """

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return [*self, *other] if isinstance(other, list) else super().__add__(other)

    def __radd__(self, other: Any) -> Any:
        return [*other, *self] if isinstance(other, list) else NotImplemented


class Info:
    """The capabilities and defaults of a namespace of Arrays."""

    def __init__(self, cls: type[LibraryArray], native: Any) -> None:
        self._cls = cls
        self._native = native
        self._info = native.__array_namespace_info__()

    def _ours(self, device: Any) -> Device | None:
        """Convert a device of the library to a Device; None if it has no memory ("meta")."""
        try:
            return self._cls._home.describe(self._cls._probe(self._native, device)).device
        except (ConversionError, RuntimeError, NotImplementedError, TypeError, ValueError):
            return None

    def capabilities(self) -> dict[str, Any]:
        """Return whether boolean indexing and data-dependent shapes work, and the maximal rank."""
        return dict(self._info.capabilities())

    def default_device(self) -> Device:
        """Return the device of arrays made without ``device=``."""
        device: Device = self._cls._of(self._cls._probe(self._native, None)).device
        return device

    def devices(self) -> Devices:
        """Return every device that can hold arrays."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of names that PyTorch deprecates
            found = [self._ours(device) for device in self._info.devices()]
        return Devices(dict.fromkeys(device for device in found if device is not None))

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """Return the default dtypes by kind ("real floating", "integral", "indexing", ...)."""
        return dict(self._info.default_dtypes(device=native_device(self._cls, device)))

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """Return the standard's dtypes on a device, by name."""
        return dict(self._info.dtypes(device=native_device(self._cls, device), kind=kind))
