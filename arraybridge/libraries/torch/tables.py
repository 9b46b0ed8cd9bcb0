"""PyTorch's dtypes and devices, and DLPack's."""

from functools import cache
from warnings import catch_warnings, simplefilter

import torch

from ...dlpack import CPU, DataType, Device, DeviceType

_NAMES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
    "complex32 complex64 complex128 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz "
    "float8_e8m0fnu"
).split()
DLPACK_DTYPES = {getattr(torch, n): DataType.named(n) for n in _NAMES if hasattr(torch, n)}
if hasattr(torch, "float4_e2m1fn_x2"):  # two packed elements per byte
    DLPACK_DTYPES[torch.float4_e2m1fn_x2] = DataType(17, 4, 2)

TORCH_DTYPES = {kind: dtype for dtype, kind in DLPACK_DTYPES.items()}
BY_NAME = {kind.name: dtype for dtype, kind in DLPACK_DTYPES.items()}

DEVICES = {
    "cpu": DeviceType.CPU,
    "cuda": DeviceType.ROCM if torch.version.hip else DeviceType.CUDA,
    "xpu": DeviceType.ONEAPI,
    "mps": DeviceType.METAL,
}
DEVICE_NAMES = {int(code): name for name, code in DEVICES.items()}
MOST_AXES = 64
# Elements of dtypes that NumPy lacks are viewed as integers of the same size.
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32}
IN_NUMPY = frozenset(
    getattr(torch, n) for n in _NAMES if n not in ("bfloat16", "complex32") and "float8" not in n
)


def built_for() -> frozenset[DeviceType]:
    """Return the kinds of devices that the installed PyTorch supports."""
    kinds = {DeviceType.CPU}
    if torch.version.cuda or torch.version.hip:
        kinds.add(DEVICES["cuda"])
    if hasattr(torch, "xpu") and torch.xpu.is_available():
        kinds.add(DeviceType.ONEAPI)
    return frozenset(kinds)


def devices_of(kind: int) -> int:
    """Return how many devices of a kind PyTorch can use: none with a driver that is too old."""
    if kind == DeviceType.ONEAPI:
        return torch.xpu.device_count()
    with catch_warnings():
        simplefilter("ignore")  # a driver that is too old: the caller raises
        return torch.cuda.device_count() if torch.cuda.is_available() else 0


#: PyTorch's devices that were found; a device is assumed to remain.
NATIVE_DEVICES = {CPU: torch.device("cpu")}


@cache
def place_of(place: torch.device) -> Device | None:
    """Return the Device of PyTorch's device, or None if it has no memory to share."""
    kind = DEVICES.get(place.type)
    return None if kind is None else Device(kind, place.index or 0)
