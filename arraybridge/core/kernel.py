"""The registry of copy kernels by kind of device, and the copies made with them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from math import prod
from typing import Any, NamedTuple

from ..dlpack import Device, DeviceType, ManagedTensor, Tensor
from ..kernels import cpu
from ..layout import c_strides, canonical, in_bytes, is_c_contiguous
from .registry import forget


class NoKernel(ImportError):
    """Numba cannot compile the kernel, and the cache lacks it."""


class Kernel(NamedTuple):
    """A copy kernel for one kind of device; `explain` prints its name."""

    name: str
    # ``copy(dst, src, shape, dst_strides, src_strides, itemsize, stream)``: addresses; strides and
    # item size in bytes. Copies every element of ``src`` to its place in ``dst``.
    copy: Callable[..., None]
    several: bool = False  # whether it also takes the device's number

    def run(
        self,
        dst: int,
        src: int,
        shape: tuple[int, ...],
        dst_strides: tuple[int, ...],
        src_strides: tuple[int, ...],
        itemsize: int,
        stream: int | None,
        device: Device,
    ) -> None:
        """Copy on a device; strides in **bytes**. NoKernel if arraybridge's own is missing."""
        given = (dst, src, shape, dst_strides, src_strides, itemsize, stream)
        if not self.several:
            self.copy(*given)
            return
        try:
            self.copy(*given, device.id)
        except ImportError as error:
            forget()
            raise NoKernel(str(error)) from error


_kernels: dict[int, Kernel] = {}  # registered ones


def register_kernel(
    device: DeviceType | str, copy: Callable[..., None] | None, *, name: str | None = None
) -> None:
    """Use ``copy`` for every strided copy on a kind of device.

    On the host, a copy from C order to C order does not use it; ``explain`` names the kernel.

    Parameters
    ----------
    device : DeviceType or str
        The kind of device, such as ``"cpu"`` or ``DeviceType.CUDA``.
    copy : callable or None
        ``copy(dst, src, shape, dst_strides, src_strides, itemsize, stream)``, with addresses as
        ints, shape and strides as tuples, and strides and item size in bytes. The copy is queued on
        the stream, by the numbering of the array API standard. If the stream is None, the device
        has no streams and the copy must be complete on return. None instead of a callable removes
        the registration.
    name : str, optional
        The name that ``explain`` prints. By default, the function's own name.

    Raises
    ------
    ValueError
        If ``device`` has an index: a kernel serves all devices of a kind.
    TypeError
        If ``copy`` is not callable, or ``name`` is not a str.

    Examples
    --------
    >>> import ctypes, itertools
    >>> import arraybridge as ab
    >>> import numpy as np
    >>> def by_element(dst, src, shape, dst_strides, src_strides, itemsize, stream=None):
    ...     for index in itertools.product(*map(range, shape)):
    ...         to = dst + sum(i * step for i, step in zip(index, dst_strides))
    ...         origin = src + sum(i * step for i, step in zip(index, src_strides))
    ...         ctypes.memmove(to, origin, itemsize)
    >>> ab.register_kernel("cpu", by_element)
    >>> ab.explain(np.arange(3)[::-1], "torch").kernel
    'by_element'
    >>> ab.convert(np.arange(3)[::-1], "torch")
    tensor([2, 1, 0])
    >>> ab.register_kernel("cpu", None)             # the built-in one again
    """
    kind = _kind_of(device)
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name must be a string, which explain() prints; got {name!r}")
    if copy is None:
        _kernels.pop(kind, None)
    elif callable(copy):
        _kernels[kind] = Kernel(name or str(getattr(copy, "__name__", copy)), copy)
    else:
        raise TypeError(f"a kernel must be callable; got {copy!r}")
    forget()


def _kind_of(device: object) -> int:
    parsed = Device.parse(device)
    if parsed.id or (isinstance(device, str) and ":" in device):
        kind = str(Device(parsed.type)).partition(":")[0]
        raise ValueError(
            f"a kernel serves all devices of a kind, and {device!r} is one device: pass {kind!r}"
        )
    return int(parsed.type)


def own_copies_serve() -> bool:
    """Whether libraries may copy small arrays on the CPU: no kernel is registered for it."""
    return DeviceType.CPU not in _kernels


def kernel_for(device: Device) -> Kernel | None:
    """Return the kernel that copies on a device, or None."""
    found = _kernels.get(device.type)
    if found is None and device.type in ON_CUDA:
        kernel = _on_cuda()  # which notices a new driver
        return kernel if no_kernel(device) is None else None
    return host_kernel(device) if found is None and device.host else found


