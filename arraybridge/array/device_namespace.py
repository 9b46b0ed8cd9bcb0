"""Computing with arrays that only support DLPack, or whose library has no namespace.

A fallback library computes on a view: NumPy on the CPU; CuPy, or else PyTorch, on CUDA and ROCm;
dpnp on oneAPI.
"""

from importlib.util import find_spec
from typing import Any

from ..conversion import convert
from ..core.records import ConversionError
from ..core.registry import computing_on, library_named
from ..dlpack import Device
from .array import Array
from .library_array import LibraryArray
from .operators import OPERATORS


def in_fallback_library(x: Array) -> LibraryArray:
    """View ``x`` as an Array of the library that computes on its device.

    ImportError, which names the candidates, if none is installed and built for the device;
    BufferError if no library computes on the device, or none can view the array.
    """
    found: LibraryArray
    if isinstance(x, LibraryArray):
        found = x
    else:
        name = fallback_library(x.device)
        found = library_named(name).computing.array_class()._of(convert(x, name, copy=False))
    return found


def fallback_library(device: Device, but: str | None = None) -> str:
    """Return the name of a library, other than ``but``, that computes on a device."""
    if device.host and but != "numpy":
        return "numpy"
    remedies = computing_on(str(device).partition(":")[0])
    names = [name for name in remedies if name != but]
    refusals = []
    for name in names:
        try:
            if _serves(name, device):
                return name
        except ConversionError as error:  # it has no such device, or no driver for it
            refusals.append(error)
    if refusals:
        raise refusals[0]
    if not names:
        raise ConversionError(
            f"no library that arraybridge supports computes on {device}: the array can only be "
            "inspected and exported; copy it to the CPU with the library that made it"
        )
    raise ImportError(
        f"no installed library computes on {device}: install "
        + " or ".join(remedies[name] for name in names)
    )


def _serves(name: str, device: Device) -> bool:
    """Whether a library is built for a device; ConversionError if it cannot use it here."""
    if find_spec(name) is None:
        return False
    try:
        library = library_named(name)
    except ImportError:  # a driver is missing
        return False
    if device.type not in library.accepts.devices:
        return False
    library.devices.native_device(device)
    return True


def _method(name: str) -> Any:
    def method(self: Array, *args: Any, **kwargs: Any) -> Any:
        array = in_fallback_library(self)
        before = array._native
        result = getattr(array, name)(*args, **kwargs)
        if array._native is not before:  # writing to read-only memory made a copy
            self._native, self._library = array._native, array._library
        return result

    method.__name__ = name
    method.__qualname__ = f"Array.{name}"
    return method


# Methods that an Array without a library delegates to its view.
for _name in (
    *(name for op in OPERATORS for name in op.methods),
    *"__bool__ __int__ __float__ __complex__ __index__ __len__ __iter__ __contains__".split(),
    *"__getitem__ __setitem__ __copy__ __deepcopy__ __reduce_ex__".split(),
    *"__array_namespace__ to_device".split(),
):
    setattr(Array, _name, _method(_name))
for _name in ("T", "mT"):
    setattr(Array, _name, property(lambda x, name=_name: getattr(in_fallback_library(x), name)))  # type: ignore[misc]
