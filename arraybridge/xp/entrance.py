"""How data enters a namespace of Arrays: ``asarray`` and ``from_dlpack``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..array.carrier import Array
from ..array.native import NativeArray
from ..dlpack import Device
from ..exchange import imported


def asarray(cls: type[NativeArray], native: Any) -> Callable[..., Any]:
    """``asarray`` of the library of ``cls``, which also takes every other library's arrays."""

    def function(obj, /, *, dtype=None, device=None, copy=None):
        if isinstance(obj, Array):
            own = obj.__class__ is cls
            # The very Array: one of JAX's shares what is written to it with no other.
            if own and not copy and _asked(dtype, obj.dtype) and _asked(device, obj.device):
                return obj
            if own:
                obj = obj._native
        place = native_device(cls, device)
        return cls._of(cls._normal(native.asarray(obj, dtype=dtype, device=place, copy=copy)))

    return function


def _asked(wish: Any, own: Any) -> bool:
    """Whether a dtype or a device is what an array has already; None asks for nothing."""
    return wish is None or bool(wish == own)  # not `in`: np.dtype("float64") equals None


def from_dlpack(cls: type[NativeArray], native: Any) -> Callable[..., Any]:
    """``from_dlpack`` into the library of ``cls``, by arraybridge's own way."""

    def function(x, /, *, device=None, copy=None):
        if x.__class__ is cls and not copy and _asked(device, x.device):
            return x
        return cls._taken(imported(x, cls._home.name, device, copy))

    return function


def native_device(cls: type[NativeArray], device: Any) -> Any:
    """The library's own device for a Device, its name, or its own device."""
    if device is None:
        return None
    if isinstance(device, Device | str | tuple):
        return cls._home.native_device(Device.parse(device))
    return device


ENTRANCES = {"asarray": asarray, "from_dlpack": from_dlpack}
