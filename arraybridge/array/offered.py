"""The C exchange API of Arrays: ``__dlpack_c_exchange_api__`` of each concrete class.

The native code (``machine_code.offered``) is loaded when a consumer first asks for the attribute,
or an Array is first exported. It exports plain NumPy arrays and PyTorch tensors, and what JAX
shares with NumPy, by itself; everything else comes here, and goes the way of ``__dlpack__``.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from ctypes import c_int32, c_int64, c_uint8, c_void_p
from functools import cache, wraps
from typing import Any

import numpy

from ..dispatch.records import TensorInfo
from ..dispatch.registry import library_named
from ..dlpack import CPU, VERSION, DataType, Device, ManagedTensor, acquire
from ..dlpack.deleters import UNDER_LOCK, functions
from ..dlpack.header import SET_ERROR, TENSOR_BYTES, TENSOR_FIELDS, int64s
from ..dlpack.offered import Offer, address_of, capsule_of, offer
from ..dlpack.validate import check_ndim, checked_device, checked_dtype
from ..exchange import imported
from ..layout import c_strides
from ..machine_code.offered import WAYS
from ..machine_code.tabled import keep
from ..protocols.numpy_dtypes import CHARS, dlpack_dtype

__all__ = ["offer_exchange"]

_NAME = "__dlpack_c_exchange_api__"


class _Pending:
    """The attribute, until somebody asks for it."""

    __slots__ = ("cls", "slow")

    def __init__(self, cls: Any) -> None:
        self.cls = cls
        self.slow = cls.__dlpack__

    def __get__(self, array: Any, cls: type) -> object:
        capsule = self.install()
        if capsule is None:
            raise AttributeError(f"no {_NAME} of {cls.__name__}: it needs llvmlite here")
        return capsule

    def install(self) -> object:
        """Make the table of the class; None where there is no native code.

        Of several threads that do, each has a table of its own, and all stay.
        """
        cls, method, capsule = self.cls, self.slow, None
        with suppress(ImportError):
            made = _offered(cls, self.slow)
            method, capsule = made.method, made.capsule
            setattr(cls, _NAME, capsule)
        if cls._export_way in _EXPORTED:
            cls.__dlpack__ = method
        return capsule


def offer_exchange(cls: Any) -> None:
    """Give a class of Arrays the attribute, and a native ``__dlpack__`` from its first call on.

    Subclasses that a program makes inherit both, and are never taken the quick way.
    """
    pending = _Pending(cls)
    setattr(cls, _NAME, pending)
    if cls._export_way in _EXPORTED:

        @wraps(pending.slow)
        def first(self: Any, **keywords: Any) -> object:
            pending.install()
            return pending.slow(self, **keywords)

        cls.__dlpack__ = first


_EXPORTED = ("array", "tensor")  # what of `_export_way` is for capsules too


def _offered(cls: Any, slow: Callable[..., object]) -> Offer:
    made: Offer

    @wraps(slow)
    def dlpack(self: Any, *args: Any, **keywords: Any) -> object:
        _watch(made)
        # Elsewhere streams are to be ordered.
        if type(self) is cls and _plain(*args, **keywords) and self.__dlpack_device__() == CPU:
            address = self._exported()
            if address:
                return capsule_of(address)
        return slow(self, *args, **keywords)

    def managed(x: Any) -> int:
        _watch(made)
        if type(x) is not cls:
            return acquire(x, stream=-1).to_struct(as_is=True)
        address: int = x._exported()
        return address or address_of(slow(x, stream=-1, max_version=VERSION))

    def adopt(address: int) -> object:
        return cls._of(imported(ManagedTensor.from_struct(address, True), cls._home.name))

    def stream(place: int) -> int:
        handle = cls._home.current_stream(checked_device(place & 0xFFFFFFFF, place >> 32))
        return 0 if handle in (None, 1) else handle  # 1: the legacy default stream, which is NULL

    def allocate(address: int) -> None:
        prototype, out, context, error = struct.unpack("4Q", ctypes.string_at(address, 32))
        try:
            made = _allocated(cls, prototype)
        except BaseException as problem:
            said = f"{type(problem).__name__}", f"{problem}" or repr(problem)
            SET_ERROR(error)(context, *(text.encode() for text in said))
        else:
            c_void_p.from_address(out).value = made

    words, own = cls._export_words()
    native = object()
    array = cls._of(native)
    words = {
        "way": WAYS[cls._export_way] if _arrays_are_known() else 0,
        "native": slot(array, native),
        "ndarray": numpy.ndarray,
        "codes": ctypes.addressof(_codes()),
        "modules": sys.modules,
        "locking": UNDER_LOCK,
        **words,
    }
    calls = {"managed": managed, "adopt": adopt, "stream": stream, "allocate": allocate}
    made = offer(cls, calls, dlpack, words, own)
    return made


def _plain(
    *args: object,
    stream: object = None,
    max_version: Any = None,
    dl_device: object = None,
    copy: object = None,
    **others: object,
) -> bool:
    """Whether a versioned capsule is asked for, and nothing else."""
    if args or others or not (stream is None is dl_device and (copy is None or copy is False)):
        return False
    return type(max_version) is tuple and len(max_version) == 2 and max_version >= (1, 0)


def _watch(made: Offer) -> None:
    """Take the quick way again, once the code is known that calls deleters under a lock."""
    if made.table.modules and UNDER_LOCK in sys.modules:
        functions()
        made.table.modules = 0


def _allocated(cls: Any, prototype: int) -> int:
    """Return the address of a new struct, on memory of the library of a class."""
    fields = TENSOR_FIELDS.unpack_from(TENSOR_BYTES.from_address(prototype))
    _, kind, index, ndim, code, bits, lanes, at, _, _ = fields
    check_ndim(ndim, at)
    device: Device = checked_device(kind, index)
    dtype: DataType = checked_dtype(code, bits, lanes)
    window, unpack = int64s(ndim)
    shape = unpack(window(at)) if ndim else ()
    if device == CPU:
        return ManagedTensor.allocate(shape, dtype).hand_over()
    name = cls._home.name
    try:
        x = cls._home.empty(TensorInfo(name, 0, 0, shape, c_strides(shape), dtype, device))
    except NotImplementedError:
        raise BufferError(f"{name} allocates no memory on {device} for others") from None
    address: int = cls._home.export(x).to_struct()
    return address


def exported_view(view: numpy.ndarray) -> int:
    """Return the address of a new struct on a view of NumPy's that holds memory of another's."""
    numpy_class: Any = library_named("numpy").array_class()
    return address_of(numpy_class._of(view).__dlpack__(max_version=VERSION))


def slot(array: Any, value: object) -> int:
    """Return where in an object a slot is, by its value: bytes from the beginning."""
    for at in range(object.__basicsize__, type(array).__basicsize__, 8):
        if c_void_p.from_address(id(array) + at).value == id(value):
            return at
    raise ImportError(f"the slots of {type(array).__name__} are not where they were")


@cache
def _codes() -> Any:
    """Return the words of DLPack's types, by NumPy's type numbers; 0 where there is none."""
    words = (c_int64 * 24)()
    keep(words)
    for char in CHARS:
        dtype = numpy.dtype(char)
        kind = dlpack_dtype(dtype)
        if kind is not None and dtype.num < 24:
            shift = dtype.itemsize.bit_length() - 1
            words[dtype.num] = kind.code | kind.bits << 8 | kind.lanes << 16 | shift << 32
    return words


@cache
def _arrays_are_known() -> bool:
    """Whether NumPy's arrays, and Python's objects, lie in memory as the native code has it."""
    if object.__basicsize__ != 16 or numpy.ndarray.__basicsize__ < 72:
        return False  # free-threaded Python
    x = numpy.empty((5, 3), ">i4" if sys.byteorder == "little" else "<i4")[::2]
    kind = x.dtype
    at = id(x)
    window = c_int64 * 2
    return (
        c_void_p.from_address(at + 16).value == x.ctypes.data
        and c_int32.from_address(at + 24).value == 2
        and tuple(window.from_address(c_int64.from_address(at + 32).value)) == x.shape
        and tuple(window.from_address(c_int64.from_address(at + 40).value)) == x.strides
        and c_int64.from_address(at + 56).value == id(kind)
        and c_int32.from_address(at + 64).value == x.flags.num
        and chr(c_uint8.from_address(id(kind) + 26).value) == kind.byteorder
        and c_int32.from_address(id(kind) + 28).value == kind.num
    )
