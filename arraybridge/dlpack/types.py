"""Data types and devices of DLPack, with readable spellings, item sizes and legal widths.

Source: ``DLDataTypeCode``, ``DLDataType``, ``DLDeviceType`` and ``DLDevice`` in ``dlpack.h`` 1.3,
and the two codes for TPUs that JAX exports and that follow in ``dlpack.h`` (dmlc/dlpack#188); names
of data types are those of NumPy and ml_dtypes.
"""

from __future__ import annotations

from enum import IntEnum
from operator import index
from typing import Any, NamedTuple


class DataTypeCode(IntEnum):
    """The codes ``DLDataTypeCode`` of ``dlpack.h`` 1.3.

    Examples
    --------
    >>> from arraybridge import dlpack
    >>> dlpack.DataType("bfloat16").code == dlpack.DataTypeCode.BFLOAT
    True
    >>> dlpack.DataType(dlpack.DataTypeCode.FLOAT, 64)
    DataType('float64')
    """

    INT = 0
    UINT = 1
    FLOAT = 2
    OPAQUE_HANDLE = 3
    BFLOAT = 4
    COMPLEX = 5
    BOOL = 6
    FLOAT8_E3M4 = 7
    FLOAT8_E4M3 = 8
    FLOAT8_E4M3B11FNUZ = 9
    FLOAT8_E4M3FN = 10
    FLOAT8_E4M3FNUZ = 11
    FLOAT8_E5M2 = 12
    FLOAT8_E5M2FNUZ = 13
    FLOAT8_E8M0FNU = 14
    FLOAT6_E2M3FN = 15
    FLOAT6_E3M2FN = 16
    FLOAT4_E2M1FN = 17


# The widths in bits that each code may have. The header fixes fp4, fp6, fp8 and bool; the others
# are those that some library has (1 and 4: packed integers; 128: quad floats; 32: complex halves).
LEGAL_BITS: dict[int, tuple[int, ...]] = {
    DataTypeCode.INT: (1, 2, 4, 8, 16, 32, 64, 128),
    DataTypeCode.UINT: (1, 2, 4, 8, 16, 32, 64, 128),
    DataTypeCode.FLOAT: (16, 32, 64, 128),
    DataTypeCode.OPAQUE_HANDLE: (8, 16, 32, 64, 128),
    DataTypeCode.BFLOAT: (16,),
    DataTypeCode.COMPLEX: (32, 64, 128),  # 256 does not fit `bits`, a uint8
    DataTypeCode.BOOL: (8,),
    **dict.fromkeys(range(DataTypeCode.FLOAT8_E3M4, DataTypeCode.FLOAT8_E8M0FNU + 1), (8,)),
    DataTypeCode.FLOAT6_E2M3FN: (6,),
    DataTypeCode.FLOAT6_E3M2FN: (6,),
    DataTypeCode.FLOAT4_E2M1FN: (4,),
}

_BASES: dict[int, str] = {code: code.name.lower() for code in DataTypeCode}
_BASES[DataTypeCode.OPAQUE_HANDLE] = "handle"

_NAMES: dict[DataType, str] = {}  # planning needs the names of a few types again and again


class _DataType(NamedTuple):
    code: int
    bits: int
    lanes: int


