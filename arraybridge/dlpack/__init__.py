"""The DLPack core on ctypes: structs, capsules, owning and borrowed tensors, the C exchange API.

Public for those who bind C libraries. It knows no array library, not even NumPy.
"""

from __future__ import annotations

from ..layout import c_strides
from ..native.blocks import ALIGNMENT
from .c_exchange import ExchangeAPI, exchange_api
from .capsule import from_capsule, is_capsule, peek, to_capsule
from .device import CPU, Device, DeviceType
from .dtypes import DataType, DataTypeCode
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
from .protocol import acquire, call_dlpack, device_of, offer
from .tensor import Tensor
from .validate import MAX_NDIM, check_stream
from .validate import reads_versioned as reads_versioned

__all__ = [
    "ALIGNMENT",
    "CPU",
    "FLAG_IS_COPIED",
    "FLAG_IS_SUBBYTE_TYPE_PADDED",
    "FLAG_READ_ONLY",
    "MAX_NDIM",
    "VERSION",
    "ConsumedCapsuleError",
    "DLDataType",
    "DLDevice",
    "DLManagedTensor",
    "DLManagedTensorVersioned",
    "DLPackError",
    "DLPackExchangeAPI",
    "DLPackVersion",
    "DLTensor",
    "DataType",
    "DataTypeCode",
    "Device",
    "DeviceType",
    "ExchangeAPI",
    "MalformedTensorError",
    "ManagedTensor",
    "Tensor",
    "UnsupportedVersionError",
    "acquire",
    "c_strides",
    "call_dlpack",
    "check_stream",
    "device_of",
    "exchange_api",
    "from_capsule",
    "is_capsule",
    "offer",
    "peek",
    "to_capsule",
]
