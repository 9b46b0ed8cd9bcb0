"""Copies between devices: the planner picks one, and ``explain`` prints it.

The kernel of an array's device first makes a strided array contiguous. The libraries then transfer
it, unless the device is CUDA's and `arraybridge.kernels.cuda.transfer` can reach its memory.
"""

from __future__ import annotations

from typing import NamedTuple

from ..dlpack import CPU, DataType, Device, DeviceType, ManagedTensor
from ..kernels import cpu
from ..layout import in_bytes, span
from .copiers import Copier, DeviceCopy, allocates, check_made, copier_for, on_host, stream_of
from .kernel import ON_CUDA, copy_into, no_driver
from .library import Library
from .records import ConversionError, TensorInfo
from .registry import library_named

_BYTES = DataType.named("uint8")


class Fetch(NamedTuple):
    """A copy to the host by the array's library."""

    library: Library
    compact: Copier | None  # makes the array contiguous first

    def __str__(self) -> str:
        return _steps(self.compact, f"{self.library.name}'s own copy to the host")

    def copy(
        self, x: object, source: Library, target: Library, info: TensorInfo, device: Device
    ) -> object:
        """Copy ``x`` to the host, as an array of any known library."""
        if self.compact is not None:
            x = self.compact.copy(x, source, source, info, info.device)
        host = source.to_host(x)
        if host is None or host is x:
            raise ConversionError(f"{source.name}.to_host() did not return a copy on the CPU")
        return host


class Move(NamedTuple):
    """A copy from one device to another by the array's library."""

    library: Library
    place: Device
    compact: Copier | None

    def __str__(self) -> str:
        return _steps(self.compact, f"{self.library.name}'s own copy to {self.place}")

    def copy(
        self, x: object, source: Library, target: Library, info: TensorInfo, device: Device
    ) -> object:
        """Copy ``x`` to the other device, as an array of its library."""
        if info.pending:
            x = source.resolve(x)
        elif self.compact is not None:
            x = self.compact.copy(x, source, source, info, info.device)
        return source.to_device(x, device)


class Upload(NamedTuple):
    """A copy from the host to a device by the target, from a NumPy array."""

    library: Library
    place: Device

    def __str__(self) -> str:
        return f"{self.library.name}'s own copy to {self.place}"

    def copy(
        self, x: object, source: Library, target: Library, info: TensorInfo, device: Device
    ) -> object:
        """Copy ``x`` to the device, as an array of the target."""
        if info.pending:
            x = source.resolve(x)
        numpy = library_named("numpy")
        if source is not numpy:
            x = numpy.wrap(source.export(x))
        return target.to_device(x, device)


class PinnedUpload(NamedTuple):
    """A copy from the host to a CUDA device, in slices, through pinned memory."""

    library: Library  # the target, which allocates
    place: Device
    info: TensorInfo  # what is copied

    def __str__(self) -> str:
        return f"{on_host(self.info)} to pinned memory, then a copy to {self.place}"

    def copy(
        self, x: object, source: Library, target: Library, info: TensorInfo, device: Device
    ) -> object:
        """Copy ``x`` to the device, as an array of the target."""
        from ..kernels.cuda import transfer

        block = target.empty(info._replace(device=device))
        made = check_made(block, target, info._replace(device=device))
        if info.size:
            stream = stream_of(target, device)
            itemsize = info.itemsize
            read = source.export_borrowed(x, info)
            shape, strides, kernel = (
                info.shape,
                in_bytes(read.strides, itemsize),
                on_host(info).kernel.copy,
            )
            if info.c_contiguous:  # moved as it is, even if a kernel is registered
                shape, strides, itemsize, kernel = (info.nbytes,), (1,), 1, cpu.copy
            transfer.upload(
                made.pointer, read.pointer, shape, strides, itemsize, stream, device.id, kernel
            )
        return block


class PinnedFetch(NamedTuple):
    """A copy from a CUDA device to the host through pinned memory."""

    library: Library  # the source
    compact: Copier | None  # makes the array contiguous first

    def __str__(self) -> str:
        return _steps(self.compact, "a copy to the host through pinned memory")

    def copy(
        self, x: object, source: Library, target: Library, info: TensorInfo, device: Device
    ) -> object:
        """Copy ``x`` to a block aligned to 64 bytes, as an array of the target."""
        block = ManagedTensor.allocate(info.shape, info.dtype, padded=info.padded)
        block.device = device  # the target may have several CPU devices
        if info.size:
            if self.compact is not None:
                x = self.compact.copy(x, source, source, info, info.device)
            stream = stream_of(source, info.device)
            read = source.export(x, stream)
            if self.compact is not None or info.c_contiguous:
                _fetch(block.pointer, read.pointer, info.nbytes, stream, info.device)
            else:
                copy_into(block, _span_of(read, stream))
        return target.wrap(block, move=True)


def _fetch(dst: int, src: int, nbytes: int, stream: int | None, device: Device) -> None:
    from ..kernels.cuda import transfer

    transfer.fetch(dst, src, nbytes, stream, device.id)


def _span_of(tensor: ManagedTensor, stream: int | None) -> ManagedTensor:
    """Fetch the whole memory span of a strided tensor, as a tensor on the host."""
    itemsize = tensor.dtype.itemsize
    low, high = span(tensor.shape, in_bytes(tensor.strides, itemsize), itemsize)
    whole = ManagedTensor.allocate((high - low,), _BYTES)
    _fetch(whole.pointer, tensor.pointer + low, high - low, stream, tensor.device)
    return ManagedTensor.adopt(
        whole.pointer - low, tensor.shape, tensor.dtype, owner=whole, strides=tensor.strides
    )


