"""``from_pointer``: make an Array over memory with another owner."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from ctypes import c_void_p
from typing import Any

import numpy
from numpy.lib.array_utils import byte_bounds

from ..core.library import place_named
from ..core.registry import library_named, package_of
from ..dlpack import DataType, Device, ManagedTensor, is_capsule
from ..dlpack.validate import extent
from ..layout import span
from ..protocols.from_object import LIBRARY as PROTOCOL
from ..protocols.from_object import as_source
from .array import Array


class _Lease:
    """Keeps the owner of memory alive, and calls the deleter once at the end."""

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
        An object that is kept alive as long as the Array and all arrays made from it. If the memory
        belongs to the owner's buffer (a ``bytearray``, an ``mmap``), the owner cannot be resized or
        closed in the meantime.
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
        If a number is not an integer, DLPack lacks the dtype or device, or elements are outside the
        memory of an owner of known size (a buffer or an array).

    Examples
    --------
    >>> import arraybridge as ab
    >>> import ctypes
    >>> buffer = (ctypes.c_float * 6)(*range(6))
    >>> x = ab.from_pointer(ctypes.addressof(buffer), (2, 3), "float32", device="cpu", owner=buffer)
    >>> x.to("torch")
    tensor([[0., 1., 2.],
            [3., 4., 5.]])
    >>> buffer[0] = 7
    >>> float(x.to("numpy")[0, 0])                  # the same memory
    7.0
    >>> ab.from_pointer(ctypes.addressof(buffer), (9,), "float32", device="cpu", owner=buffer)
    Traceback (most recent call last):
        ...
    ValueError: shape (9,) of float32 with strides (1,) (elements) needs 36 bytes, 0 to 36
        of its owner's memory; the c_float_Array_6 has 24: correct them, or pass the
        owner of all of it
    """
    if deleter is not None and not callable(deleter):
        raise TypeError(f"deleter must be a callable that takes the pointer, got {deleter!r}")
    kind = dtype if isinstance(dtype, DataType) else _data_type(dtype)
    tensor = ManagedTensor.adopt(
        ptr,
        shape,
        kind,
        owner=owner,
        device=place_named(device),
        strides=strides,
        byte_offset=byte_offset,
        readonly=bool(readonly),
    )
    held = check_extent(tensor, tensor.data)
    if deleter is not None or held is not None:
        tensor.owner = _Lease((owner, held), deleter, ptr)
    return Array(tensor, PROTOCOL)


def _data_type(dtype: Any) -> DataType:
    """Return the data type of a name or of any library's dtype, by its name or its repr."""
    name = dtype if isinstance(dtype, str) else None
    if dtype is None:  # NumPy would read it as float64
        raise TypeError('dtype is None: pass the type of the elements, such as "float32"')
    if hasattr(dtype, "to_pandas_dtype"):  # Arrow's; its "float" has 32 bits
        with suppress(NotImplementedError):
            dtype = dtype.to_pandas_dtype()
    _check_byte_order(dtype)
    name = name or getattr(dtype, "name", None) or getattr(dtype, "__name__", None)
    if name is None and type(dtype).__name__.lower().endswith("type"):
        name = str(dtype)  # torch.float32
    if not isinstance(name, str):
        raise TypeError(f"dtype must be a DataType, a library's dtype or a name, got {dtype!r}")
    name = name.rpartition(".")[2]
    try:
        return DataType.named(name if name is dtype else name.lower())  # Paddle's is FLOAT32
    except ValueError:
        with suppress(TypeError):
            return DataType.named(numpy.dtype(dtype).name)  # "f4", float
        raise


def _check_byte_order(dtype: Any) -> None:
    """Raise TypeError for the other byte order, which neither the name nor DLPack can express."""
    swapped = isinstance(dtype, numpy.dtype)
    if isinstance(dtype, str) and dtype.startswith(("<", ">")):
        with suppress(TypeError):
            dtype, swapped = numpy.dtype(dtype), True
    if swapped and not dtype.isnative:
        native = dtype.newbyteorder("=")
        raise TypeError(
            f"dtype {dtype.str!r} is not in this machine's byte order, the only one that DLPack "
            f"has: convert the data first, x.astype({native.str!r}) for a NumPy array, and pass "
            "the pointer of the result"
        )


