"""The registry of copy kernels by device type, and copies of core tensors made with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..dlpack import Device, DeviceType, ManagedTensor, Tensor
from ..kernels import cpu
from ..kernels.cpu import SMALL
from ..layout import c_strides, in_bytes, is_c_contiguous
from .records import TensorInfo
from .registry import forget

__all__ = [
    "HOST",
    "MOVE",
    "SMALL",
    "Kernel",
    "compact_copy",
    "copier_of",
    "copy_into",
    "kernel_for",
    "own_copies_serve",
    "register_kernel",
]


HOST = "cpu strided copy"  # the name of all of the host's kernels; see `copier_of`
MOVE = "memmove"  # of C-contiguous host memory, whatever kernel is registered


class Kernel(NamedTuple):
    """A copy on one kind of device.

    Attributes
    ----------
    name : str
        What ``explain`` prints.
    copy : callable
        ``copy(dst, src, shape, dst_strides, src_strides, itemsize, stream)``: addresses, strides
        and item size in bytes; every element of ``src`` goes to its place in ``dst``.
    """

    name: str
    copy: Callable[..., None]


_kernels: dict[int, Kernel] = {}


def register_kernel(
    device: DeviceType | str, copy: Callable[..., None] | None, *, name: str | None = None
) -> None:
    """Use ``copy`` for every strided copy on a kind of device.

    On the host, C-contiguous memory that stays so is moved without it, as ``explain`` tells.

    Parameters
    ----------
    device : DeviceType or str
        Such as ``"cpu"`` or ``DeviceType.CUDA``.
    copy : callable or None
        ``copy(dst, src, shape, dst_strides, src_strides, itemsize, stream)``: addresses as ints,
        shape and strides as tuples, strides and item size in bytes, stream a handle or None. None
        takes the registration back.
    name : str, optional
        What ``explain`` prints; by default the function's own name.

    Raises
    ------
    ValueError
        For one device of a kind: a kernel copies on all of them.
    TypeError
        For a kernel that is not callable, or a name that is not a string.
    """
    kind = _kind_of(device)
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name is a string that explain() prints, got {name!r}")
    if copy is None:
        _kernels.pop(kind, None)
    elif callable(copy):
        _kernels[kind] = Kernel(name or str(getattr(copy, "__name__", copy)), copy)
    else:
        raise TypeError(f"a kernel is a callable, got {copy!r}")
    forget()


def _kind_of(device: object) -> int:
    parsed = Device.parse(device)
    if parsed.id or (isinstance(device, str) and ":" in device):
        kind = str(Device(parsed.type)).partition(":")[0]
        raise ValueError(
            f"{device!r} is one device, and a kernel serves a kind of device: pass {kind!r}"
        )
    return int(parsed.type)


def own_copies_serve() -> bool:
    """Whether libraries may copy small arrays on the CPU themselves: no kernel is registered."""
    return DeviceType.CPU not in _kernels


def kernel_for(device: Device) -> Kernel | None:
    """Return the kernel that copies on a device; None if there is none."""
    found = _kernels.get(device.type)
    if found is None and device.host:
        return _CPU
    return found


_CPU = Kernel(HOST, cpu.copy)


def copier_of(info: TensorInfo) -> str:
    """Name what would make strided host memory contiguous, for ``explain``."""
    shape, itemsize = info.shape, info.itemsize
    return cpu.describe(
        shape, c_strides(shape, itemsize), in_bytes(info.strides, itemsize), itemsize
    )


def compact_copy(tensor: Tensor) -> ManagedTensor:
    """Copy host memory to one C-contiguous block, aligned to 64 bytes."""
    block = ManagedTensor.allocate(tensor.shape, tensor.dtype, padded=tensor.padded)
    copy_into(block, tensor)
    return block


def copy_into(destination: Tensor, source: Tensor, stream: int | None = None) -> None:
    """Copy the elements of ``source`` to those of ``destination``: same shape, dtype and device."""
    dtype, shape, host = source.dtype, source.shape, source.device.host
    itemsize = dtype.itemsize
    if 0 in shape:
        return
    kernel = kernel_for(source.device)
    packed = dtype.subbyte and not source.padded
    # The host's own kernel finds one run by itself, and is not handed what has no addresses.
    if host and (packed or kernel is not _CPU) and _in_c_order(source, destination):
        cpu.flat.copy(destination.pointer, source.pointer, source.nbytes)
        return
    if packed:
        raise ValueError("packed sub-byte elements have no addresses: only C order is copied")
    if kernel is None:
        raise BufferError(f"no kernel copies on {source.device}: arraybridge.register_kernel one")
    kernel.copy(
        destination.pointer,
        source.pointer,
        shape,
        in_bytes(destination.strides, itemsize),
        in_bytes(source.strides, itemsize),
        itemsize,
        stream,
    )


def _in_c_order(*tensors: Tensor) -> bool:
    return all(is_c_contiguous(tensor.shape, tensor.strides) for tensor in tensors)