class PeerCopy(NamedTuple):
    """A copy from one CUDA device to another."""

    library: Library  # the target, which allocates
    place: Device
    compact: Copier | None  # makes the array contiguous first

    def __str__(self) -> str:
        return _steps(self.compact, f"a peer copy to {self.place}")

    def copy(
        self, x: object, source: Library, target: Library, info: TensorInfo, device: Device
    ) -> object:
        """Copy ``x`` to the other device, as an array of the target."""
        from ..kernels.cuda import transfer

        block = target.empty(info._replace(device=device))
        made = check_made(block, target, info._replace(device=device))
        if info.size:
            if self.compact is not None:
                x = self.compact.copy(x, source, source, info, info.device)
            streams = stream_of(target, device), stream_of(source, info.device)
            read = source.export(x, streams[1])
            devices = device.id, info.device.id
            transfer.move(made.pointer, read.pointer, info.nbytes, streams, devices)
            source.read_on(x, info.device, streams[1])  # that stream waits for the copy
        return block


def _steps(first: Copier | None, then: str) -> str:
    return then if first is None else f"{first}, then {then}"


def transfer_for(
    info: TensorInfo, source: Library, target: Library, place: Device
) -> Fetch | Move | Upload | PinnedFetch | PinnedUpload | PeerCopy:
    """Return what copies an array to another device; `no_way` checks that it can."""
    compact = _compact(info, source)
    if _reaches(info, source, target, place):
        if place.type == CPU.type:
            return PinnedFetch(source, compact)
        if info.device.host:
            return PinnedUpload(target, place, info)
        return PeerCopy(target, place, compact)
    if place.type == CPU.type:
        return Fetch(source, compact)
    if source is target or moves(source, place):
        return Move(source, place, compact)
    return Upload(target, place)


def keeps_layout(copier: object) -> bool:
    """Whether a library's own copy to another device takes an array in any layout."""
    own = isinstance(copier, Fetch | Move) and copier.compact is None
    return own or isinstance(copier, Upload)


def _reaches(info: TensorInfo, source: Library, target: Library, place: Device) -> bool:
    """Whether arraybridge itself can reach the memory on both sides: the host's and CUDA's."""
    here = info.device
    if info.pending or not {here.type, place.type} & ON_CUDA or no_driver():
        return False
    if info.dtype.subbyte and not info.padded and not info.c_contiguous:
        return False  # elements without addresses
    allocated = place.type == DeviceType.CUDA and type(target).empty is not Library.empty
    if here.host:
        return allocated
    if here.type not in ON_CUDA:
        return False
    compact = info.c_contiguous or _compact(info, source) is not None
    ordered = source.current_stream(here) is not None
    if place.type != CPU.type:
        return allocated and compact and ordered
    if type(source).to_host is Library.to_host:  # no library, or one that transfers nothing
        return compact or _is_nearly_dense(info)
    return compact and ordered and allocates(source)  # otherwise by its own copy, as for JAX


def _is_nearly_dense(info: TensorInfo) -> bool:
    """Whether the gaps between elements are no larger than the elements."""
    low, high = span(info.shape, in_bytes(info.strides, info.itemsize), info.itemsize)
    return high - low <= 2 * info.nbytes


def _compact(info: TensorInfo, source: Library) -> Copier | None:
    """Return what makes an array contiguous on its device first, or None."""
    if info.c_contiguous or info.pending or info.device.host:
        return None
    copier = copier_for(info, source, source)
    return copier if isinstance(copier, DeviceCopy) else None


def no_way(info: TensorInfo, source: Library, target: Library, place: Device) -> str | None:
    """Return why an array cannot move from one device to another, or None."""
    if _reaches(info, source, target, place):
        return None
    if place.type == CPU.type:
        if type(source).to_host is Library.to_host:
            why = no_driver() if info.device.type in ON_CUDA else None
            but = f": {why}" if why else ""
            return f"{source.name} arrays on {info.device} cannot be fetched{but}"
    elif source is target or moves(source, place):
        if type(source).to_device is Library.to_device:
            return f"{source.name} arrays on {info.device} cannot be moved"
        try:
            source.native_device(place)
        except ConversionError as error:  # its build supports such devices, but it finds none
            return str(error)
    elif not info.device.host:
        return f"no direct way from {info.device} to {place}: go through device='cpu' first"
    elif type(target).to_device is Library.to_device:
        return f"arraybridge cannot put {target.name} arrays on {place}"
    return None


def fetched(x: object, library: Library, info: TensorInfo) -> object:
    """Copy an array to the CPU as ``convert`` does: as its library's array, or NumPy's."""
    own = CPU.type in library.accepts.devices and type(library).wrap is not Library.wrap
    target = library if own else library_named("numpy")
    obstacle = no_way(info, library, target, CPU)
    if obstacle is not None:
        raise ConversionError(obstacle)
    return transfer_for(info, library, target, CPU).copy(x, library, target, info, CPU)


def moves(source: Library, place: Device) -> bool:
    """Whether a library can move its own arrays to a device."""
    # TVM-FFI holds arrays of any device, but moves none.
    able = type(source).to_device is not Library.to_device
    return able and place.type in source.accepts.devices
