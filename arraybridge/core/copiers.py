"""Copiers: what copies an array on its device. The planner picks one, and ``explain`` prints it.

=============  ============================================================
`LibraryCopy`  a library: that of the array, or the target's own import
`HostCopy`     the host's kernels, `memmove` for contiguous memory
`DeviceCopy`   a kernel on another device, to memory that a library allocates
=============  ============================================================

``core.cast`` has the copier for other data types, ``core.transfer`` the one for other devices. All
have a method ``copy(x, info)``, whose result is an array of the target, or of a library from which
the conversion goes on.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from ..dlpack import CPU, Device, DeviceType
from ..layout import in_bytes
from ..ndarrays import canonical
from .kernel import (
    NO_ADDRESSES,
    ON_CUDA,
    OWN,
    Kernel,
    NoKernel,
    by_numpy,
    compact_copy,
    host_kernel,
    kernel_for,
    name_of,
    no_kernel,
    own_copies_serve,
)
from .library import Devices, Library, edge_between, exported, or_else, own_copy, then
from .records import (
    USUAL_ALIGNMENT,
    ConversionError,
    TensorInfo,
    dense_like,
    layout_objection,
    pending_reason,
)
from .registry import library_named, library_of_type

UNLIMITED = 2**63 - 1  # elements


class LibraryCopy(NamedTuple):
    """A copy that a library makes itself: that of the array, or the target as it imports."""

    library: Library
    source: Library
    target: Library
    why: str | None = None  # why no kernel of arraybridge does it, if one could
    as_is: bool = False  # the copy may keep what is pending, such as another byte order

    def __str__(self) -> str:
        return f"{self.library.name}'s own copy" + (f" ({self.why})" if self.why else "")

    def copy(self, x: object, info: TensorInfo) -> object:
        """Copy ``x``; the result is an array of the target, or of the source."""
        source, target = self.source, self.target
        if self.library is target and not info.pending and copies_itself(target, info):
            made = target.wrap(exported(source, x, info))
            if library_of_type(type(made)) is target or isinstance(made, target.accepts.results):
                return made
            raise ConversionError(
                f"{target.name}.wrap() returned {type(made).__name__}, not an array of its own"
            )
        if self.as_is or not info.pending:
            fresh = source.copy(x)
            if fresh is not None:
                return fresh
        if info.refused:
            raise ConversionError(info.refused)
        if info.pending:
            return resolved(x, source, info)
        raise ConversionError(no_copy(info, source))


def host_copy(
    s: TensorInfo, source: Library, target: Library
) -> tuple[Callable[[Any], Any] | None, str | None]:
    """Return what copies arrays on the host by the libraries' own functions, or None; and its name.

    NumPy's copy is the kernels' where they are faster. The function returns None for arrays that
    the library's own copy leaves to the copier, which also has the name if that is None.
    """
    if not own_copies_serve() or "booleans" in s.pending:
        return None, None
    numpy: Any = library_named("numpy")
    own, aligned = own_copy(source, s), target.accepts.alignment > USUAL_ALIGNMENT
    there = None if s.pending or source is numpy else own_copy(source, s, "numpy")
    made, most, rest = numpy, UNLIMITED, None
    if there is not None and (aligned or target is not source or not s.c_contiguous):
        copy = there.function
    elif own is not None and (not aligned or source is numpy):
        made, copy, most = source, numpy.copy_aligned if aligned else own.function, own.most
        rest = there and edge_between(numpy, target, dense_like(s))
    elif own is not None:  # a view may lock its array's storage: the kernel copies
        return None, None
    else:
        view, own = edge_between(source, numpy, s), own_copy(numpy, s)
        if view is None or own is None:
            return None, None
        copy = then(view, numpy.copy_aligned if aligned else own.function)
    if made is not target:
        take = edge_between(made, target, dense_like(s))
        if take is None:
            return None, None
        copy = then(copy, take)
    if there is not None and rest is not None:
        copy = or_else(copy, then(there.function, rest))
    itself = s.size <= most and (
        made is not numpy or by_numpy(s.shape, in_bytes(s.strides, s.itemsize), s.itemsize)
    )
    return copy, f"{made.name}'s own copy" if itself and not s.pending else None


class HostCopy(NamedTuple):
    """A copy in host memory by a kernel; `info` describes the array."""

    source: Library
    target: Library
    device: Device  # the target may have several CPU devices
    kernel: Kernel
    info: TensorInfo

    def __str__(self) -> str:
        # C-contiguous memory is moved as it is, even if another kernel is registered.
        return OWN if self.info.c_contiguous else name_of(self.kernel)

    def copy(self, x: object, info: TensorInfo) -> object:
        """Copy ``x`` to a block aligned to 64 bytes, as an array of the target."""
        block = compact_copy(exported(self.source, x, info, briefly=True))
        if self.device.type == CPU.type:
            block.device = self.device
        return self.target.wrap(block)


class DeviceCopy(NamedTuple):
    """A copy on another device by a kernel, on the stream of the library that allocates."""

    source: Library
    kernel: Kernel
    allocator: Library  # the target if it allocates on the device, else the source
    device: Device  # of the copy: CUDA's managed memory is copied to plain memory

    def __str__(self) -> str:
        return self.kernel.name

    def copy(self, x: object, info: TensorInfo) -> object:
        """Copy ``x``, after the work queued on its own stream, to an array of the allocator."""
        source, library, device = self.source, self.allocator, self.device
        shape, strides, itemsize = _walk(info)
        if device != info.device:
            info = info._replace(device=device)
        block = library.devices.empty(info, x if library is source else None)
        made = check_made(block, library, info)
        if 0 in shape:
            return block
        stream = stream_of(library, device)
        read = source.export(x, stream)
        dense = made.strides if shape is info.shape else strides
        to, of = in_bytes(dense, itemsize), in_bytes(strides, itemsize)
        try:
            self.kernel.run(made.pointer, read.pointer, shape, to, of, itemsize, stream, device)
        except NoKernel:  # there is no compiler; the next plan knows
            fresh = source.copy(x)
            if fresh is None:
                raise
            return fresh
        if source is not library:
            source.devices.read_on(x, device, stream)
        return block


Copier = LibraryCopy | HostCopy | DeviceCopy


def copier_for(
    info: TensorInfo, source: Library, target: Library, device: Device | None = None
) -> Copier | None:
    """Return the copier that makes a C-contiguous copy on an array's device, or None.

    `device`: the result's, if it is another of the host's devices.
    """
    if info.pending:
        return LibraryCopy(source, source, target)
    here = info.device
    if here.type == DeviceType.CUDA_MANAGED and CPU.type not in target.accepts.devices:
        here = Device(DeviceType.CUDA, here.id)  # like CuPy's arrays
    if here.host:
        if copies_itself(target, info):
            return LibraryCopy(target, source, target)
        return on_host(info, source, target, device)
    kernel = kernel_for(here)
    if kernel is not None:
        if allocates(target) and here.type in target.accepts.devices:
            return DeviceCopy(source, kernel, target, here)
        if allocates(source):
            return DeviceCopy(source, kernel, source, here)
    able = type(source).copy is not Library.copy
    return LibraryCopy(source, source, target, no_kernel(here)) if able else None


def on_host(
    info: TensorInfo, source: Library, target: Library, device: Device | None = None
) -> HostCopy:
    """Return the copy of host memory by its kernel."""
    return HostCopy(source, target, device or info.device, host_kernel(info.device), info)


def stream_of(library: Library, device: Device) -> int | None:
    """Return the stream on which a library reads and writes its memory.

    None on devices without streams; CUDA's legacy default stream if the library has none.
    """
    stream = library.devices.current_stream(device)
    return 1 if stream is None and device.type in ON_CUDA else stream


def _walk(info: TensorInfo) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return the shape, strides and item size (bytes) that a kernel copies.

    ValueError for packed elements smaller than a byte, unless they are in C order.
    """
    if not info.dtype.subbyte or info.padded:
        return info.shape, info.strides, info.itemsize
    if not info.c_contiguous:
        raise ValueError(NO_ADDRESSES)
    return (info.nbytes,), (1,), 1


