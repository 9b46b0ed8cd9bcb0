"""The C exchange API: ``__dlpack_c_exchange_api__`` of a type, a table of C functions.

It is the fast path of torch, Paddle and cuda.core, and skips the checks of ``__dlpack__``: the
caller must look at gradients, conjugate and negative bits first. Nothing here synchronizes streams.
"""

import ctypes
from ctypes import byref, c_int64, c_void_p, py_object
from weakref import WeakKeyDictionary

from ..native import pyapi
from . import header
from .errors import DLPackError
from .managed import ManagedTensor
from .types import DataType, Device

_NEEDED = (
    "managed_tensor_from_py_object_no_sync",
    "managed_tensor_to_py_object_no_sync",
    "current_work_stream",
)


class ExchangeAPI:
    """The C exchange functions of one array type.

    Attributes
    ----------
    version : tuple of int
        The DLPack version of the table.
    table : DLPackExchangeAPI
        The addresses of the functions.

    Examples
    --------
    >>> from arraybridge import dlpack
    >>> import torch
    >>> api = dlpack.exchange_api(torch.Tensor)
    >>> x = torch.arange(3.0)
    >>> tensor = api.acquire(x)                     # owns the memory
    >>> tensor.pointer == x.data_ptr()
    True
    >>> api.wrap(tensor)
    tensor([0., 1., 2.])
    >>> api.empty((2, 3), dlpack.DataType("int8"), dlpack.CPU).dtype
    torch.int8
    >>> api.current_stream(dlpack.CPU), api.version[0], api.table.header.version.major
    (0, 1, 1)
    """

    __slots__ = ("_allocate", "_export", "_import", "_stream", "table", "version")

    def __init__(self, table: header.DLPackExchangeAPI) -> None:
        self.table = table
        version = table.header.version
        self.version = (version.major, version.minor)
        self._export = header.MANAGED_FROM_PY_OBJECT(table.managed_tensor_from_py_object_no_sync)
        self._import = header.MANAGED_TO_PY_OBJECT(table.managed_tensor_to_py_object_no_sync)
        # It may be NULL by the header, and is then false.
        self._allocate = header.MANAGED_TENSOR_ALLOCATOR(table.managed_tensor_allocator or 0)
        self._stream = header.CURRENT_WORK_STREAM(table.current_work_stream)

    def acquire(self, x: object) -> ManagedTensor:
        """Return an owning tensor on ``x``, whose type must be exactly that of the table."""
        out = c_void_p()
        # ctypes raises a Python exception that the C function set (PYFUNCTYPE).
        if self._export(id(x), byref(out)) or not out.value:
            raise DLPackError(f"{type(x).__name__} could not be exported")
        return ManagedTensor.from_struct(out.value, versioned=True)

    def wrap(self, tensor: ManagedTensor) -> object:
        """Make an array of the library on ``tensor``; the struct is its, even if that fails."""
        return self._imported(tensor.to_struct(), tensor)

    def _imported(self, address: int | None, what: object) -> object:
        out = py_object()
        if self._import(address, byref(out)) or not out:
            raise DLPackError(f"{what} could not be imported")
        return pyapi.take_object(out)

    def empty(self, shape: tuple[int, ...], dtype: DataType, device: Device) -> object:
        """Allocate by the library, in C order; MemoryError, or DLPackError with its message."""
        if not self._allocate:
            raise DLPackError("the library's C exchange API has no allocator")
        extents = (c_int64 * len(shape))(*shape)
        prototype = header.DLTensor(
            device=header.DLDevice(device.type, device.id),
            ndim=len(shape),
            dtype=header.DLDataType(*dtype),
            shape=ctypes.addressof(extents),
        )
        said: list[str] = []

        def note_error(_: int, kind: bytes | None, message: bytes | None) -> None:
            said.append((message or kind or b"").decode(errors="replace").partition("\n")[0])

        tensor = c_void_p()
        if self._allocate(byref(prototype), byref(tensor), None, header.SET_ERROR(note_error)):
            why = " ".join(said) or "its allocator failed"
            # PyTorch calls every error a MemoryError.
            error = MemoryError if "memory" in why or "alloc" in why else DLPackError
            raise error(f"no array of {dtype} and shape {shape} on {device}: {why}")
        return self._imported(tensor.value, f"the array allocated for shape {shape}")

    def current_stream(self, device: Device) -> int:
        """Return the handle of the library's current stream on a device; 0 on the CPU."""
        out = c_void_p()
        if self._stream(device.type, device.id, byref(out)):
            raise DLPackError(f"no current stream for {device}")
        return out.value or 0


_tables: WeakKeyDictionary[type, ExchangeAPI] = WeakKeyDictionary()


def exchange_api(array_type: type) -> ExchangeAPI | None:
    """Return the C exchange functions of an array type, or None.

    A subclass that inherits the attribute gets None, because the table serves only instances of the
    exact type. Among tables chained by ``prev_api``, the one with a supported major version is
    used. A table that lacks required functions is ignored. Every call returns the same object.

    Examples
    --------
    >>> from arraybridge import dlpack
    >>> import numpy as np, torch
    >>> dlpack.exchange_api(torch.Tensor).acquire(torch.zeros(3)).shape
    (3,)
    >>> dlpack.exchange_api(np.ndarray) is None     # NumPy has none
    True
    """
    api = _tables.get(array_type)
    if api is None and "__dlpack_c_exchange_api__" in array_type.__dict__:
        api = _look_up(getattr(array_type, "__dlpack_c_exchange_api__", None))
        if api is not None:
            _tables[array_type] = api
    return api


def _look_up(capsule: object) -> ExchangeAPI | None:
    try:
        address = pyapi.capsule_pointer(capsule, b"dlpack_exchange_api")
    except ValueError:  # no capsule, or one with another name
        return None
    while address:
        table = header.DLPackExchangeAPI.from_address(address)
        if table.header.version.major == header.VERSION[0]:
            return ExchangeAPI(table) if all(getattr(table, name) for name in _NEEDED) else None
        address = table.header.prev_api  # all that is known of a table of another version
    return None
