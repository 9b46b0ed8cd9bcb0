"""Input to a namespace of Arrays: ``asarray`` and ``from_dlpack``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from ..array.carrier import Array
from ..array.native_array import NativeArray
from ..array.operators import SCALARS
from ..dispatch.library import place_named
from ..dispatch.plan import missing_device
from ..dispatch.records import ConversionError
from ..dispatch.registry import library_of_package
from ..exchange import imported
from ..named import NamedTuple
from .recovery import Function, Refused
from .standard.data_types import DATA_TYPES


def asarray(cls: type[NativeArray], native: Any) -> Callable[..., Any]:
    """Make ``asarray`` for the library of ``cls``, which accepts every library's arrays."""
    made = over_arrays(cls, native._functions["asarray"])
    own, errors, recover = made.own, made.errors, made.recovery()
    before: Any = made.before
    owns, check = cls._home.owns, cls._home.check_carried

    def function(
        obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None
    ) -> Any:
        if isinstance(obj, Array):
            same = obj.__class__ is cls
            # The very Array: one of JAX's shares what is written to it with no other.
            if same and not copy and _asked(dtype, obj.dtype) and _asked(device, obj.device):
                return obj
            if same:
                obj = obj._native
                check(obj, read=True)
        elif obj.__class__ not in _NO_CHECK and owns(type(obj)):
            check(obj, read=bool(copy) or dtype is not None)
        place = native_device(cls, device)
        args, kwargs = before(obj, dtype=dtype, device=place, copy=copy)
        try:
            result = own(*args, **kwargs)
        except errors as error:
            result = recover(error, args, kwargs)
        result = cls._normal(result)
        check(result)
        return cls._of(result)

    return function


def _asked(wish: Any, own: Any) -> bool:
    """Whether an array already has the requested dtype or device; None requests nothing."""
    return wish is None or bool(wish == own)  # not `in`: np.dtype("float64") equals None


def from_dlpack(cls: type[NativeArray], native: Any) -> Callable[..., Any]:
    """Make ``from_dlpack`` for the library of ``cls``, through arraybridge."""

    def function(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
        if x.__class__ is cls and not copy and _asked(device, x.device):
            return x
        return cls._taken(imported(x, cls._home.name, device, copy))

    return function


def native_device(cls: type[NativeArray], device: Any) -> Any:
    """Return the library's own device for a Device, its name, or the library's own device."""
    if device is None:
        return None
    home = cls._home
    library = library_of_package(type(device))
    if library is None or library is not home:
        place = place_named(device)
        own = home.native_device(place)  # of a device that it misses, the library may say more
        why = missing_device(home.accepts, place)
        if why is not None:
            raise ConversionError(why)
        return own
    return device


def over_arrays(cls: type[NativeArray], function: Function) -> Function:
    """Prepare a native function for the Array namespace: refused dtypes are a clear TypeError."""
    if "dtype" not in function.parameters or function.path == "isdtype":
        return function
    return function._replace(handlers=(*function.handlers, Telling(cls)))


class Telling(NamedTuple):
    """A handler that raises TypeError for anything but a dtype of the library."""

    cls: type[NativeArray]
    errors: tuple[type[Exception], ...] = (AttributeError, TypeError, ValueError)
    attempt: str = ""

    def serves(self, path: str, template: Any) -> bool:
        """Whether a function takes the data type of its result."""
        return "dtype" in template.__annotations__ and template.__annotations__["return"] == "Array"

    def retry(self, refused: Refused) -> Any:
        """Raise TypeError if that is why the call failed."""
        given = dict(zip(refused.function.parameters, refused.args, strict=False)) | refused.kwargs
        dtype, xp = given.get("dtype"), self.cls._namespace
        if dtype is None:
            return NotImplemented
        try:
            xp.isdtype(dtype, ("bool", "numeric"))
        except TypeError:
            name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
            name = name if name in DATA_TYPES and hasattr(xp, name) else "float32"
            own = f"{xp.__name__}, such as {xp.__name__}.{name}"
            raise TypeError(f"dtype is a data type of {own}, got {dtype!r}") from None
        return NotImplemented


# What is never refused as it is, or by the correction of NumPy's own.
_NO_CHECK = (numpy.ndarray, list, tuple, *SCALARS)
ENTRANCES = {"asarray": asarray, "from_dlpack": from_dlpack}
