"""Arrays that only speak DLPack, or whose library has no namespace: adopted to be computed with.

The library that serves their device takes them, as a view: NumPy on the CPU; CuPy, else PyTorch,
on CUDA and ROCm; dpnp on oneAPI.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from ..dispatch.registry import computing_on, library_named
from ..dlpack import Device
from ..exchange import convert
from .carrier import Array
from .native_array import NativeArray, array_class
from .operators import OPERATORS


def adopted(x: Array) -> NativeArray:
    """``x`` as an Array of the library that serves its device, on the same memory.

    Raises
    ------
    ImportError
        If no such library is installed, built for the device; the message says which would do.
    BufferError
        If no library computes on the device, or none takes the array as a view.
    """
    adopted: NativeArray
    if isinstance(x, NativeArray):
        adopted = x
        return adopted
    name = adopter(x.device)
    cls = array_class(name)
    assert cls is not None
    adopted = cls._of(convert(x, name, copy=False))
    return adopted


def adopter(device: Device, but: str | None = None) -> str:
    """The name of the library, another than ``but``, that computes on a device."""
    if device.host and but != "numpy":
        return "numpy"
    remedies = computing_on(str(device).partition(":")[0])
    names = [name for name in remedies if name != but]
    for name in names:
        if _serves(name, device):
            return name
    if not names:
        raise BufferError(
            f"no library that arraybridge knows computes on {device}: the array can be carried, "
            "inspected and exported; x.to('numpy', device='cpu') copies it to the CPU"
        )
    raise ImportError(
        f"no installed library computes on {device}: install "
        + " or ".join(remedies[name] for name in names)
    )


def _serves(name: str, device: Device) -> bool:
    """Whether a library is there, and built for a device: PyTorch may be for the CPU alone."""
    if find_spec(name) is None:
        return False
    try:
        return device.type in library_named(name).accepts.devices
    except ImportError:  # it does not load: a driver is missing
        return False


# What an Array without a library of its own hands on to the one that adopts it.
_METHODS = (
    *(name for op in OPERATORS for name in op.methods),
    *"__bool__ __int__ __float__ __complex__ __index__ __len__ __iter__ __contains__".split(),
    *"__getitem__ __setitem__ __copy__ __deepcopy__ __reduce_ex__".split(),
    *"__array_namespace__ to_device _number".split(),
)
_PROPERTIES = ("T", "mT")


def hand_on(cls: type[Array]) -> None:
    """Give :class:`Array` itself the methods that adopt first."""
    for name in _METHODS:
        setattr(cls, name, _handing_on(name))
    for name in _PROPERTIES:
        setattr(cls, name, _property_handing_on(name))


def _property_handing_on(name: str) -> property:
    return property(lambda self: getattr(adopted(self), name))


def _handing_on(name: str) -> Any:
    def method(self: Array, *args: Any, **kwargs: Any) -> Any:
        array = adopted(self)
        before = array._native
        result = getattr(array, name)(*args, **kwargs)
        if array._native is not before:  # read-only memory was written to: this is the copy
            self._native, self._library = array._native, array._library
        return result

    method.__name__ = name
    method.__qualname__ = f"Array.{name}"
    return method
