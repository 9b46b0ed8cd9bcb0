"""PyTorch. It has no read-only tensors and aborts on negative strides: both are copied first.

Its C exchange API imports, without checks for gradients, conjugate and negative bits, so
:meth:`Torch.describe` checks those first.
"""

from collections.abc import Hashable
from functools import cache
from typing import Any

import numpy as np
import torch
import torch.utils.dlpack
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch.autograd import forward_ad
from torch.autograd.graph import increment_version

from ... import dlpack
from ...core.library import (
    Computing,
    Devices,
    Library,
    Routing,
    deferred,
    exported,
    on_memory,
    or_else,
)
from ...core.planner import check_present, missing_device
from ...core.records import (
    NO_DTYPE,
    Accepts,
    ConversionError,
    Edge,
    TensorInfo,
    described_key,
    first_line,
)
from ...dlpack import CPU, DataType, DataTypeCode, Device, DeviceType
from ...layout import SMALL, Memory, in_bytes, relaxed
from ...native import C
from ...ndarrays import dlpack_dtype, numpy_dtype, with_plain_strides
from ..numpy.exchange import copy_aligned
from . import state
from .tables import (
    BITS,
    DEVICE_NAMES,
    DLPACK_DTYPES,
    IN_NUMPY,
    MOST_AXES,
    NATIVE_DEVICES,
    TORCH_DTYPES,
    built_for,
    devices_of,
    place_of,
)

_CUDA = DeviceType.CUDA
# A handle in 0.1 µs; ``torch.cuda.current_stream`` makes an object. Builds for CUDA have it.
_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
_STRIDED = torch.strided
_USUAL = tuple(TensorInfo._field_defaults.values())  # of the fields after `device`
_made: Any = tuple.__new__
PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})


_IN_NUMPY = frozenset(DLPACK_DTYPES[dtype] for dtype in IN_NUMPY)
# The dtypes that NumPy has through ml_dtypes: PyTorch passes their bits as integers.
_AS_BITS = frozenset(
    kind
    for kind in TORCH_DTYPES
    if kind.name.startswith(("bfloat16", "float8_e")) and kind.lanes == 1
)


def by_numpy(tensor: "dlpack.ManagedTensor") -> torch.Tensor | None:
    """Wrap host memory through a NumPy array, in half the time; None if that is impossible.

    The NumPy array is writable, as PyTorch's tensors are: the plan has checked read-only memory.
    """
    kind = _TYPESTRS.get(tensor.dtype)
    shape = tensor.shape
    if kind is None or 0 in shape or len(shape) > MOST_AXES or state.modes():
        return None
    strides = in_bytes(relaxed(shape, tensor.strides), tensor.dtype.itemsize)
    memory = Memory(tensor.pointer, shape, strides, kind, False, tensor.owner)
    return torch.from_numpy(np.asarray(memory))


_TYPESTRS = {kind: np.dtype(kind.name).str for t, kind in DLPACK_DTYPES.items() if t in IN_NUMPY}


def _from_unusual(x: np.ndarray) -> torch.Tensor:
    """Share what ``torch.from_numpy`` refuses: unusual strides of axes of one element.

    It also refuses C's ``unsigned long long``, which equals uint64 in NumPy.
    """
    x = with_plain_strides(x)
    return torch.from_numpy(x.view("uint64") if x.dtype == np.uint64 else x)


from_numpy = or_else(torch.from_numpy, _from_unusual, TypeError, ValueError)


def _bits_from_numpy(x: np.ndarray) -> torch.Tensor:
    dtype = TORCH_DTYPES[dlpack_dtype(x.dtype)]  # type: ignore[index]
    return from_numpy(x.view(_INTEGERS[x.itemsize])).view(dtype)


_INTEGERS = {1: np.uint8, 2: np.int16}


def _from_read_only(x: np.ndarray, _from: Any = torch.utils.dlpack.from_dlpack) -> torch.Tensor:
    """Share memory that may be read-only, by NumPy's capsule, whose flag PyTorch ignores."""
    tensor: torch.Tensor = _from(x.__dlpack__(max_version=(1, 0)))
    return tensor


def to_numpy(x: torch.Tensor) -> np.ndarray:
    """Share by ``Tensor.numpy``, after which the storage cannot be resized.

    Another thread may have resized it before, or replaced the tensor's storage.
    """
    check_storage(x)
    try:
        view: np.ndarray = x.numpy()
    except RuntimeError:
        if x.numel():
            raise
        return np.empty(x.shape, numpy_dtype(DLPACK_DTYPES[x.dtype]))  # zeros without memory
    check_storage(view.base)
    return view


def _bits_to_numpy(x: torch.Tensor) -> np.ndarray:
    x = x.data  # `view` releases the GIL
    return to_numpy(x.view(BITS[x.itemsize])).view(numpy_dtype(DLPACK_DTYPES[x.dtype]))


