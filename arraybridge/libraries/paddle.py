"""Paddle. Strided tensors of up to 9 axes, none read-only; its uint16 is printed as bfloat16.

The C exchange API imports, since Python's importer leaks 80 bytes per call. Neither runs the
deleter of a tensor without a context, and both ignore ``byte_offset``: arraybridge's exports have a
context and no offset. Negative strides are imported but fail in its operations, although its own
slices have them, so such arrays are copied. The C exchange API does not check for gradients.
"""

from typing import Any
from weakref import ref

import numpy as np
import paddle

from ..core.library import Computing, Devices, Library, exported
from ..core.planner import check_present
from ..core.records import NO_DTYPE, UNKNOWN, Accepts, ConversionError, TensorInfo, without_memory
from ..dlpack import CPU, DataType, Device, DeviceType, ManagedTensor, acquire, exchange_api
from ..native import pyapi
from ..ndarrays import NATIVE

_NAMES = (*NATIVE, "bfloat16", "float8_e4m3fn", "float8_e5m2")
_dlpack_dtypes = {getattr(paddle, n): DataType.named(n) for n in _NAMES if hasattr(paddle, n)}
_CLEARED = (
    "the tensor was cleared and has no memory: give it a value, paddle.assign(value, output=x)"
)
_API: Any = exchange_api(paddle.Tensor)
_CPU_PLACE = paddle.CPUPlace()
_PLACES = (paddle.CPUPlace, paddle.CUDAPlace, paddle.CUDAPinnedPlace)
_GPU = DeviceType.ROCM if paddle.is_compiled_with_rocm() else DeviceType.CUDA
_gpus = paddle.is_compiled_with_cuda() or paddle.is_compiled_with_rocm()


class _Token:
    """Represents an owner of memory; freeing it runs nothing."""

    __slots__ = ("__weakref__",)


_owners: dict[ref[_Token], object] = {}


def _drop() -> None:
    """Release the owners whose tokens are gone."""
    for token in list(_owners):
        if token() is None:
            _owners.pop(token, None)


_drop_soon = pyapi.soon(_drop)


def _deferred(owner: object) -> object:
    """Return a token that keeps an owner alive until the main thread releases it.

    Paddle calls a producer's deleter under a mutex that is not recursive (its ``DeleterBridge``).
    If that deleter frees Paddle's memory, it takes the same mutex; if it runs Python code, it may
    wait for a thread that waits for the mutex.
    """
    _drop()
    if type(owner) is _Token:
        return owner
    token = _Token()
    _owners[ref(token, _drop_soon)] = owner
    return token


def _taken(tensor: ManagedTensor) -> ManagedTensor:
    tensor.readonly = False  # a legacy capsule, of older versions, cannot mark it
    tensor.owner = _deferred(tensor.owner)
    return tensor


class _Devices(Devices):
    def empty(self, info: TensorInfo, like: object = None) -> paddle.Tensor:
        return _API.empty(info.shape, info.dtype, info.device)

    def place(self, device: object) -> Device | None:
        if isinstance(device, _PLACES):
            place = paddle.base.core.Place()
            place.set_place(device)
            device = place
        return _device(device) if isinstance(device, paddle.base.core.Place) else None

    def to_device(self, x: Any, device: Device) -> paddle.Tensor:
        if device.host:
            return x.cpu()
        place = self.native_device(device)
        if isinstance(x, np.ndarray):
            from ..core.registry import library_named

            x = LIBRARY.wrap(library_named("numpy").export(x))
        return x.to(place)

    def native_device(self, device: Device) -> object:
        if device.host:
            return _CPU_PLACE
        check_present("Paddle", device, paddle.device.cuda.device_count())
        return paddle.CUDAPlace(device.id)

    def current_stream(self, device: Device) -> int | None:
        if device.type == DeviceType.CPU:
            return None
        return _API.current_stream(device) or (1 if device.type == DeviceType.CUDA else 0)


class _Computing(Computing):
    from_python = staticmethod(paddle.to_tensor)

    def can_cast(self, info: TensorInfo, dtype: DataType, axes: tuple[int, ...]) -> bool:
        """Whether Paddle casts: with gradients, and off the host; its results have no strides."""
        wanted = info.tracked or not info.device.host
        in_order = axes == tuple(range(len(axes)))
        return wanted and in_order

    def astype(self, x: paddle.Tensor, dtype: DataType, axes: tuple[int, ...]) -> paddle.Tensor:
        if _dlpack_dtypes.get(x.dtype) == dtype:
            return x.clone()  # in C order; `astype` would return `x` itself
        return x.astype(dtype.name)

    def mark_modified(self, x: paddle.Tensor) -> None:
        x._bump_inplace_version()  # so that backward() refuses what it saved before


