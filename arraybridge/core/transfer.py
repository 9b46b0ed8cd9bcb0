"""Copies between devices: the planner picks one, and ``explain`` prints it.

The kernel of an array's device first makes a strided array contiguous. The libraries then transfer
it, unless the device is CUDA's and `arraybridge.kernels.cuda.transfer` can reach its memory.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from ..dlpack import CPU, Device, DeviceType, ManagedTensor
from ..kernels import cpu
from ..layout import in_bytes
from .copiers import Copier, DeviceCopy, allocates, check_made, copier_for, on_host, stream_of
from .kernel import ON_CUDA, host_kernel, no_driver
from .library import Library, exported, transfers
from .records import ConversionError, TensorInfo
from .registry import computing_on, library_named


class Transfer(NamedTuple):
    """A copy from one device to another."""

    name: str
    by: Callable[["Transfer", Any, TensorInfo], object]
    source: Library
    target: Library
    place: Device
    compact: Copier | None = None  # makes the array contiguous first

    def __str__(self) -> str:
        return self.name if self.compact is None else f"{self.compact}, then {self.name}"

    def copy(self, x: object, info: TensorInfo) -> object:
        """Copy ``x`` to the other device, as an array of any known library."""
        return self.by(self, x, info)

    def compacted(self, x: object, info: TensorInfo) -> object:
        """Return ``x``, or a contiguous copy on its device."""
        return x if self.compact is None else self.compact.copy(x, info)


def _moved(of: Transfer, x: object, info: TensorInfo) -> object:
    """Copy from one device to another by the array's library."""
    place = CPU if of.place.type == CPU.type else of.place
    x = of.source.resolve(x) if info.pending and place != CPU else of.compacted(x, info)
    made = of.source.devices.to_device(x, place)
    if made is None or made is x:
        raise ConversionError(f"{of.source.name}.to_device() did not return a copy on {place}")
    return made


def _uploaded(of: Transfer, x: object, info: TensorInfo) -> object:
    """Copy from the host to a device by the target, from a NumPy array."""
    if info.pending:
        x = of.source.resolve(x)
    numpy = library_named("numpy")
    if of.source is not numpy:
        x = numpy.wrap(of.source.export(x))
    return of.target.devices.to_device(x, of.place)


def _uploaded_pinned(of: Transfer, x: object, info: TensorInfo) -> object:
    """Copy from the host to a CUDA device, in slices, through pinned memory."""
    from ..kernels.cuda import transfer

    there = info._replace(device=of.place)
    block = of.target.devices.empty(there)
    made = check_made(block, of.target, there)
    if info.size:
        itemsize = info.itemsize
        read = exported(of.source, x, info, briefly=True)
        shape, strides = info.shape, in_bytes(read.strides, itemsize)
        kernel = host_kernel(info.device).copy
        if info.c_contiguous:  # moved as it is, even if a kernel is registered
            shape, strides, itemsize, kernel = (info.nbytes,), (1,), 1, cpu.copy
        stream = stream_of(of.target, of.place)
        transfer.upload(
            made.pointer, read.pointer, shape, strides, itemsize, stream, of.place.id, kernel
        )
    return block


def _fetched_pinned(of: Transfer, x: object, info: TensorInfo) -> object:
    """Copy from a CUDA device to the host through pinned memory, to a block of the target."""
    from ..kernels.cuda import transfer

    block = ManagedTensor.allocate(info.shape, info.dtype, padded=info.padded)
    block.device = of.place  # the target may have several CPU devices
    if info.size:
        x = of.compacted(x, info)
        stream = stream_of(of.source, info.device)
        read = of.source.export(x, stream)
        transfer.fetch(block.pointer, read.pointer, info.nbytes, stream, info.device.id)
    return of.target.wrap(block)


def transfer_for(
    info: TensorInfo, source: Library, target: Library, place: Device
) -> Transfer | str:
    """Return what copies an array to another device, or why nothing can."""
    compact, ends = _compact(info, source), (source, target, place)
    if _reaches(info, source, target, place):
        if place.type == CPU.type:
            name = "a copy to the host through pinned memory"
            return Transfer(name, _fetched_pinned, *ends, compact)
        name = f"{on_host(info, source, target)} to pinned memory, then a copy to {place}"
        return Transfer(name, _uploaded_pinned, *ends)
    if place.type == CPU.type:
        if not transfers(source):
            why = no_driver() if info.device.type in ON_CUDA else None
            remedy = why or "convert them to a library that computes there first"
            if not computing_on(str(info.device).partition(":")[0]):
                remedy = "copy them to the CPU with the library that made them"
            return f"{source.name} arrays on {info.device} cannot be fetched: {remedy}"
        return Transfer(f"{source.name}'s own copy to the host", _moved, *ends, compact)
    if source is target or moves(source, place):
        if not transfers(source):
            return f"{source.name} arrays on {info.device} cannot be moved"
        try:
            source.devices.native_device(place)
        except ConversionError as error:  # its build supports such devices, but it finds none
            return str(error)
        return Transfer(f"{source.name}'s own copy to {place}", _moved, *ends, compact)
    if not info.device.host:
        return f"no direct way from {info.device} to {place}: go through device='cpu' first"
    if not transfers(target):
        return f"arraybridge cannot put {target.name} arrays on {place}"
    return Transfer(f"{target.name}'s own copy to {place}", _uploaded, *ends)


def keeps_layout(copier: Transfer) -> bool:
    """Return whether a library's own copy to another device takes an array in any layout."""
    return copier.compact is None and copier.by in (_moved, _uploaded)


def _reaches(info: TensorInfo, source: Library, target: Library, place: Device) -> bool:
    """Whether arraybridge itself copies: between the host's memory and a CUDA device's."""
    here = info.device
    if info.pending or not {here.type, place.type} & ON_CUDA or no_driver():
        return False
    if info.dtype.subbyte and not info.padded and not info.c_contiguous:
        return False  # elements without addresses
    if here.host:
        return place.type == DeviceType.CUDA and allocates(target)
    if here.type not in ON_CUDA or place.type != CPU.type:
        return False
    compact = info.c_contiguous or _compact(info, source) is not None
    ordered = source.devices.current_stream(here) is not None
    if not transfers(source):  # no library, or one that transfers nothing
        return compact
    return compact and ordered and allocates(source)  # otherwise by its own copy, as for JAX


def _compact(info: TensorInfo, source: Library) -> Copier | None:
    """Return what makes an array contiguous on its device first, or None."""
    if info.c_contiguous or info.pending or info.device.host:
        return None
    copier = copier_for(info, source, source)
    return copier if isinstance(copier, DeviceCopy) else None


def fetched(x: object, library: Library, info: TensorInfo) -> object:
    """Copy an array to the CPU as ``convert`` does: as its library's array, or NumPy's."""
    own = CPU.type in library.accepts.devices and type(library).wrap is not Library.wrap
    target = library if own else library_named("numpy")
    found = transfer_for(info, library, target, CPU)
    if isinstance(found, str):
        raise ConversionError(found)
    return found.copy(x, info)


def moves(source: Library, place: Device) -> bool:
    """Whether a library can move its own arrays to a device."""
    # TVM-FFI holds arrays of any device, but moves none.
    return transfers(source) and place.type in source.accepts.devices
