"""``__array_namespace_info__`` over Arrays: what the library's own says, devices as ours.

Array API standard 2025.12, "Inspection".
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..array.native_array import NativeArray
from ..dispatch.records import ConversionError
from ..dlpack import Device
from .entrance import native_device


class Devices(tuple[Any, ...]):
    """The devices of a namespace: a tuple, as 2025.12 has it.

    It was a list until then, and SciPy (1.17) still adds a list to it.
    """

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return [*self, *other] if isinstance(other, list) else super().__add__(other)

    def __radd__(self, other: Any) -> Any:
        return [*other, *self] if isinstance(other, list) else NotImplemented


def listing_devices(own: Callable[[], Any]) -> Callable[[], Any]:
    """A library's own ``__array_namespace_info__`` whose ``devices()`` are the standard's."""

    @functools.wraps(own, updated=())
    def info() -> Any:
        return _Listing(own())

    return info


class _Listing:
    def __init__(self, own: Any) -> None:
        self._own = own

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_own":
            raise AttributeError(name)
        return getattr(self._own, name)

    def devices(self) -> Devices:
        """Those that the library names, without JAX's None."""
        return Devices(device for device in self._own.devices() if device is not None)

    def dtypes(self, *, device: Any = None, kind: Any = None) -> Any:
        """The dtypes of the standard that a device has; JAX raises KeyError for other kinds."""
        try:
            return self._own.dtypes(device=device, kind=kind)
        except KeyError as error:
            raise ValueError(f"dtypes takes the standard's kinds, got {kind!r}") from error


class Info:
    """What a namespace can do, and what it takes when nothing is said."""

    def __init__(self, cls: type[NativeArray], native: Any) -> None:
        self._cls = cls
        self._native = native
        self._info = native.__array_namespace_info__()

    def _ours(self, device: Any) -> Device | None:
        """A device of the library as a Device; None where it holds no memory (torch's meta)."""
        try:
            return self._cls._home.describe(self._cls._probe(self._native, device)).device
        except (ConversionError, RuntimeError, NotImplementedError, TypeError):
            return None

    def capabilities(self) -> dict[str, Any]:
        """Whether boolean indexing and data-dependent shapes work; the most axes allowed."""
        return dict(self._info.capabilities())

    def default_device(self) -> Device:
        """The device of arrays that are made without ``device=``."""
        device: Device = self._cls._of(self._cls._probe(self._native, None)).device
        return device

    def devices(self) -> Devices:
        """Every device that holds arrays here."""
        found = (self._ours(device) for device in self._info.devices())
        return Devices(dict.fromkeys(device for device in found if device is not None))

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The default dtypes by kind ("real floating", "integral", "indexing", ...)."""
        return dict(self._info.default_dtypes(device=native_device(self._cls, device)))

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The dtypes of the standard that a device has, by their names."""
        return dict(self._info.dtypes(device=native_device(self._cls, device), kind=kind))
