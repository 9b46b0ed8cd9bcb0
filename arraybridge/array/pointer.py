"""``from_pointer``: make an Array over memory with another owner."""

from collections.abc import Sequence
from ctypes import c_void_p
from typing import Any

from ..core.cast_rules import data_type_named
from ..core.library import place_named
from ..dlpack import ManagedTensor
from ..dlpack.validate import buffer_of
from ..protocols.from_object import LIBRARY as PROTOCOL
from .array import Array


class _Lease:
    """Keep the owner of memory alive, and call the deleter once at the end."""

    __slots__ = ("deleter", "held", "pointer")

    def __init__(self, held: Any, deleter: Any, pointer: Any) -> None:
        self.held, self.deleter, self.pointer = held, deleter, pointer

    def __del__(self) -> None:
        if self.deleter is not None:
            self.deleter(self.pointer)


def from_pointer(
    ptr: int | c_void_p,
    shape: int | Sequence[int],
    dtype: object,
    /,
    *,
    device: object,
    strides: int | Sequence[int] | None = None,
    byte_offset: int = 0,
    owner: object = None,
    deleter: object = None,
    readonly: bool = False,
) -> Array:
    """Make an :class:`Array` over memory at an address.

    Parameters
    ----------
    ptr : int or ctypes.c_void_p
        An address, or the handle of a buffer on a device that uses handles.
    shape : tuple of int, or int
        The extent of each axis.
    dtype : DataType, str or a library's dtype
        Such as ``"float32"``, ``numpy.dtype("f4")`` or ``torch.float32``.
    device : Device, (int, int), str or a library's own device
        The device of the memory.
    strides : tuple of int, or int, optional
        The stride of each axis, in elements. By default, C order.
    byte_offset : int
        The number of bytes from ``ptr`` to the first element.
    owner : object, optional
        The object that owns the memory, kept alive as long as the Array and all arrays made from
        it. A buffer (``bytearray``, ``mmap``, ``ndarray``) cannot be resized or closed in the
        meantime. An array that can be given other memory, such as a tensor, does not own it: pass
        its storage.
    deleter : callable, optional
        A function, also of ctypes, that is called once with ``ptr`` when the Array and all arrays
        made from it are gone.
    readonly : bool
        Whether consumers must not write. Memory of a read-only owner is always read-only.

    Returns
    -------
    Array
        An Array without a library: ``x.library`` is ``"dlpack"``.

    Raises
    ------
    MalformedTensorError
        If such memory cannot exist. This is a BufferError. The deleter is not called, and the
        memory remains yours.
    TypeError, ValueError
        If a number is not an integer, or DLPack lacks the dtype or device.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import ctypes
    >>> buffer = (ctypes.c_float * 6)(*range(6))
    >>> x = ab.from_pointer(ctypes.addressof(buffer), (2, 3), "float32", device="cpu", owner=buffer)
    >>> x.to("torch")
    tensor([[0., 1., 2.],
            [3., 4., 5.]])
    """
    if deleter is not None and not callable(deleter):
        raise TypeError(f"deleter must be a callable that takes the pointer, got {deleter!r}")
    if not getattr(dtype, "isnative", True):  # NumPy's
        raise ValueError(f"dtype is {dtype!r}: DLPack has only this machine's native byte order")
    tensor = ManagedTensor.adopt(
        ptr,
        shape,
        data_type_named(dtype),
        owner=owner,
        device=place_named(device),
        strides=strides,
        byte_offset=byte_offset,
        readonly=bool(readonly),
    )
    held = buffer_of(owner) if tensor.device.host else None
    if deleter is not None or held is not None:
        tensor.owner = _Lease((owner, held), deleter, ptr)
    return Array(tensor, PROTOCOL)
