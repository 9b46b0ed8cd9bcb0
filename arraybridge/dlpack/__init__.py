"""DLPack on ctypes: structs, capsules, owning and borrowed tensors, and the C exchange API.

This module is public, for bindings of C libraries. It does not import any array library, not even
NumPy. Names other than data types and devices are loaded on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ..layout import MAX_NDIM, c_strides
from .types import CPU, DataType, DataTypeCode, Device, DeviceType

if TYPE_CHECKING:
    from ..native.blocks import ALIGNMENT
    from .c_exchange import ExchangeAPI, exchange_api
    from .capsule import from_capsule, is_capsule, peek, to_capsule
    from .errors import (
        ConsumedCapsuleError,
        DLPackError,
        MalformedTensorError,
        UnsupportedVersionError,
    )
    from .header import (
        FLAG_IS_COPIED,
        FLAG_IS_SUBBYTE_TYPE_PADDED,
        FLAG_READ_ONLY,
        VERSION,
        DLDataType,
        DLDevice,
        DLManagedTensor,
        DLManagedTensorVersioned,
        DLPackExchangeAPI,
        DLPackVersion,
        DLTensor,
    )
    from .managed import ManagedTensor
    from .protocol import acquire, call_dlpack, device_of
    from .tensor import Tensor
    from .validate import check_stream
    from .validate import reads_versioned as reads_versioned

__all__ = [
    "ALIGNMENT", "CPU", "FLAG_IS_COPIED", "FLAG_IS_SUBBYTE_TYPE_PADDED", "FLAG_READ_ONLY",
    "MAX_NDIM", "VERSION", "ConsumedCapsuleError", "DLDataType", "DLDevice", "DLManagedTensor",
    "DLManagedTensorVersioned", "DLPackError", "DLPackExchangeAPI", "DLPackVersion", "DLTensor",
    "DataType", "DataTypeCode", "Device", "DeviceType", "ExchangeAPI", "MalformedTensorError",
    "ManagedTensor", "Tensor", "UnsupportedVersionError", "acquire", "c_strides", "call_dlpack",
    "check_stream", "device_of", "exchange_api", "from_capsule", "is_capsule", "peek",
    "to_capsule",
]  # fmt: skip

_HOMES = {
    "..native.blocks": "ALIGNMENT",
    ".c_exchange": "ExchangeAPI exchange_api",
    ".capsule": "from_capsule is_capsule peek to_capsule",
    ".errors": "ConsumedCapsuleError DLPackError MalformedTensorError UnsupportedVersionError",
    ".header": (
        "FLAG_IS_COPIED FLAG_IS_SUBBYTE_TYPE_PADDED FLAG_READ_ONLY VERSION DLDataType DLDevice "
        "DLManagedTensor DLManagedTensorVersioned DLPackExchangeAPI DLPackVersion DLTensor"
    ),
    ".managed": "ManagedTensor",
    ".protocol": "acquire call_dlpack device_of",
    ".tensor": "Tensor",
    ".validate": "check_stream reads_versioned",
}
_home_of = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    home = _home_of.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home, __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *globals()})
