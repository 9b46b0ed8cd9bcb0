"""JAX. Its arrays are immutable, and its import only supports the legacy capsule.

It takes compact layouts at 64-byte alignment as views. With x64 off it would silently narrow 64-bit
types, so those are refused with the remedy. Computation is deferred, so memory that may still be
written is copied, unless a view is requested. CPU devices share one memory: ``cpu:1`` is the
second, but DLPack's ``__dlpack_device__`` is ``(1, 0)`` for all of them.
"""

import contextlib
import functools
from collections.abc import Hashable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ... import dlpack
from ...core.library import Computing, Devices, Library, Routing, deferred
from ...core.records import UNKNOWN, Accepts, ConversionError, Edge, TensorInfo, without_memory
from ...dlpack import CPU, DataType, Device, DeviceType
from ...layout import c_strides, dense_strides
from ...ndarrays import address_of, numpy_dtype
from ...protocols.producer import Producer
from ..numpy.exchange import LIBRARY as NUMPY
from .state import REMEDIES, address_of_buffer, local_devices, only_one_cpu

_NAMES = (
    "bool int8 int16 int32 uint8 uint16 uint32 float16 bfloat16 float32 complex64 float8_e3m4 "
    "float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz "
    "float8_e8m0fnu"
).split()
# Packed in memory, several to a byte: JAX imports and exports them by a copy, one to a byte.
_PACKED = ("int2", "int4", "uint2", "uint4", "float4_e2m1fn")
PLATFORMS = {"cpu": DeviceType.CPU, "cuda": DeviceType.CUDA, "rocm": DeviceType.ROCM}
_NARROW = Accepts(
    library="jax",
    tested="0.10.2",
    dtypes=frozenset((*_NAMES, *_PACKED)),
    devices=frozenset({DeviceType.CPU}),  # and those of this jaxlib's backends
    strides="compact",
    alignment=64,
    readonly=True,
    immutable=True,
    copied=frozenset(_PACKED),
    canonical_booleans=True,
    remedies=REMEDIES,
)
_WIDE = _NARROW.dtypes.union(REMEDIES)


# Looked up once: after an interrupted import, JAX loads without them.
_TRACER = jax.core.Tracer
_ARRAYS = (jax.Array, _TRACER)

_dlpack_dtypes = {np.dtype(getattr(jnp, n)): DataType.named(n) for n in _NAMES if hasattr(jnp, n)}
_dlpack_dtypes |= {np.dtype(n): DataType.named(n) for n in REMEDIES}
_packed_dtypes = {np.dtype(getattr(jnp, n)): DataType.named(n) for n in _PACKED if hasattr(jnp, n)}


def _plain(x: jax.Array) -> bool:
    return not isinstance(x, _TRACER) and only_one_cpu()


class _Devices(Devices):
    def to_device(self, x: object, device: Device) -> np.ndarray | jax.Array:
        if device == CPU:
            return np.asarray(x)
        if isinstance(x, np.ndarray):
            x = x.copy()  # device_put may share it, or read it later
        return jax.device_put(x, self.native_device(device))

    def native_device(self, device: Device) -> jax.Device:
        platform = {v: k for k, v in PLATFORMS.items()}.get(device.type)
        try:
            return local_devices(platform or str(device))[device.id]
        except (RuntimeError, KeyError) as error:
            known = ", ".join(map(str, jax.local_devices()))
            raise ConversionError(
                f"JAX has no arrays on {device} here; its devices are {known}"
            ) from error

    def place(self, device: object) -> Device | None:
        if isinstance(device, jax.sharding.Sharding) and len(device.device_set) == 1:
            (device,) = device.device_set
        for place in LIBRARY.accepts.devices if isinstance(device, jax.Device) else ():
            platform = next(k for k, v in PLATFORMS.items() if v == place)
            for number, known in local_devices(platform).items():
                if known == device:
                    return Device(place, number)
        return None

    def current_stream(self, device: Device) -> int | None:
        """Return the stream that JAX waits for before it reads an import; None on the CPU."""
        if device.host:
            return None
        ready = self.native_device(device).get_stream_for_external_ready_events
        try:
            return int(ready())
        except jax.errors.JaxRuntimeError:  # a backend without streams
            return None

    def read_on(self, x: jax.Array, device: Device, stream: int | None) -> None:
        """Keep the array until it has been read: JAX's own stream cannot wait for another."""
        if device.type == DeviceType.CUDA and stream is not None:
            from ...kernels.cuda import context

            context.hold(device.id, stream, x)


