"""The registry of copy kernels by device type, and copies of core tensors made with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..dlpack import DataType, Device, DeviceType, ManagedTensor, Tensor
from ..layout import canonical
from .library import registration_changed

# Below this many bytes NumPy copies, which is loaded anyway; above, Numba is worth its import. NumPy
# reaches a few GB/s on strided layouts, the import costs half a second.
NUMBA_FROM_BYTES = 1 << 20


class Kernel(NamedTuple):
    """A copy on one kind of device.

    Attributes
    ----------
    name : str
        What ``explain`` prints.
    copy : callable
        ``copy(dst, src, shape, dst_strides, src_strides, itemsize, stream)``: addresses, strides and
        item size in bytes; every element of ``src`` goes to its place in ``dst``.
    """

    name: str
    copy: Callable[..., None]


_kernels: dict[int, Kernel] = {}


def register_kernel(
    device: DeviceType | str, copy: Callable[..., None], *, name: str | None = None
) -> None:
    """Use ``copy`` for every strided copy on a kind of device.

    Parameters
    ----------
    device : DeviceType or str
        Such as ``"cpu"`` or ``DeviceType.CUDA``.
    copy : callable
        ``copy(dst, src, shape, dst_strides, src_strides, itemsize, stream)``: addresses as ints, shape
        and strides as tuples, strides and item size in bytes, stream a handle or None. None instead
        of a callable takes the registration back.
    name : str, optional
        What ``explain`` prints; by default the function's own name.
    """
    kind = Device.parse(device).type
    if copy is None:
        _kernels.pop(kind, None)
    elif callable(copy):
        _kernels[kind] = Kernel(name or getattr(copy, "__name__", repr(copy)), copy)
    else:
        raise TypeError(f"a kernel is a callable, got {copy!r}")
    registration_changed()


def kernel_for(device: Device, nbytes: int) -> Kernel | None:
    """The kernel that copies ``nbytes`` on a device; None if there is none."""
    found = _kernels.get(device.type)
    if found is None and device.host:
        return _NUMBA if nbytes >= NUMBA_FROM_BYTES else _NUMPY
    return found


def _numba_copy(dst, src, shape, dst_strides, src_strides, itemsize, stream=None):
    from ..kernels import cpu

    plan = canonical(shape, dst_strides, src_strides, itemsize)
    cpu.copy(
        dst + plan.dst_offset,
        src + plan.src_offset,
        plan.shape,
        plan.dst_strides,
        plan.src_strides,
        plan.itemsize,
    )


def _numpy_copy(dst, src, shape, dst_strides, src_strides, itemsize, stream=None):
    import numpy as np

    target = np.asarray(Memory(dst, shape, dst_strides, f"|V{itemsize}", False))
    source = np.asarray(Memory(src, shape, src_strides, f"|V{itemsize}", True))
    unsigned = _UNSIGNED.get(itemsize)
    if unsigned:  # NumPy copies numbers faster than bytes without a meaning
        target, source = target.view(unsigned), source.view(unsigned)
    target[...] = source


_UNSIGNED = {1: "u1", 2: "u2", 4: "u4", 8: "u8"}
_NUMBA = Kernel("numba strided copy", _numba_copy)
_NUMPY = Kernel("numpy copy", _numpy_copy)


class Memory:
    """Memory at an address, for ``numpy.asarray``: the array keeps this object, and so the owner.

    Strides are in bytes. Source: NumPy's array interface protocol, version 3.
    """

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, address, shape, strides, typestr, readonly, owner=None):
        self.owner = owner
        self.__array_interface__ = {
            "data": (address, readonly),
            "shape": shape,
            "strides": strides,
            "typestr": typestr,
            "version": 3,
        }


def in_bytes(strides: tuple[int, ...], dtype: DataType) -> tuple[int, ...]:
    """Strides in elements as strides in bytes."""
    itemsize = dtype.itemsize
    return tuple(stride * itemsize for stride in strides)


def compact_copy(tensor: Tensor) -> ManagedTensor:
    """A C-contiguous copy of host memory: one block, aligned to 64 bytes."""
    block = ManagedTensor.allocate(tensor.shape, tensor.dtype, padded=tensor.padded)
    copy_into(block, tensor)
    return block


def copy_into(destination: Tensor, source: Tensor, stream: int | None = None) -> None:
    """Copy the elements of ``source`` to those of ``destination``: same shape, dtype and device."""
    dtype, shape = source.dtype, source.shape
    if 0 in shape:
        return
    if dtype.subbyte and not source.padded:
        # Packed elements have no addresses of their own; compact ones are copied as bytes.
        shape, itemsize = (source.nbytes,), 1
        source_strides = destination_strides = (1,)
    else:
        itemsize = dtype.itemsize
        source_strides = in_bytes(source.strides, dtype)
        destination_strides = in_bytes(destination.strides, dtype)
    kernel = kernel_for(source.device, source.nbytes)
    kernel.copy(
        destination.pointer,
        source.pointer,
        shape,
        destination_strides,
        source_strides,
        itemsize,
        stream,
    )


