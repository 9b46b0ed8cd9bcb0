"""array-api-strict. Its arrays wrap a NumPy array, so all but the set of dtypes is NumPy's.

Of its devices only ``CPU_DEVICE`` is real. The others simulate accelerators, so that code meets the
array API's rules for them. Here they are DLPack's extension devices, ``ext_dev:1`` and on, and
nothing leaves them without ``device="cpu"``, as in the library's own ``__array__``.
"""

from importlib import import_module
from typing import Any

import array_api_strict
import numpy as np

from ...core.library import Computing, Devices, Library, deferred
from ...core.records import Accepts, ConversionError, Edge, TensorInfo
from ...dlpack import CPU, Device, DeviceType, ManagedTensor
from ...ndarrays import NATIVE, numpy_dtype
from ..numpy.exchange import LIBRARY as NUMPY

_Array = type(array_api_strict.empty(0))
_CPU_DEVICE = array_api_strict.Device("CPU_DEVICE")


# The library's devices in its own order; the index is the id of the Device. (Flags may hide some
# from `__array_namespace_info__`.)
_DEVICES: tuple[Any, ...] = tuple(import_module(_CPU_DEVICE.__module__).ALL_DEVICES)


class _Devices(Devices):
    def empty(self, info: TensorInfo, like: object = None) -> Any:
        return _on(np.empty(info.shape, numpy_dtype(info.dtype)), info.device)

    def to_device(self, x: Any, device: Device) -> Any:
        array = (x._array if isinstance(x, _Array) else x).copy(order="C")
        return array if device == CPU else _on(array, device)

    def native_device(self, device: Device) -> object:
        return _CPU_DEVICE if device == CPU else _own_device(device)

    def place(self, device: object) -> Device | None:
        return _device_of(device) if device in _DEVICES else None


class _Computing(Computing):
    native_namespace = deferred(__package__, "namespace", "native")
    array_class = deferred(__package__, "namespace", "StrictArray")


class ArrayAPIStrict(Library):
    """The strict array, on the CPU or on a simulated device."""

    name = "array_api_strict"
    devices = _Devices()
    computing = _Computing()
    accepts = Accepts(
        library="array_api_strict",
        tested="2.6.1",
        dtypes=frozenset(NATIVE) - {"float16"},
        devices=frozenset({DeviceType.CPU, DeviceType.EXT_DEV}),
        readonly=True,
        remedies={"": "it has the standard's dtypes only; convert the array to one of them first"},
    )

    def owns(self, array_type: type) -> bool:
        return issubclass(array_type, _Array)

    def describe(self, x: Any) -> TensorInfo:
        return NUMPY.describe(x._array)._replace(
            library="array_api_strict", device=_device_of(x.device)
        )

    def may_change(self, x: Any) -> bool:
        return NUMPY.may_change(x._array)

    def export(self, x: Any, stream: int | None = None) -> ManagedTensor:
        tensor = NUMPY.export(x._array)
        tensor.device = _device_of(x.device)
        return tensor

    def memory_owner(self, x: Any, info: TensorInfo, briefly: bool = False) -> object:
        return x._array

    def wrap(self, tensor: ManagedTensor) -> Any:
        return _on(NUMPY.wrap(tensor), tensor.device)

    def resolve(self, x: Any) -> Any:
        return _on(NUMPY.resolve(x._array), _device_of(x.device))

    def copy(self, x: Any) -> Any:
        if x.device == _CPU_DEVICE:
            made = NUMPY.copy(x._array)
            return None if made is None else _on(made, CPU)
        return _on(x._array.copy(order="C"), _device_of(x.device))


def _on(array: np.ndarray, place: Device) -> Any:
    # What its __reduce__ calls; asarray() would take seven times as long.
    if place == CPU:
        return _Array._new(array, device=_CPU_DEVICE)
    own = _own_device(place)
    try:
        return _Array._new(array, device=own)
    except ValueError as error:  # a device without 64-bit types
        raise ConversionError(f"{error}: pass another data type by dtype=") from error


def _own_device(place: Device) -> Any:
    last = len(_DEVICES) - 1
    if place.type != DeviceType.EXT_DEV or not 0 < place.id <= last:
        raise ConversionError(
            f"array-api-strict has no {place}: it has cpu and ext_dev:1 to ext_dev:{last}"
        )
    return _DEVICES[place.id]


def _device_of(own: Any) -> Device:
    return CPU if own == _CPU_DEVICE else Device(DeviceType.EXT_DEV, _DEVICES.index(own))


def _from_numpy(x: np.ndarray) -> Any:
    return _Array._new(x, device=_CPU_DEVICE)


def _to_numpy(x: Any) -> np.ndarray:
    """Return the wrapped array, unless it is writable with a warning."""
    array: np.ndarray = x._array
    if array.flags.num < 0 or type(array) is not np.ndarray:
        return NUMPY.wrap(LIBRARY.export(x))
    return array


LIBRARY = ArrayAPIStrict()
LIBRARY.edges = (
    Edge("numpy", "array_api_strict", _from_numpy),
    Edge("array_api_strict", "numpy", _to_numpy),
)