def check_storage(x: torch.Tensor) -> None:
    """Raise RuntimeError if the storage is too small: reading would leave its memory."""
    if not state.in_storage(x):
        raise RuntimeError("the storage of the tensor was resized")


def _writable(kinds: Any) -> Any:
    return lambda s: s.dtype in kinds and not (s.readonly or s.ndim > MOST_AXES or state.modes())


def _read_only(s: TensorInfo) -> bool:
    known = s.readonly and s.dtype in _IN_NUMPY and not s.empty
    return known and s.ndim <= MOST_AXES and not state.modes()


def _in_numpy(s: TensorInfo) -> bool:
    return s.dtype in _IN_NUMPY and s.ndim <= MOST_AXES


def _is_plain(x: torch.Tensor) -> bool:
    return (
        type(x) in PLAIN
        and not x.requires_grad
        and x.layout is _STRIDED
        and not x.is_nested
        and forward_ad._current_level < 0
        and not state.modes()
        and state.level() is None
    )


def _pointer(x: torch.Tensor) -> int:
    try:
        return x.data_ptr() if type(x) in PLAIN else 0
    except RuntimeError:  # it has no storage
        return 0


def _copy_small(x: torch.Tensor) -> torch.Tensor | None:
    if x.numel() > SMALL:
        return None
    x = x.data  # the signature has checked the rest of `alias`
    check_storage(x)
    return x.clone(memory_format=torch.contiguous_format)


def signature(x: torch.Tensor) -> Hashable:
    """Return all of a tensor's description that may decide."""
    return described_key(LIBRARY.describe(x))


exact: Any = None
_copy_in_numpy: Any = None
layout: Any = lambda x: None  # noqa: E731
_in_c = C and C.torch_functions(
    getattr(torch.Tensor, "__dlpack_c_exchange_api__", None), SMALL, torch.Tensor,
    torch.nn.Parameter, state.modes, state.level, forward_ad,
    torch.Tensor.is_neg, torch.Tensor.is_conj, torch.Tensor.untyped_storage,
    torch.Tensor.storage_offset, torch.Tensor.numpy, torch.Tensor.clone,
    torch.contiguous_format, ("memory_format",), signature, to_numpy, _copy_small,
    copy_aligned,
)  # fmt: skip
if _in_c is not None:
    signature, exact, to_numpy, _copy_small, layout, _copy_in_numpy = _in_c


def _copy_on_device(x: torch.Tensor) -> torch.Tensor | None:
    """Copy by the kernel on PyTorch's stream."""
    from ...core.kernel import NoKernel, compact_strides, kernel_for

    x = LIBRARY.alias(x)
    device, data = place_of(x.device), x.data_ptr()
    assert device is not None
    kernel = kernel_for(device)
    if kernel is None or _raw_stream is None or not data or not state.in_storage(x):
        return None
    block = torch.empty_like(x, memory_format=torch.contiguous_format)
    stream = _raw_stream(device.id) or (1 if device.type == DeviceType.CUDA else 0)
    try:
        strides = compact_strides(x.shape, x.stride(), x.itemsize)
        kernel.run(block.data_ptr(), data, x.shape, *strides, x.itemsize, stream, device)
    except NoKernel:  # there is no compiler: the plan knows
        return None
    return block


EDGES = (
    Edge("torch", "torch", _copy_small, lambda s: s.device == CPU, copies=True, most=SMALL),
    *([Edge("torch", "numpy", _copy_in_numpy, _in_numpy, copies=True)] if _copy_in_numpy else []),
    Edge("torch", "torch", _copy_on_device, lambda s: s.device != CPU, copies=True),
    Edge("numpy", "torch", from_numpy, _writable(_IN_NUMPY)),
    Edge("numpy", "torch", _from_read_only, _read_only),
    Edge("numpy", "torch", _bits_from_numpy, _writable(_AS_BITS)),
    Edge("torch", "numpy", to_numpy, _in_numpy),
    Edge("torch", "numpy", _bits_to_numpy, lambda s: s.dtype in _AS_BITS and s.ndim <= MOST_AXES),
)


