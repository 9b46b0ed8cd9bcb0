"""Arrays that only speak DLPack, or whose library has no namespace: adopted to be computed with.

The library that serves their device takes them, as a view: NumPy on the CPU; CuPy, else PyTorch,
on CUDA and ROCm; dpnp on oneAPI.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from ..dispatch.library import LIBRARIES
from ..dlpack import Device, DeviceType
from ..exchange import convert
from .carrier import Array
from .native import NativeArray, array_class
from .operators import OPERATORS

_GPU = ("cupy", "torch")
ADOPTERS: dict[int, tuple[str, ...]] = {
    DeviceType.CUDA: _GPU,
    DeviceType.ROCM: _GPU,
    DeviceType.ONEAPI: ("dpnp",),
}


def adopted(x: Array) -> NativeArray:
    """``x`` as an Array of the library that serves its device, on the same memory.

    Raises
    ------
    ImportError
        If no such library is installed; the message says which would do.
    BufferError
        If no library computes on the device, or none takes the array as a view.
    """
    if isinstance(x, NativeArray):
        return x
    name = adopter(x.device)
    cls = array_class(name)
    assert cls is not None
    adopted: NativeArray = cls._of(convert(x, name, copy=False))
    return adopted


def adopter(device: Device, but: str | None = None) -> str:
    """The name of the library, another than ``but``, that computes on a device."""
    names = ("numpy",) if device.host else ADOPTERS.get(device.type, ())
    names = tuple(name for name in names if name != but)
    for name in names:
        if find_spec(name) is not None:
            return name
    if not names:
        raise BufferError(
            f"no library that arraybridge knows computes on {device}: the array can be carried, "
            "inspected and exported; x.to('numpy', device='cpu') copies it to the CPU"
        )
    raise ImportError(
        f"to compute on {device} install "
        + " or ".join(f"{name} (pip install '{LIBRARIES[name][1]}')" for name in names)
    )


# What an Array without a library of its own hands on to the one that adopts it.
_METHODS = (
    *(name for op in OPERATORS for name in op.methods),
    *"__bool__ __int__ __float__ __complex__ __index__ __len__ __iter__ __contains__".split(),
    *"__getitem__ __setitem__ __copy__ __deepcopy__ __reduce_ex__".split(),
    *"__array_namespace__ to_device".split(),
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
        return getattr(adopted(self), name)(*args, **kwargs)

    method.__name__ = name
    method.__qualname__ = f"Array.{name}"
    return method
