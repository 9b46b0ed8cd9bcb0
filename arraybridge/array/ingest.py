"""``from_dlpack`` and ``from_pointer``: make an Array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from ctypes import c_void_p
from typing import Any

import numpy

from ..dispatch.execute import execute
from ..dispatch.library import Library, place_named
from ..dispatch.plan import checked_copy
from ..dispatch.records import ConversionError
from ..dispatch.registry import KNOWN, RECORDS, library_named
from ..dispatch.route import route_between
from ..dlpack import DataType, ManagedTensor
from ..protocols.objects import LIBRARY as PROTOCOL
from ..protocols.objects import as_source
from .carrier import Array
from .extent import check_extent
from .native_array import NativeArray


def from_dlpack(x: Any, /, *, device: object = None, copy: bool | None = None) -> Array:
    """Make an :class:`Array` over anything that supports DLPack.

    Parameters
    ----------
    x : array, object or capsule
        A library's array, anything with ``__dlpack__``, or a bare capsule, which is consumed.
    device : Device, (int, int), str or a library's own device, optional
        The device of the result; without it the data stays where it is.
    copy : bool, optional
        None: share unless ``device`` asks for a copy; False: share or fail; True: copy.

    Returns
    -------
    Array
        Only metadata is read, whatever the device.

    Raises
    ------
    TypeError
        If ``x`` does not support DLPack.
    ConversionError
        A BufferError: if it has no DLPack type, or ``copy=False`` cannot be kept.

    Notes
    -----
    Array API standard 2025.12, ``from_dlpack``.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import torch
    >>> t = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> x = ab.from_dlpack(t)
    >>> (x * x).native                              # the gradient goes on
    tensor([1., 4.], grad_fn=<MulBackward0>)
    >>> x.to("numpy")
    Traceback (most recent call last):
        ...
    arraybridge.ConversionError: gradients are tracked and would be cut silently: pass
        x.native.detach()
    """
    if device is None and copy is None:
        try:
            known = KNOWN[type(x)].wrap
        except KeyError:
            known = RECORDS[type(x)].wrap
        if known is not None and known[1](x):
            array: Array = known[0](x)
            return array
    copy = checked_copy(copy)
    if device is not None:
        device = place_named(device)
    native: Any
    native, library = as_source(x)
    if library.in_pieces:
        from ..protocols.assembled import whole

        native, library = whole(native, copy is False), PROTOCOL
    info = library.describe(native)
    if info.refused and not library.carries(native):
        raise ConversionError(info.refused)
    if copy or (device is not None and device != info.device):
        target = library
        if library is PROTOCOL:
            target = library_named("numpy") if info.device.host else library
        held = library.held(native)
        route, info = route_between(held, library, target, device=device, copy=copy)
        result = execute(held, library, target, route, info)
        return _maker(target, type(result))(result)
    make = _maker(library, type(native))
    if native is x:
        RECORDS[type(x)].wrap = make, library.carries
    return make(native)


def _maker(library: Library, kind: type) -> Callable[[Any], Array]:
    """Return the function that makes Arrays of one array type, with operators if possible."""
    cls: type[NativeArray] | None = library.array_class()
    if cls is None:
        return lambda native: Array(native, library)
    return cls._taken if issubclass(kind, numpy.ndarray) and kind is not numpy.ndarray else cls._of


class _Lease:
    """A lease of memory: keeps the owner alive, and calls the deleter once at the end."""

    __slots__ = ("deleter", "held", "owner", "pointer")

    def __init__(self, owner: Any, held: Any, deleter: Any, pointer: Any) -> None:
        self.owner = owner
        self.held = held
        self.deleter = deleter
        self.pointer = pointer

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
    """Make an :class:`Array` over memory that somebody else owns.

    Parameters
    ----------
    ptr : int or ctypes.c_void_p
        An address, or the handle of a buffer on devices that use handles.
    shape : tuple of int, or int
    dtype : DataType, str or a library's dtype
        ``"float32"``, ``numpy.dtype("f4")``, ``torch.float32``, ...
    device : Device, (int, int), str or a library's own device
        The device of the memory.
    strides : tuple of int, or int, optional
        In elements; C order by default.
    byte_offset : int
        Bytes from ``ptr`` to the first element.
    owner : object, optional
        Kept alive as long as the Array or anything exported from it. If the memory is that of the
        owner's buffer (a ``bytearray``, an ``mmap``), the owner cannot be resized or closed in the
        meantime.
    deleter : callable, optional
        Called once with ``ptr`` when the last of those is gone (a ctypes function will do).
    readonly : bool
        Whether consumers may not write. They may not either if the owner's memory is read-only.

    Returns
    -------
    Array
        Of no library: ``x.library`` is ``"dlpack"``.

    Raises
    ------
    MalformedTensorError
        A BufferError, for memory that cannot exist. The deleter is not called, and the memory
        remains the caller's.
    TypeError, ValueError
        For numbers that are not integers, a dtype or a device unknown to DLPack, or elements
        outside the memory of an owner of known size: a buffer, or an array of any library.

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
        of its owner's memory; the c_float_Array_6 has 24: correct them, or pass as owner
        what has all
    """
    if deleter is not None and not callable(deleter):
        raise TypeError(f"deleter is a callable that takes the pointer, got {deleter!r}")
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
        tensor.owner = _Lease(owner, held, deleter, ptr)
    return Array(tensor, PROTOCOL)


def _data_type(dtype: Any) -> DataType:
    """Return the data type of a name or of any library's dtype, by its name or its repr."""
    name = dtype if isinstance(dtype, str) else None
    if dtype is None:  # which is float64 to NumPy
        raise TypeError("dtype is None: from_pointer must be told what the memory holds")
    if hasattr(dtype, "to_pandas_dtype"):  # Arrow's, whose float is 32 bits
        with suppress(NotImplementedError):
            dtype = dtype.to_pandas_dtype()
    _check_byte_order(dtype)
    name = name or getattr(dtype, "name", None) or getattr(dtype, "__name__", None)
    if name is None and type(dtype).__name__.lower().endswith("type"):
        name = str(dtype)  # torch.float32
    if not isinstance(name, str):
        raise TypeError(f"dtype is a DataType, a library's dtype or a name, got {dtype!r}")
    name = name.rpartition(".")[2]
    try:
        return DataType.named(name if name is dtype else name.lower())  # Paddle's is FLOAT32
    except ValueError:
        with suppress(TypeError):
            return DataType.named(numpy.dtype(dtype).name)  # "f4", float
        raise


def _check_byte_order(dtype: Any) -> None:
    """Refuse the other byte order, which neither the name nor DLPack can express."""
    swapped = isinstance(dtype, numpy.dtype)
    if isinstance(dtype, str) and dtype.startswith(("<", ">")):
        with suppress(TypeError):
            dtype, swapped = numpy.dtype(dtype), True
    if swapped and not dtype.isnative:
        native = dtype.newbyteorder("=")
        raise TypeError(
            f"dtype {dtype.str!r} is not in this machine's byte order, and DLPack has no other: "
            f"convert the data first, x.astype({native.str!r}) of a NumPy array, and pass its "
            "pointer"
        )