class _Devices(Devices):
    def empty(self, info: TensorInfo, like: object = None) -> torch.Tensor:
        kind = TORCH_DTYPES[info.dtype]
        return torch.empty(info.shape, dtype=kind, device=self.native_device(info.device))

    def read_on(self, x: torch.Tensor, device: Device, stream: int | None) -> None:
        """Keep memory whose storage cannot be resized; else let PyTorch's stream wait.

        `Tensor.record_stream` uses the stream when the memory is freed, by when it may have been
        destroyed.
        """
        if device.type == _CUDA and stream is not None and not x.untyped_storage().resizable():
            from ...kernels.cuda import context

            context.hold(device.id, stream, x)
        else:
            super().read_on(x, device, stream)

    def to_device(self, x: Any, device: Device) -> torch.Tensor:
        if isinstance(x, np.ndarray):
            x = torch.from_numpy(x)
        return x.to(self.native_device(device))

    def native_device(self, device: Device) -> torch.device:
        place = NATIVE_DEVICES.get(device)
        if place is not None:
            return place
        why = missing_device(LIBRARY.accepts, device)
        if why is not None:
            raise ConversionError(why)
        check_present("PyTorch", device, devices_of(device.type))
        place = NATIVE_DEVICES[device] = torch.device(DEVICE_NAMES[device.type], device.id)
        return place

    def place(self, device: object) -> Device | None:
        return place_of(device) if isinstance(device, torch.device) else None

    def current_stream(self, device: Device) -> int | None:
        if device.type == _CUDA and _raw_stream is not None:
            return _raw_stream(device.id) or 1
        if device.type == DeviceType.ROCM:
            return int(torch.cuda.current_stream(device.id).cuda_stream)
        return None


class _Computing(Computing):
    native_namespace = deferred(__package__, "namespace", "native")
    array_class = deferred(__package__, "array", "TorchArray")

    def astype(self, x: torch.Tensor, dtype: DataType, axes: tuple[int, ...]) -> torch.Tensor:
        x = LIBRARY.alias(x)
        if x.is_cpu and x.layout is _STRIDED and state.level() is None:
            check_storage(x)
        kind, ndim = TORCH_DTYPES[dtype], len(axes)
        in_order = axes == tuple(range(ndim))
        laid = x if in_order else x.permute(axes)
        made = laid.to(kind, copy=True, memory_format=torch.contiguous_format)
        return made if in_order else made.permute([axes.index(axis) for axis in range(ndim)])

    def casts_faster(self, given: DataType, wanted: DataType) -> bool:
        # Half precision by 3 to 100 times, others by the number of threads; booleans are slower.
        return given.code != DataTypeCode.BOOL and _as_numpy(given, wanted)

    def assign(self, dst: torch.Tensor, src: torch.Tensor) -> None:
        dst.copy_(src)

    def mark_modified(self, x: torch.Tensor) -> None:
        increment_version(x)  # so that backward() refuses what it saved before

    def tracks(self, x: torch.Tensor) -> bool:
        return x.requires_grad

    def operation(self, adapted: Any, args: Any, kwargs: Any) -> Any:
        from . import gradients

        return gradients.call_with_tensors(adapted, args, kwargs)


