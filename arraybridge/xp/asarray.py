"""``asarray`` and ``from_dlpack`` of all namespaces, which take the arrays of any library.

Arrays of other libraries, also in nested sequences, are converted by ``convert``: a library's own
conversion may give wrong numbers (PyTorch reads JAX arrays as bytes).
"""

from collections.abc import Callable
from typing import Any

import numpy

from ..array.array import Array
from ..array.library_array import LibraryArray
from ..array.scalars import KINDS
from ..conversion import entry_for, imported
from ..core.cast_rules import data_type_of
from ..core.library import Library, place_named
from ..core.planner import missing_device
from ..core.records import ConversionError, no_copy_allowed, pending_reason
from ..core.registry import library_named, library_of_package, library_of_type
from ..core.request import Request, cast_of
from ..core.table import OBSERVERS, notify_copy, notify_view
from ..dlpack import DeviceType, is_capsule
from ..protocols.frames import is_frame
from ..protocols.from_object import as_source
from ..protocols.rejections import check_whole, is_arraylike

_NUMBERS = (*KINDS, numpy.generic)


def taking_any(
    library: str, namespace: Any, own: Callable[..., Any], check_dtype: Callable[[Any], Any] | None
) -> Callable[..., Any]:
    """Make ``asarray`` of a native namespace from the library's own.

    `check_dtype` returns the data type to use for a requested one, or raises.
    """
    home = library_named(library)

    def native(x: Any, dtype: Any, copy: bool | None) -> Any:
        """Convert an array of another library, or an object with a buffer or a protocol."""
        if isinstance(x, Array) and x.library == library:
            return x.native
        kind = type(x)
        known = library_of_type(kind) is not None or is_capsule(x) or is_frame(kind)
        if not (known or isinstance(x, Array)):
            if library == "jax" and hasattr(kind, "__jax_array__"):
                return x  # it knows the object
            try:
                x, _ = as_source(x, shared=copy is False, computed=True)
            except TypeError:
                if is_arraylike(kind) or hasattr(kind, "__torch_function__"):  # also fx.Proxy
                    raise
                return x  # the library raises, unless it knows the object
        cast = None if dtype is None else cast_of(dtype, "unsafe")
        # CuPy's own asarray copies NumPy's arrays; devices are read late, as JAX then starts.
        there = library if DeviceType.CPU in home.accepts.devices else "numpy"
        request = Request(copy=False if copy is False else None, cast=cast)
        made = entry_for(kind, library_named(there), request).run(x)
        return readable(made, copy is False) if isinstance(made, numpy.ndarray) else made

    def stacked(sequence: Any, dtype: Any) -> Any:
        """Stack the arrays in nested sequences; return sequences without arrays as they are."""
        if {*map(type, sequence)}.issubset(_NUMBERS):
            return sequence
        parts = [item(x, dtype) for x in sequence]
        if not any(home.owns(type(x)) for x in parts):
            return parts
        make = namespace.asarray
        # NumPy scalars have dtypes, unlike Python scalars
        parts = [make(x) if isinstance(x, list | tuple | numpy.generic) else x for x in parts]
        if OBSERVERS:
            for x in parts:
                if home.owns(type(x)):
                    notify_copy("a sequence is stacked", home.describe(x))
        if dtype is None:
            dtype = namespace.result_type(*parts)
        device = next(x.device for x in parts if home.owns(type(x)))
        return namespace.stack([own(x, dtype=dtype, device=device) for x in parts])

    def item(x: Any, dtype: Any) -> Any:
        if isinstance(x, _NUMBERS):
            return x
        if isinstance(x, list | tuple):
            return stacked(x, dtype)
        if not home.owns(type(x)):
            x = native(x, dtype, None)
            if isinstance(x, numpy.ndarray):
                return own(x, dtype=dtype)
        if home.owns(type(x)):
            if isinstance(x, numpy.ndarray):
                check_whole(x)
            home.computing.array_class()._check(x, read=True)
        return x

    def asarray(
        obj: Any,
        /,
        dtype: Any = None,
        *,
        device: Any = None,
        copy: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        if dtype is not None and check_dtype is not None:
            dtype = check_dtype(dtype)
        if home.owns(type(obj)):
            if isinstance(obj, numpy.ndarray):
                check_whole(obj)
            if OBSERVERS:
                _notify(home, obj, dtype, device, copy)
        elif isinstance(obj, list | tuple):
            obj = stacked(obj, dtype)
            if home.owns(type(obj)):  # it was stacked
                if copy is False:
                    raise ConversionError(no_copy_allowed("arrays in a sequence are copied"))
                copy = None
        elif not isinstance(obj, _NUMBERS):
            obj = native(obj, dtype, copy)
        return own(obj, dtype=dtype, device=device, copy=copy, **kwargs)

    return asarray


def _notify(home: Library, x: Any, dtype: Any, device: Any, copy: bool | None) -> None:
    """Notify observers of a view, copy or cast in ``asarray`` of an array of the same library."""
    try:
        info = home.describe(x)
    except Exception:  # an array for which the function will raise
        return
    wanted = None if dtype is None else data_type_of(dtype)
    why = "copy=True" if copy else None
    if device is not None and place_named(device) != info.device:
        why = "asked for by device="
    if wanted is not None and wanted != info.dtype:
        why = f"{info.dtype_name} becomes {wanted.name}"
    if why is None:
        notify_view("nothing to convert", info)
    else:
        notify_copy(why, info)


def readable(x: numpy.ndarray, shared: bool) -> numpy.ndarray:
    """Return a NumPy array in the machine's byte order."""
    if x.dtype.isnative:
        return x
    if shared:
        raise ConversionError(no_copy_allowed(pending_reason(["byteorder"])))
    return x.astype(x.dtype.newbyteorder("="))


def of_arrays(cls: type[LibraryArray], namespace: Any) -> Callable[..., Any]:
    """Make ``asarray`` of a namespace of Arrays from the native one."""
    own, check = namespace.asarray, cls._check

    def function(
        obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None
    ) -> Any:
        if obj.__class__ is cls:
            # The same Array: a new one over a JAX array would not see later writes.
            if not copy and _has(dtype, obj.dtype) and _has(device, obj.device):
                return obj
            obj = obj._native
            check(obj, read=True)
        elif cls._home.owns(type(obj)):
            check(obj, read=True)
        result = own(obj, dtype=dtype, device=native_device(cls, device), copy=copy)
        return cls._taken(cls._normal(result))

    return function


def _has(wish: Any, own: Any) -> bool:
    """Return whether an array has the requested dtype or device already; None requests nothing."""
    return wish is None or bool(wish == own)  # not `in`: np.dtype("float64") equals None


def from_dlpack(library: str) -> Callable[..., Any]:
    """Make ``from_dlpack`` of a library's native namespace: a view if safe, else a copy."""

    def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
        found = imported(x, library, device, copy)
        return readable(found, copy is False) if isinstance(found, numpy.ndarray) else found

    return from_dlpack


def from_dlpack_of_arrays(cls: type[LibraryArray]) -> Callable[..., Any]:
    """Make ``from_dlpack`` of a namespace of Arrays."""

    def function(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
        if x.__class__ is cls and not copy and _has(device, x.device):
            return x
        return cls._taken(imported(x, cls._home.name, device, copy))

    return function


def native_device(cls: type[LibraryArray], device: Any) -> Any:
    """Return the library's device for a Device, its name, or a device of the library."""
    if device is None:
        return None
    home = cls._home
    if library_of_package(type(device)) is home:
        return device
    place = place_named(device)
    own = home.devices.native_device(place)  # first: the library's error may be more specific
    why = missing_device(home.accepts, place)
    if why is not None:
        raise ConversionError(why)
    return own