class _Computing(Computing):
    native_namespace = deferred(__package__, "namespace", "native")
    array_class = deferred(__package__, "array", "JaxArray")

    def can_cast(self, info: TensorInfo, dtype: DataType, axes: tuple[int, ...]) -> bool:
        return axes == tuple(range(len(axes)))  # JAX chooses the layout of its arrays

    def astype(self, x: jax.Array, dtype: DataType, axes: tuple[int, ...]) -> jax.Array:
        return x.astype(numpy_dtype(dtype))

    def tracks(self, x: Any) -> bool:
        return isinstance(x, jax.core.Tracer)

    def operation(self, adapted: Any, args: Any, kwargs: Any) -> Any:
        if adapted.options["differentiable"]:
            from ..torch import gradients

            return gradients.call_with_tracers(adapted, args, kwargs)
        from . import callbacks

        return callbacks.call(adapted, args, kwargs)


class Jax(Library):
    """JAX."""

    name = "jax"
    devices = _Devices()
    computing = _Computing()

    @property
    def accepts(self) -> Accepts:
        narrow, wide = _accepted()
        return wide if jax.config.jax_enable_x64 else narrow

    def owns(self, array_type: type) -> bool:
        return issubclass(array_type, _ARRAYS)

    # XLA's buffers are aligned; reading their strides takes longer than most conversions.
    routing = Routing(_plain, aligned=16, strided=False, state=lambda: jax.config.jax_enable_x64)

    def signature(self, x: jax.Array) -> Hashable:
        """Return the data type, the number of axes, emptiness, and the device."""
        if isinstance(x, _TRACER) or x.is_deleted():
            return super().signature(x)
        place = None if only_one_cpu() else x.sharding
        if place is not None and type(place) is not jax.sharding.SingleDeviceSharding:
            return super().signature(x)
        return x.dtype, x.ndim, 0 in x.shape, place

    def describe(self, x: jax.Array) -> TensorInfo:
        why = refusal(x)
        if why is not None:
            known = _dlpack_dtypes.get(x.dtype) or _packed_dtypes.get(x.dtype)
            return without_memory("jax", x.shape, known, CPU if only_one_cpu() else UNKNOWN, why)
        dtype = _dlpack_dtypes.get(x.dtype)
        if dtype is None and x.dtype in _packed_dtypes:
            return _described_packed(x)
        if dtype is None or not only_one_cpu():
            _check_one_device(x)
            return TensorInfo.of_tensor(self.export(x), "jax")
        try:
            data = address_of_buffer(x)
        except RuntimeError as error:  # deleted or donated
            raise ConversionError(f"the JAX array has no memory: {error}") from error
        shape = x.shape
        strides = dense_strides(shape, x.format.layout.major_to_minor)
        return TensorInfo("jax", data, 0, shape, strides, dtype, CPU, readonly=True)

    def export(self, x: jax.Array, stream: int | None = None) -> "dlpack.ManagedTensor":
        try:
            # JAX would read -1, which requests no ordering, as the address of a stream.
            tensor = dlpack.acquire(x, stream=None if stream == -1 else stream)
        except BufferError:
            raise
        except Exception as error:
            raise ConversionError(f"JAX could not export the array: {error}") from error
        tensor.readonly, tensor.legacy = True, False  # the legacy capsule cannot mark it
        return tensor

    def resolve(self, x: jax.Array) -> np.ndarray:
        return np.array(x)

    def memory_owner(self, x: jax.Array, info: TensorInfo, briefly: bool = False) -> object:
        """Return JAX's own view or export: both wait, and outlive deletion and donation.

        The address alone does neither: it is known before the values are computed. And another
        thread may delete an array even during a call.
        """
        if info.device.type == DeviceType.CPU:
            try:
                view = numpy_view(x)
            except RuntimeError as error:
                raise ConversionError(f"the JAX array has no memory: {error}") from error
            if view is not None:
                return view
        return self.export(x).owner

    def wrap(self, tensor: "dlpack.ManagedTensor") -> jax.Array:
        place = tensor.device
        cpu = local_devices("cpu")[place.id] if place.type == DeviceType.CPU else None
        if cpu is not None and tensor.dtype.name in _PACKED:
            return jnp.array(NUMPY.wrap(tensor).copy(), device=cpu)  # the memory may be read later
        if cpu is None or _import is None:
            return jax.dlpack.from_dlpack(Producer(tensor, versioned=False), device=cpu)
        capsule = dlpack.to_capsule(tensor, versioned=False)
        # Empty ones may be anywhere; others are never copied silently.
        return _import(capsule, cpu, None, None if 0 in tensor.shape else False, 1)

    def copy(self, x: jax.Array) -> jax.Array | None:
        return None if self.describe(x).device.host else jnp.array(x, copy=True)