class Torch(Library):
    """PyTorch."""

    name = "torch"
    devices = _Devices()
    computing = _Computing()
    accepts = Accepts(
        library="torch",
        tested="2.13.0",
        dtypes=frozenset(dtype.name for dtype in DLPACK_DTYPES.values()) | {"float4_e2m1fnx2"},
        devices=built_for(),
        strides="non-negative",
        aligned=frozenset({"complex128"}),  # 10 of 55 operations crash without
    )

    def owns(self, array_type: type) -> bool:
        return issubclass(array_type, torch.Tensor)

    edges = EDGES
    signature = staticmethod(signature)
    routing = Routing(_is_plain, _pointer, exact, aligned=64, state=state.modes)

    def describe(self, x: torch.Tensor) -> TensorInfo:
        seen = layout(x)
        dtype = DLPACK_DTYPES.get(x.dtype) if seen else None
        if dtype is None:
            return self._described(x)
        # As the constructor does, in a third of the time.
        return _made(TensorInfo, ("torch", *seen, dtype, CPU, *_USUAL))

    def _described(self, x: torch.Tensor) -> TensorInfo:
        """Describe any tensor."""
        state.check_shape(x)
        dtype = DLPACK_DTYPES.get(x.dtype)
        device = place_of(x.device)
        if device is None:
            raise ConversionError(
                f"torch's device {x.device} has no memory to share: "
                "move the tensor to a real device"
            )
        refused = state.no_memory(x)
        shape = tuple(x.shape)
        data, strides, tracked = 0, (0,) * len(shape), False
        if refused is None:
            strides = x.stride()
            try:
                data = x.data_ptr()
            except RuntimeError as error:
                tracked = state.is_transformed(x)
                refused = (
                    f"this {type(x).__name__} has no plain memory ({first_line(error)}): "
                    "convert outside vmap, grad and compile"
                )
            else:
                refused = state.lacks_memory(x, data)
                data = 0 if refused else data
        if refused is None:
            if x.requires_grad:
                refused = "gradients are tracked and would be cut silently: pass x.detach()"
            elif state.has_tangent(x):
                refused = "forward-mode gradients would be lost silently: pass x.detach()"
            tracked = refused is not None
        if dtype is None:
            dtype, tracked = NO_DTYPE, False
            other = "x.dequantize()" if x.is_quantized else "its bytes, x.view(torch.uint8)"
            refused = refused or f"{x.dtype} has no DLPack type: pass {other}"
        pending: tuple[str, ...] = ()
        if refused is None:
            if x.is_conj():
                pending += ("conj",)
            if x.is_neg():
                pending += ("neg",)
                refused = state.not_negated(x)
        return TensorInfo(
            "torch", data, 0, shape, strides, dtype, device, False,
            pending=pending, refused=refused, tracked=tracked,
        )  # fmt: skip

    def export(self, x: torch.Tensor, stream: int | None = None) -> "dlpack.ManagedTensor":
        x = self.alias(x)
        info = self.describe(x)
        if info.device.type == DeviceType.CPU:
            return exported(self, x, info)
        if info.device.type == _CUDA:
            # PyTorch's own __dlpack__ reads None as no ordering, and refuses the per-thread stream.
            if stream != -1:
                from ...kernels.cuda import context

                context.order(info.device.id, stream, self.devices.current_stream(info.device))
            return on_memory(info, self.memory_owner(x, info))
        # An alias keeps the storage even if ``x`` gets another.
        tensor = dlpack.acquire(x.detach(), stream=stream)
        tensor.readonly = False  # a legacy capsule, of older versions, cannot mark it
        return tensor

    def alias(self, x: torch.Tensor) -> torch.Tensor:
        return x.data if _is_plain(x) else x  # `data` forgets a gradient and a tangent

    def memory_owner(self, x: torch.Tensor, info: TensorInfo, briefly: bool = False) -> object:
        """Return a NumPy array: an alias of the storage, which then cannot be resized.

        The tensor itself can be given another storage (``x.data = ``, ``set_``, ``swap_tensors``),
        and an alias that is a tensor would not stop ``resize_`` from moving the storage. `briefly`,
        it is not locked.
        """
        if info.device != CPU:
            return x.detach()
        if briefly:
            return x
        if type(x) in PLAIN and state.level() is None and not state.modes():
            return _pinned(x, info)
        # Of what a subclass, a mode or a transformation intercepts, nothing is called.
        with (
            torch._C._DisableTorchDispatch(),
            torch._C.DisableTorchFunctionSubclass(),
            temporarily_clear_interpreter_stack(),
        ):
            return _pinned(x, info)

    def wrap(self, tensor: "dlpack.ManagedTensor") -> torch.Tensor:
        if tensor.device.type != DeviceType.CPU:
            # torch refuses a tensor that is not on the current device.
            with torch.device(DEVICE_NAMES[tensor.device.type], tensor.device.id):
                return torch.from_dlpack(dlpack.to_capsule(tensor))
        result = by_numpy(tensor)
        if result is not None:
            return result
        api = dlpack.exchange_api(torch.Tensor)
        if api is not None:
            return api.wrap(tensor)
        return torch.from_dlpack(dlpack.to_capsule(tensor))

    def resolve(self, x: torch.Tensor) -> torch.Tensor:
        return x.contiguous().resolve_conj().resolve_neg()

    def copy(self, x: torch.Tensor) -> torch.Tensor | None:
        info = self.describe(x)
        if info.tracked or (info.refused is None and x.device.type != "cpu"):
            return x.clone(memory_format=torch.contiguous_format)
        return None


def _pinned(x: torch.Tensor, info: TensorInfo) -> np.ndarray:
    """Return a NumPy array over a tensor's storage, which then cannot be resized."""
    try:
        plain = x if x.dtype in IN_NUMPY else x.view(BITS[x.itemsize])
        owner = torch.Tensor.numpy(plain)
    except (RuntimeError, ValueError):  # more axes than NumPy supports, wider elements
        owner = torch.empty(0, dtype=torch.uint8).set_(x.untyped_storage()).numpy()
    if x.data_ptr() != info.data or state.lacks_memory(x, info.data):
        raise ConversionError("the tensor's memory was replaced meanwhile: convert it again")
    return owner


@cache
def _as_numpy(given: DataType, wanted: DataType) -> bool:
    """Whether PyTorch casts all values as NumPy and ml_dtypes do; a test compares them."""
    if (given.name, wanted.name) == ("float64", "float16"):
        return False  # it rounds twice
    from ...core.cast_rules import allowed

    if wanted.bits < 16 and wanted.code > DataTypeCode.UINT:  # it saturates to the other float8
        return wanted.name in _FLOAT8 and given.name in ("float16", "bfloat16", "float32")
    return allowed(given, wanted, "same_kind")


_FLOAT8 = ("float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")


LIBRARY = Torch()
