"""What copies an array to another device: the planner picks it, ``explain`` prints it.

A strided array is made contiguous where it lies, by the kernel of its device, and only then goes
across. The way across is that of the libraries, unless the device is CUDA's and its memory can be
reached by `arraybridge.kernels.cuda.transfer`.
"""

from __future__ import annotations

from typing import NamedTuple

from ..dlpack import CPU, Device
from .copier import Copier, DeviceCopy, copier_for
from .library import Library
from .records import TensorInfo
from .registry import library_named

__all__ = ["Fetch", "Move", "Upload", "moves", "no_way", "transfer_for"]


class Fetch(NamedTuple):
    """A copy to the host by the library of the array.

    Attributes
    ----------
    library : Library
    compact : DeviceCopy or None
        What makes the array contiguous before.
    """

    library: Library
    compact: Copier | None

    def __str__(self) -> str:
        return _steps(self.compact, f"{self.library.name}'s own copy to the host")

    def copy(
        self, x: object, source: Library, target: Library, info: TensorInfo, device: Device
    ) -> object:
        """Copy ``x``: an array of any known library on the host."""
        if self.compact is not None:
            x = self.compact.copy(x, source, source, info, info.device)
        return source.to_host(x)


class Move(NamedTuple):
    """A copy from one device to another by the library of the array."""

    library: Library
    place: Device
    compact: Copier | None

    def __str__(self) -> str:
        return _steps(self.compact, f"{self.library.name}'s own copy to {self.place}")

    def copy(
        self, x: object, source: Library, target: Library, info: TensorInfo, device: Device
    ) -> object:
        """Copy ``x``: an array of its library on the other device."""
        if info.pending:
            x = source.resolve(x)
        elif self.compact is not None:
            x = self.compact.copy(x, source, source, info, info.device)
        return source.to_device(x, device)


class Upload(NamedTuple):
    """A copy from the host to a device by the target, which takes NumPy's arrays."""

    library: Library
    place: Device

    def __str__(self) -> str:
        return f"{self.library.name}'s own copy to {self.place}"

    def copy(
        self, x: object, source: Library, target: Library, info: TensorInfo, device: Device
    ) -> object:
        """Copy ``x``: an array of the target on the device."""
        if info.pending:
            x = source.resolve(x)
        numpy = library_named("numpy")
        if source is not numpy:
            x = numpy.wrap(source.export(x))
        return target.to_device(x, device)


def _steps(first: Copier | None, then: str) -> str:
    return then if first is None else f"{first}, then {then}"


def transfer_for(
    info: TensorInfo, source: Library, target: Library, place: Device
) -> Fetch | Move | Upload:
    """Return what copies an array to another device; see `no_way` for whether it can."""
    if place.type == CPU.type:
        return Fetch(source, _compact(info, source))
    if source is target or moves(source, place):
        return Move(source, place, _compact(info, source))
    return Upload(target, place)


def _compact(info: TensorInfo, source: Library) -> Copier | None:
    """Return what makes an array contiguous on its device before it leaves; None if nothing."""
    if info.c_contiguous or info.pending or info.device.host:
        return None
    copier = copier_for(info, source, source)
    return copier if isinstance(copier, DeviceCopy) else None


def no_way(info: TensorInfo, source: Library, target: Library, place: Device) -> str | None:
    """Return why an array cannot move from one device to another, or None."""
    if place.type == CPU.type:
        if type(source).to_host is Library.to_host:
            return f"{source.name} arrays on {info.device} cannot be fetched"
    elif source is target or moves(source, place):
        if type(source).to_device is Library.to_device:
            return f"{source.name} arrays on {info.device} cannot be moved"
    elif not info.device.host:
        return f"no direct way from {info.device} to {place}: go through device='cpu' first"
    elif type(target).to_device is Library.to_device:
        return f"arraybridge cannot put {target.name} arrays on {place}"
    return None


def moves(source: Library, place: Device) -> bool:
    """Whether a library can move its own arrays to a device."""
    # TVM-FFI holds any device, and moves none.
    able = type(source).to_device is not Library.to_device
    return able and place.type in source.accepts.devices