def _check_one_device(x: jax.Array) -> None:
    count = len(x.sharding.device_set)
    if count > 1:
        raise ConversionError(
            f"the JAX array is on {count} devices, and a DLPack tensor is on one: move it "
            "to one first, jax.device_put(x, jax.devices()[0]), or take its shards, "
            "arraybridge.sharding.shards(x)"
        )


def refusal(x: jax.Array) -> str | None:
    """Return why no other library can take an array, whatever its memory; None if one may."""
    if isinstance(x, _TRACER):
        return (
            f"a JAX tracer ({type(x).__name__}) has no memory: convert outside jit, grad and "
            "vmap, or go through jax.pure_callback"
        )
    if jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended):
        return "PRNG keys have no DLPack type: pass jax.random.key_data(x)"
    return None


def check_memory(x: jax.Array) -> None:
    """Raise ConversionError for an array that is traced, was deleted or donated, or is a key."""
    why = refusal(x)
    if why is not None or x.is_deleted():
        raise ConversionError(why or "the JAX array has no memory: it was deleted or donated")


def _described_packed(x: jax.Array) -> TensorInfo:
    check_memory(x)
    _check_one_device(x)
    (device,) = x.devices()
    place, shape = LIBRARY.devices.place(device), x.shape  # the platform of CUDA and ROCm is "gpu"
    if place is None:
        raise ConversionError(f"JAX could not export the array: {device} has no DLPack type")
    return TensorInfo(
        "jax", 0, 0, shape, c_strides(shape), _packed_dtypes[x.dtype], place, readonly=True,
        padded=True, pending=("packed",),
    )  # fmt: skip


@functools.cache
def _accepted() -> tuple[Accepts, Accepts]:
    """Return what JAX accepts with x64 off and on, on its backends' devices."""
    devices = set()
    for platform, device_type in PLATFORMS.items():
        with contextlib.suppress(RuntimeError):  # no such backend
            local_devices(platform)
            devices.add(device_type)
    narrow = _NARROW._replace(devices=frozenset(devices), cpus=len(local_devices("cpu")))
    return narrow, narrow._replace(dtypes=_WIDE, remedies={})


try:
    # The inner function of jax.dlpack.from_dlpack, whose checks take three times as long, and which
    # `plan` has made. None if this jaxlib has another signature.
    from jax._src.lib import _jax

    _import = _jax.dlpack_managed_tensor_to_buffer
    if "copy: bool | None = ..., dl_device_type" not in (_import.__doc__ or ""):
        _import = None
except (ImportError, AttributeError):
    _import = None


def numpy_view(x: jax.Array) -> np.ndarray | None:
    """Return JAX's own read-only view for NumPy, which waits; None if JAX copied.

    JAX copies other layouts and packed elements. The copy owns its memory, or has a capsule that
    does (since JAX 0.12). A view of bfloat16 has a capsule too: the addresses are compared.
    """
    array = np.asarray(x)
    base: object = array.base
    if base.__class__ is memoryview:  # the buffer protocol copies nothing
        return array
    if array.flags.owndata or address_of(array) != address_of_buffer(x):
        return None
    return array


def _to_numpy(x: jax.Array) -> np.ndarray:
    view = numpy_view(x)
    return NUMPY.wrap(LIBRARY.export(x)) if view is None else view


LIBRARY = Jax()


def _from_numpy(x: np.ndarray) -> jax.Array:
    try:
        return _import(x.__dlpack__(), local_devices("cpu")[0], None, False, 1)
    except Exception:  # NumPy exports no read-only arrays so
        return LIBRARY.wrap(NUMPY.export(x))


def _serves(s: TensorInfo) -> bool:
    return s.dtype.name not in _PACKED


LIBRARY.edges = (Edge("jax", "numpy", _to_numpy, _serves),)
if _import is not None:
    LIBRARY.edges += (Edge("numpy", "jax", _from_numpy, _serves),)