class DataType(_DataType):
    """A DLPack data type, equal to the triple ``(code, bits, lanes)``.

    Pass a name, or the numbers ``code``, ``bits`` and, optionally, ``lanes``.

    Examples
    --------
    >>> from arraybridge import DataType
    >>> DataType("bfloat16") == (4, 16, 1)
    True
    >>> vector = DataType(2, 32, 4)
    >>> vector.name, vector.itemsize
    ('float32x4', 16)
    >>> packed = DataType.named("int4")
    >>> packed.subbyte, packed.nbytes(5), packed.nbytes(5, padded=True)
    (True, 3, 5)
    >>> DataType("float33")
    Traceback (most recent call last):
        ...
    ValueError: DLPack has no data type named 'float33'; it has bfloat16, ...
    """

    __slots__ = ()

    def __new__(cls, code: int | str, bits: int | None = None, lanes: int = 1) -> DataType:
        if isinstance(code, str) and bits is None:
            return cls.named(code)
        if isinstance(code, str) or bits is None:
            raise TypeError(f"DataType takes (code, bits, lanes=1) or a name, got {code!r}")
        return super().__new__(cls, code, bits, lanes)

    @classmethod
    def named(cls, name: str) -> DataType:
        """Return the type of a name such as ``"float32x4"``; ValueError if DLPack 1.3 has none."""
        found = BY_NAME.get(name)
        if found is not None:
            return found
        base, _, lanes = name.rpartition("x")
        found = BY_NAME.get(base)
        if found is not None and lanes.isdecimal() and 1 < int(lanes) <= 0xFFFF:
            return cls(found.code, found.bits, int(lanes))
        from ..suggest import closest

        guess = closest(name, BY_NAME)
        raise ValueError(
            f"DLPack has no data type named {name!r}; it has {', '.join(sorted(BY_NAME))}"
            + (f": did you mean {guess!r}?" if guess else "")
        )

    @property
    def name(self) -> str:
        """The name in NumPy or ml_dtypes; ``x4`` is appended for 4 lanes."""
        found = _NAMES.get(self)
        if found is None:
            found = _BASES.get(self.code, f"code{self.code}_")
            if not DataTypeCode.BOOL <= self.code <= DataTypeCode.FLOAT4_E2M1FN:  # of one width
                found += str(self.bits)
            found = _NAMES[self] = found if self.lanes == 1 else f"{found}x{self.lanes}"
        return found

    @property
    def itemsize(self) -> int:
        """The number of bytes of a single element: ``(bits * lanes + 7) // 8``."""
        return (self.bits * self.lanes + 7) // 8

    @property
    def subbyte(self) -> bool:
        """Whether elements of less than a byte are packed, unless a tensor is flagged as padded."""
        return self.bits * self.lanes % 8 != 0

    def nbytes(self, size: int, padded: bool = False) -> int:
        """Return the bytes of ``size`` compact elements; those below a byte packed, or `padded`."""
        if self.subbyte and not padded:
            return (size * self.bits * self.lanes + 7) // 8
        return size * self.itemsize

    def __dlpack_data_type__(self) -> tuple[int, int, int]:
        """Return ``(code, bits, lanes)`` as ints, for other libraries: data-apis/array-api#972."""
        return int(self.code), self.bits, self.lanes

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        known = (self.code, self.bits, 1) in KNOWN_DTYPES
        return f"DataType({self.name!r})" if known else f"DataType{tuple(self)}"


BY_NAME = {
    dtype.name: dtype
    for code, widths in LEGAL_BITS.items()
    for dtype in (DataType(int(code), bits) for bits in widths)
}
# The plain triple finds them too.
KNOWN_DTYPES: dict[tuple[int, int, int], DataType] = {d: d for d in BY_NAME.values()}


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

_DEVICE_NAMES: dict[int, str] = {code: code.name.lower() for code in DeviceType}
# PyTorch's names, too.
_CODES = {name: code for code, name in _DEVICE_NAMES.items()} | {
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


class _Device(NamedTuple):
    type: Any  # a DeviceType; a plain int for a code that it lacks
    id: int


class Device(_Device):
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
    >>> Device(99, 1), Device("device99:1").type        # a code of a later dlpack.h
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

        ValueError if DLPack has no such name or code, or the index is negative; TypeError for an
        argument of another type.
        """
        if isinstance(spec, Device):
            return spec
        if isinstance(spec, DeviceType):
            return cls(spec)
        if isinstance(spec, str):
            name, colon, number = spec.partition(":")
            code = _CODES.get(name.lower()) or _unnamed(name)
            if code is None or (colon and not (number.isascii() and number.isdecimal())):
                from ..suggest import closest

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
        """Return ``(type, id)`` as ints, for other libraries: data-apis/array-api#972."""
        return int(self.type), self.id

    def __str__(self) -> str:
        name = _DEVICE_NAMES.get(self.type, f"device{int(self.type)}")
        return name if self.type == DeviceType.CPU and self.id == 0 else f"{name}:{self.id}"

    def __repr__(self) -> str:
        return f"Device({str(self)!r})"


CPU = Device(DeviceType.CPU)
# Devices of index 0; the plain pair finds them too.
KNOWN_DEVICES: dict[tuple[int, int], Device] = {d: d for d in map(Device, DeviceType)}