def copies_itself(target: Library, info: TensorInfo) -> bool:
    """Return whether a library's import copies the described array."""
    if not info.device.host:
        return False
    accepts = target.accepts.of(info)
    if info.dtype_name in accepts.copied:
        return True
    return accepts.copies and layout_objection(info, accepts) is None


def check_made(block: object, library: Library, info: TensorInfo) -> TensorInfo:
    """Describe a library's new array before a kernel writes to it.

    ConversionError unless it is C-contiguous and has the described shape, dtype and device.
    """
    made = library.describe(block)
    managed = made.device.type == DeviceType.CUDA_MANAGED
    place = info.device if managed else made.device
    if (made.shape, made.dtype, place) != (info.shape, info.dtype, info.device):
        found, wanted = (f"{x.shape}, {x.dtype} on {x.device}" for x in (made, info))
        raise ConversionError(
            f"{library.name}.empty() returned an array {found} instead of {wanted}"
        )
    if not made.c_contiguous:
        raise ConversionError(f"{library.name}.empty() returned an array that is not C-contiguous")
    return made


def allocates(library: Library) -> bool:
    """Return whether a library allocates memory for kernels on other devices than the host."""
    return type(library.devices).empty is not Devices.empty


def resolved(x: object, library: Library, info: TensorInfo) -> object:
    """Copy `x` with everything `pending` applied; ConversionError if its library cannot."""
    if info.pending == ("booleans",):
        numpy: Any = library_named("numpy")
        return canonical(numpy.wrap(exported(library, x, info, briefly=True)))
    fresh = library.resolve(x)
    if fresh is x:
        raise ConversionError(
            f"{library.name} could not copy the array: {pending_reason(info.pending)}"
        )
    return fresh


def no_copy(info: TensorInfo, source: Library) -> str:
    """Return why an array off the host cannot be copied, and what to do."""
    why = no_kernel(info.device) if kernel_for(info.device) is None else None
    if allocates(source):
        remedy = why or "add one with arraybridge.register_kernel"
        return f"no kernel copies on {info.device}: {remedy}"
    but = f" ({why})" if why else ""
    return (
        f"{source.name} cannot copy on {info.device}{but}: copy it with the "
        "library that made it, and convert the copy"
    )