def check_extent(tensor: ManagedTensor, pointer: int) -> Any:
    """Check that a tensor in its owner's memory is within it; ValueError if not.

    ``pointer`` is the address before the byte offset. If the memory is read-only, the tensor
    becomes so. Returns an object that holds the memory: the owner's exported buffer, so that the
    owner cannot be resized or closed, or its library's export, as an array's memory can be
    replaced. None if the tensor is outside the owner's memory, or the owner's memory is unknown.
    """
    owner = tensor.owner
    if owner is None or not tensor.device.addressable:
        return None
    known = _memory_of(owner, tensor.device)
    if known is None:
        return None
    low, high, readonly, held = known
    strides, first, end = extent(tensor.shape, tensor.strides, tensor.dtype)
    begin, end = tensor.pointer + first, tensor.pointer + end
    if not (low <= pointer <= high or (begin < high and end > low)):
        return None  # an owner may keep other memory alive
    if begin != end and not low <= begin <= end <= high:
        raise ValueError(
            f"shape {tensor.shape} of {tensor.dtype} with strides {strides} (elements) needs "
            f"{end - begin} bytes, {begin - low} to {end - low} of its owner's memory; the "
            f"{type(owner).__name__} has {high - low}: correct them, or pass the owner of all of it"
        )
    tensor.readonly |= readonly
    return held


def _memory_of(owner: Any, device: Device) -> tuple[int, int, bool, Any] | None:
    """Return (first byte, end, read-only, holder) of an object's memory; None if unknown."""
    root = _root(owner)
    if device.host:
        kind = type(root)
        if package_of(kind) == "multiprocessing":  # SharedMemory
            root = getattr(root, "buf", root)
        if all(callable(getattr(kind, name, None)) for name in ("data_ptr", "nbytes")):
            return root.data_ptr(), root.data_ptr() + root.nbytes(), False, None  # PyTorch storage
        if isinstance(root, numpy.ndarray):
            return *byte_bounds(root), _readonly(owner), None
        try:
            held = numpy.frombuffer(root, numpy.uint8)
        except (TypeError, ValueError, BufferError):  # no buffer, or not a contiguous one
            pass
        else:
            place = held.ctypes.data
            return place, place + held.nbytes, _readonly(owner) or not held.flags.writeable, held
    if is_capsule(owner) or isinstance(owner, type):
        return None
    try:
        x, library = as_source(owner)
        info = library.describe(x)
        if info.refused and hasattr(x, "detach"):  # gradients do not matter for memory
            x = x.detach()
            info = library.describe(x)
    except Exception:  # an owner may be any object
        return None
    if info.refused or info.pending or (info.device != device and not info.device.host):
        return None
    low, high = (place * info.itemsize for place in span(info.shape, info.strides, 1))
    tensor = library.export_described(x, info)
    return info.pointer + low, info.pointer + high, info.readonly, tensor


def _readonly(owner: Any) -> bool:
    """Whether a view is read-only although its base is writable."""
    if isinstance(owner, memoryview):
        return owner.readonly
    return isinstance(owner, numpy.ndarray) and library_named("numpy").describe(owner).readonly


def _root(owner: Any) -> Any:
    """Return the object at the end of a chain of views, which has all of the memory."""
    while True:
        try:
            base = owner.obj if isinstance(owner, memoryview) else owner.base
        except (AttributeError, ValueError):  # it has none, or was released
            return owner
        if base is None or not isinstance(owner, memoryview | numpy.ndarray):
            return owner
        if not isinstance(base, memoryview | numpy.ndarray):
            try:
                memoryview(base)
            except TypeError:
                return owner  # over an object with an array interface only the view is known
        owner = base