class Paddle(Library):
    """Paddle."""

    name = "paddle"
    devices = _Devices()
    computing = _Computing()
    accepts = Accepts(
        library="paddle",
        tested="3.3.1",
        dtypes=frozenset(dtype.name for dtype in _dlpack_dtypes.values()),
        devices=frozenset({DeviceType.CPU, _GPU}) if _gpus else frozenset({DeviceType.CPU}),
        strides="non-negative",
        aligned=frozenset({"complex128"}),  # 13 of 34 operations crash without
        ndim=(0, 9),
        canonical_booleans=True,
    )

    def owns(self, array_type: type) -> bool:
        return issubclass(array_type, paddle.Tensor | paddle.pir.Value)

    def describe(self, x: paddle.Tensor | ManagedTensor) -> TensorInfo:
        if isinstance(x, ManagedTensor):
            return TensorInfo.of_tensor(x, "paddle")
        if isinstance(x, paddle.pir.Value):
            why = "a symbolic tensor has no memory: convert what the executor fetches"
            place = UNKNOWN if _gpus else CPU
            return without_memory("paddle", x.shape, _dlpack_dtypes.get(x.dtype), place, why)
        _check_dense(x)
        refused = None
        if not x.stop_gradient:
            refused = "gradients are tracked and would be cut silently: pass x.detach()"
        try:
            place = _device(x.place)
        except RuntimeError:
            raise ConversionError(_CLEARED) from None
        kind = x.dtype
        dtype = _dlpack_dtypes.get(kind)
        if dtype is None:
            refused, dtype = f"{kind} has no DLPack type: convert it first, x.astype(...)", NO_DTYPE
        tracked = refused is not None and dtype is not NO_DTYPE
        data = x.data_ptr()  # the first element's, for a slice too
        shape, strides = tuple(x.shape), tuple(x.strides)
        return TensorInfo(
            "paddle", data, 0, shape, strides, dtype, place, refused=refused, tracked=tracked
        )

    def export(self, x: paddle.Tensor, stream: int | None = None) -> ManagedTensor:
        x = self.alias(x)
        info = self.describe(x)
        if isinstance(x, ManagedTensor) or info.device.type == DeviceType.CPU:
            return exported(self, x, info)
        return _taken(acquire(x, stream=stream))

    def alias(self, x: paddle.Tensor) -> paddle.Tensor | ManagedTensor:
        """Return Paddle's export: a Paddle tensor would be read while others write to it."""
        if isinstance(x, paddle.pir.Value | ManagedTensor):
            return x
        plain = x.is_dense() and x._is_initialized() and x.stop_gradient
        if plain and x.place == _CPU_PLACE and x.dtype in _dlpack_dtypes:
            return self._exported(x)
        return x

    def memory_owner(self, x: paddle.Tensor, info: TensorInfo, briefly: bool = False) -> object:
        """Return Paddle's own export, which keeps the allocation alive.

        The tensor can get another one: ``x.data = ``, ``set_``, ``cast_``, ``layer.to(...)``.
        """
        if isinstance(x, ManagedTensor):
            return x.owner
        if not info.size:
            return x
        tensor = self._exported(x)
        if tensor.data + tensor.byte_offset != info.data:
            raise ConversionError("the tensor's memory was replaced meanwhile: convert it again")
        return tensor.owner

    @staticmethod
    def _exported(x: paddle.Tensor) -> ManagedTensor:
        return _taken(_API.acquire(x))

    def wrap(self, tensor: ManagedTensor) -> paddle.Tensor:
        tensor = ManagedTensor.trusted(
            tensor.pointer, tensor.shape, tensor.strides, tensor.dtype, tensor.device,
            tensor.readonly, tensor.padded, _deferred(tensor.owner),
        )  # fmt: skip
        return _API.wrap(tensor)

    def copy(self, x: paddle.Tensor) -> paddle.Tensor | None:
        return None if x.place == _CPU_PLACE and x.stop_gradient else x.clone()


def _check_dense(x: Any) -> None:
    if x.is_dist():
        problem = "the tensor is spread over devices: pass its local part, x._local_value()"
    elif not x.is_dense():
        problem = "a sparse tensor is not dense memory: pass x.to_dense()"
        if not x._is_initialized():
            problem = _CLEARED
    else:
        return
    raise ConversionError(problem)


def _device(place: Any) -> Device:
    if place == _CPU_PLACE:
        return CPU
    if place.is_gpu_place():
        return Device(_GPU, place.gpu_device_id())
    if place.is_cuda_pinned_place():
        return Device(DeviceType.CUDA_HOST, 0)
    raise ConversionError(f"Paddle's {place} has no DLPack device: move the tensor, x.cpu()")


LIBRARY = Paddle()