def host_kernel(device: Device) -> Kernel:
    """Return the kernel that copies in host memory."""
    return _kernels.get(device.type, _CPU)


def name_of(kernel: Kernel) -> str:
    """Return the name of a kernel of host memory; of NumPy's copy where ours are missing."""
    from ..kernels.cpu import loader

    why = loader.unavailable() if kernel is _CPU else None
    return kernel.name if why is None else f"NumPy's copy ({why})"


def _copy_on_host(*layout: Any) -> None:
    cpu.copy(*layout)


OWN = "arraybridge's own copy"  # one of several kernels; only developers need to know which
_CPU = Kernel(OWN, _copy_on_host)
ON_CUDA = frozenset({DeviceType.CUDA})  # the host's kernel copies managed memory


@cache
def _on_cuda() -> Kernel:
    from ..kernels import cuda
    from ..kernels.cuda import driver

    driver.forgetting(forget)
    return Kernel(OWN, cuda.copy, several=True)


def no_kernel(device: Device) -> str | None:
    """Return why arraybridge's own kernels cannot copy on a device, if it has any for it."""
    if device.type not in ON_CUDA:
        return None
    from ..kernels import cuda

    return cuda.unavailable()


def no_driver() -> str | None:
    """Return why CUDA memory cannot be reached, with or without a compiler."""
    from ..kernels.cuda import driver

    return driver.problem()


@lru_cache(1024)
def compact_strides(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the strides in **bytes** of a C-contiguous copy, and of the array itself."""
    return c_strides(shape, itemsize), in_bytes(strides, itemsize)


#: The least bytes for which a kernel is asked for, and those of a run that NumPy moves as fast.
LITTLE, ALONE = 1 << 10, 1 << 20


@lru_cache(1024)
def by_numpy(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Whether NumPy copies a layout, with strides in **bytes**, to C order as fast as a kernel."""
    nbytes = prod(shape) * itemsize
    if nbytes < LITTLE or is_c_contiguous(shape, strides, itemsize):
        return nbytes < ALONE
    from ..kernels.cpu import copying, plan

    form = canonical(shape, c_strides(shape, itemsize), strides, itemsize)
    return bool(form.shape) and nbytes < copying.least(plan.plan(form))


def compact_copy(tensor: Tensor) -> ManagedTensor:
    """Copy host memory to one C-contiguous block, aligned to 64 bytes."""
    block = ManagedTensor.allocate(tensor.shape, tensor.dtype, padded=tensor.padded)
    if is_c_contiguous(tensor.shape, tensor.strides):  # as in `copy_into`, but faster
        if 0 not in tensor.shape:
            cpu.copy_run(block.pointer, tensor.pointer, block.nbytes, block.fresh)
    else:
        copy_into(block, tensor, fresh=block.fresh)
    return block


NO_ADDRESSES = "packed sub-byte elements can only be copied in C order"


def copy_into(
    destination: Tensor, source: Tensor, stream: int | None = None, *, fresh: bool = False
) -> None:
    """Copy ``source`` to ``destination``, of the same shape, dtype and device.

    ``fresh``: the destination's memory has no pages yet.
    """
    dtype, shape, device = source.dtype, source.shape, source.device
    itemsize = dtype.itemsize
    if 0 in shape:
        return
    kernel = kernel_for(device)
    packed = dtype.subbyte and not source.padded
    # The host's own kernel detects C order itself, but cannot address packed elements.
    if device.host and (packed or kernel is not _CPU) and _in_c_order(source, destination):
        cpu.copy_run(destination.pointer, source.pointer, source.nbytes, fresh)
        return
    if kernel is None:
        raise BufferError(f"no kernel copies on {device}: add one with arraybridge.register_kernel")
    to, of = in_bytes(destination.strides, itemsize), in_bytes(source.strides, itemsize)
    if packed:
        if not _in_c_order(source, destination):
            raise ValueError(NO_ADDRESSES)
        shape, to, of, itemsize = (source.nbytes,), (1,), (1,), 1
    if fresh and kernel is _CPU:
        cpu.copy(destination.pointer, source.pointer, shape, to, of, itemsize, fresh=True)
        return
    kernel.run(destination.pointer, source.pointer, shape, to, of, itemsize, stream, device)


def _in_c_order(*tensors: Tensor) -> bool:
    return all(is_c_contiguous(tensor.shape, tensor.strides) for tensor in tensors)
