"""Hand-made producers: managed tensors whose every field can be set, on real memory.

They share nothing with `arraybridge.dlpack` but the layout of the structs, and count the calls of
their deleters.
"""

from __future__ import annotations

import ctypes
import weakref
from ctypes import c_char_p, c_int64, c_void_p, py_object

from arraybridge.dlpack import DLManagedTensor, DLManagedTensorVersioned

__all__ = ["Managed", "Producer", "capsule_name", "new_capsule"]

_api = ctypes.pythonapi


def _c(name, restype, *argtypes):
    return ctypes.PYFUNCTYPE(restype, *argtypes)((name, _api))


_new = _c("PyCapsule_New", py_object, c_void_p, c_void_p, c_void_p)
_name = _c("PyCapsule_GetName", c_char_p, py_object)
_is_valid = _c("PyCapsule_IsValid", ctypes.c_int, c_void_p, c_char_p)
_pointer = _c("PyCapsule_GetPointer", c_void_p, c_void_p, c_char_p)

_names: dict[bytes, ctypes.Array] = {}  # a capsule's name must outlive it
_live: dict[int, Managed] = {}  # by address, while somebody may call the deleter
_deleted: weakref.WeakValueDictionary[int, Managed] = weakref.WeakValueDictionary()


@ctypes.CFUNCTYPE(None, c_void_p)
def _deleter(address):
    managed = _live.get(address) or _deleted[address]  # where it is called once too often
    managed.deleted += 1
    if managed.deleted >= managed.handed_out:
        _deleted[address] = managed
        _live.pop(address, None)


@ctypes.CFUNCTYPE(None, c_void_p)
def _destructor(capsule):
    for name in (b"dltensor", b"dltensor_versioned"):
        if _is_valid(capsule, name):
            _deleter(_pointer(capsule, name))


def address_of(function) -> int:
    """The address of a C function, ours or a library's."""
    return ctypes.cast(function, c_void_p).value


def new_capsule(pointer: int, name: bytes | None, destructor: int | None = None) -> object:
    """A PyCapsule of any name."""
    if name is not None:
        name = ctypes.addressof(_names.setdefault(name, ctypes.create_string_buffer(name)))
    return _new(pointer, name, destructor)


def capsule_name(capsule: object) -> bytes | None:
    """The name of a PyCapsule."""
    return _name(capsule)


class Managed:
    """A managed tensor in C memory: float32, 2 x 3, C order, on the CPU, by default.

    ``shape`` and ``strides`` (in elements) of None are NULL pointers; ``ndim`` is what the struct
    says, whatever the length of ``shape``; ``data`` is by default the address of 4096 real bytes,
    ``memory``. ``struct`` is to be set as a test likes, ``deleted`` counts the deleter's calls.
    """

    def __init__(
        self,
        versioned=True,
        *,
        shape=(2, 3),
        strides=None,
        ndim=None,
        dtype=(2, 32, 1),
        device=(1, 0),
        data=None,
        byte_offset=0,
        flags=0,
        version=(1, 3),
        deleter=True,
    ):
        self.versioned = versioned
        self.deleted = self.handed_out = 0
        self.memory = (ctypes.c_uint8 * 4096)(*range(256))
        self.struct = (DLManagedTensorVersioned if versioned else DLManagedTensor)()
        self._arrays = [None if v is None else (c_int64 * len(v))(*v) for v in (shape, strides)]
        tensor = self.struct.dl_tensor
        tensor.data = ctypes.addressof(self.memory) if data is None else data
        tensor.device.device_type, tensor.device.device_id = device
        tensor.ndim = len(shape or ()) if ndim is None else ndim
        tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes = dtype
        tensor.shape, tensor.strides = (
            None if v is None else ctypes.addressof(v) for v in self._arrays
        )
        tensor.byte_offset = byte_offset
        self.struct.deleter = address_of(_deleter) if deleter else None
        if versioned:
            self.struct.version.major, self.struct.version.minor = version
            self.struct.flags = flags
        if deleter:
            _live[self.address] = self

    @property
    def address(self) -> int:
        """Of the struct."""
        return ctypes.addressof(self.struct)

    @property
    def name(self) -> bytes:
        """Of its capsules."""
        return b"dltensor_versioned" if self.versioned else b"dltensor"

    def capsule(self, name: bytes | None = ...) -> object:
        """A capsule on it, with a destructor that deletes what nobody consumed."""
        self.handed_out += 1
        name = self.name if name is ... else name
        return new_capsule(self.address, name, address_of(_destructor))


class Producer:
    """Speaks the protocol of the latest standard for one `Managed`, and notes how it was asked."""

    def __init__(self, managed: Managed, device=None):
        self.managed = managed
        given = managed.struct.dl_tensor.device
        self.device = (given.device_type, given.device_id) if device is None else device
        self.asked: list[dict] = []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        names = ("stream", "max_version", "dl_device", "copy")
        values = (stream, max_version, dl_device, copy)
        self.asked.append({k: v for k, v in zip(names, values, strict=True) if v is not None})
        return self.managed.capsule()
