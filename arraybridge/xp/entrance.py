"""How data enters a namespace of Arrays: ``asarray`` and ``from_dlpack``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..array.carrier import Array
from ..array.native import NativeArray
from ..dispatch.plan import missing_device
from ..dispatch.records import ConversionError
from ..dispatch.registry import package_of
from ..dlpack import Device
from ..exchange import imported
from .standard.data_types import DATA_TYPES


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
        try:
            return cls._of(cls._normal(native.asarray(obj, dtype=dtype, device=place, copy=copy)))
        except (AttributeError, TypeError, ValueError):
            check_dtype(cls, dtype)
            raise

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
    if isinstance(device, Device | str | tuple) or package_of(type(device)) == "builtins":
        place, home = Device.parse(device), cls._home
        own = home.native_device(place)  # of a device that it misses, the library may say more
        why = missing_device(home.accepts, place)
        if why is not None:
            raise ConversionError(why)
        return own
    return device


def check_dtype(cls: type[NativeArray], dtype: Any) -> None:
    """Raise TypeError for a data type that is none of the library's; called where it failed."""
    xp = cls._namespace
    if dtype is None:
        return
    try:
        xp.isdtype(dtype, ("bool", "numeric"))
    except TypeError:
        name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
        name = name if name in DATA_TYPES and hasattr(xp, name) else "float32"
        raise TypeError(
            f"dtype is a data type of {xp.__name__}, such as {xp.__name__}.{name}, got {dtype!r}"
        ) from None


ENTRANCES = {"asarray": asarray, "from_dlpack": from_dlpack}
