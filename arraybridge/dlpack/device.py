"""Devices: the pair ``(device_type, device_id)`` of DLPack, with a readable spelling.

Source: ``DLDeviceType`` and ``DLDevice`` in ``dlpack.h`` 1.3, and the two codes for TPUs that JAX
exports and that follow in ``dlpack.h`` (dmlc/dlpack#188).
"""

from __future__ import annotations

from enum import IntEnum
from operator import index
from typing import Any, NamedTuple

from ..suggest import closest


class DeviceType(IntEnum):
    """The codes ``DLDeviceType`` of ``dlpack.h`` 1.3, and those for TPUs.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np
    >>> ab.inspect(np.zeros(3)).device.type == ab.DeviceType.CPU
    True
    >>> ab.Device(ab.DeviceType.CUDA_MANAGED).host
    True
    """

    CPU = 1
    CUDA = 2
    CUDA_HOST = 3
    OPENCL = 4
    VULKAN = 7
    METAL = 8
    VPI = 9
    ROCM = 10
    ROCM_HOST = 11
    EXT_DEV = 12
    CUDA_MANAGED = 13
    ONEAPI = 14
    WEBGPU = 15
    HEXAGON = 16
    MAIA = 17
    TRAINIUM = 18
    TPU = 19
    TPU_HOST = 20


KNOWN_DEVICE_CODES = {int(code): code for code in DeviceType}

# Memory that the CPU may dereference, including pinned and managed memory.
HOST_ACCESSIBLE = frozenset(
    {DeviceType.CPU, DeviceType.CUDA_HOST, DeviceType.ROCM_HOST, DeviceType.CUDA_MANAGED}
)

# Devices on which `data` is an address, so that byte_offset can be added to it. Elsewhere (a
# cl_mem, a VkBuffer, an MTLBuffer) it is a handle, and the offset must be kept separate.
ADDRESSABLE = HOST_ACCESSIBLE | {DeviceType.CUDA, DeviceType.ROCM, DeviceType.ONEAPI}

_NAMES: dict[int, str] = {code: code.name.lower() for code in DeviceType}
# PyTorch's names, too.
_CODES = {name: code for code, name in _NAMES.items()} | {
    "gpu": DeviceType.CUDA,
    "mps": DeviceType.METAL,
    "xpu": DeviceType.ONEAPI,
}


def _unnamed(name: str) -> int | None:
    """Return the code in ``device99``, the name of a code that `DeviceType` lacks."""
    digits = name.removeprefix("device")
    if digits == name or not (digits.isascii() and digits.isdecimal()):
        return None
    code = int(digits)
    return KNOWN_DEVICE_CODES.get(code, code) if 0 < code < 2**31 else None


class _Fields(NamedTuple):
    type: Any  # a DeviceType; a plain int for a code that it lacks
    id: int


class Device(_Fields):
    """A DLPack device, equal to the pair ``(device_type, device_id)``.

    Parameters
    ----------
    type : DeviceType, int or str
        A code of ``DLDeviceType``, or a string for :meth:`parse`. A code that only a later
        ``dlpack.h`` defines remains an int.
    id : int, default 0
        The index of the device; 0 for host memory.

    Examples
    --------
    >>> from arraybridge import Device
    >>> Device("cuda:1"), str(Device(1))
    (Device('cuda:1'), 'cpu')
    >>> Device("cuda:1") == (2, 1), Device.parse((13, 0))
    (True, Device('cuda_managed:0'))
    >>> metal = Device("metal")
    >>> metal.type, metal.id
    (<DeviceType.METAL: 8>, 0)
    >>> metal.addressable, metal.host           # a handle, and memory that the CPU cannot read
    (False, False)
    >>> Device((99, 1)), Device("device99:1").type        # a code of a later dlpack.h
    (Device('device99:1'), 99)
    >>> Device("ipu")
    Traceback (most recent call last):
        ...
    ValueError: unknown device 'ipu': expected a name such as 'cpu' or 'cuda:1', one of cpu,
        ...
    """

    __slots__ = ()

    def __new__(cls, type: int | str, id: int = 0) -> Device:
        if isinstance(type, str):
            return cls.parse(f"{type}:{id}" if id else type)
        return super().__new__(cls, KNOWN_DEVICE_CODES.get(type, type), id)

    @classmethod
    def parse(cls, spec: object) -> Device:
        """Make a Device from a Device, a pair ``(type, id)`` or a string such as ``"cuda:1"``.

        Raises
        ------
        ValueError
            If DLPack has no such name or code, or the index is negative.
        TypeError
            If the argument has another type.
        """
        if isinstance(spec, Device):
            return spec
        if isinstance(spec, DeviceType):
            return cls(spec)
        if isinstance(spec, str):
            name, colon, number = spec.partition(":")
            code = _CODES.get(name.lower()) or _unnamed(name)
            if code is None or (colon and not (number.isascii() and number.isdecimal())):
                guess = closest(name.rstrip("0123456789"), _CODES) if code is None else None
                hint = f"did you mean {guess!r}? " if guess else ""
                raise ValueError(
                    f"unknown device {spec!r}: {hint}expected a name such as 'cpu' or 'cuda:1', "
                    "one of " + ", ".join(sorted(_CODES))
                )
            return cls(code, int(number or 0))
        if isinstance(spec, tuple) and len(spec) == 2:
            try:
                kind, place = index(spec[0]), index(spec[1] or 0)  # Paddle's id is None on the CPU
            except TypeError:
                kind = place = -1
            if 0 < kind < 2**31 and 0 <= place < 2**31:
                return cls(kind, place)
            raise ValueError(f"{spec!r} is not a DLPack device: expected (device_type, device_id)")
        raise TypeError(
            f"device must be an arraybridge.Device, a DLPack pair (type, id) or a string such as "
            f"'cuda:0'; got {spec!r} of type {type(spec).__name__}"
        )

    @property
    def addressable(self) -> bool:
        """Whether pointers on the device are addresses, not opaque handles."""
        return self.type in ADDRESSABLE

    @property
    def host(self) -> bool:
        """Whether the CPU can read the memory, as with pinned and managed memory."""
        return self.type in HOST_ACCESSIBLE

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return ``(device_type, device_id)`` as ints, by which libraries read others' devices.

        Source: data-apis/array-api#972, which TVM-FFI and Paddle follow.
        """
        return int(self.type), self.id

    def __str__(self) -> str:
        name = _NAMES.get(self.type, f"device{int(self.type)}")
        return name if self.type == DeviceType.CPU and self.id == 0 else f"{name}:{self.id}"

    def __repr__(self) -> str:
        return f"Device({str(self)!r})"


CPU = Device(DeviceType.CPU)
# Devices of index 0; the plain pair finds them too.
KNOWN_DEVICES: dict[tuple[int, int], Device] = {d: d for d in map(Device, DeviceType)}
