"""PyTorch. It has no read-only tensors and aborts on negative strides: both are copied first.

Its C exchange API imports; it skips the guards for gradients, conjugate and negative bits, so
:meth:`Torch.describe` looks at those first.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache
from typing import Any

import numpy as np
import torch
import torch.utils.dlpack
from torch.autograd import forward_ad
from torch.autograd.graph import increment_version

from ...dispatch.kernel import SMALL, NoKernel, kernel_for, own_copies_serve
from ...dispatch.library import Library
from ...dispatch.plan import missing_device
from ...dispatch.records import NO_DTYPE, Accepts, ConversionError, TensorInfo, first_line
from ...dlpack import (
    CPU,
    DataType,
    Device,
    DeviceType,
    ManagedTensor,
    acquire,
    exchange_api,
    to_capsule,
)
from ...layout import in_bytes, relaxed
from ...protocols.numpy_dtypes import numpy_dtype
from ..numpy.exchange import (
    ALIGNED,
    DENSE,
    RUN,
    RUNS,
    SWAPPED,
    WRITABLE,
    WRITEABLE,
    WRITING,
    Memory,
)
from ..numpy.exchange import LIBRARY as NUMPY

_NAMES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
    "complex32 complex64 complex128 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz "
    "float8_e8m0fnu"
).split()
_dlpack_dtypes = {getattr(torch, n): DataType.named(n) for n in _NAMES if hasattr(torch, n)}
if hasattr(torch, "float4_e2m1fn_x2"):  # two packed elements a byte
    _dlpack_dtypes[torch.float4_e2m1fn_x2] = DataType(17, 4, 2)

_DEVICES = {
    "cpu": DeviceType.CPU,
    "cuda": DeviceType.ROCM if torch.version.hip else DeviceType.CUDA,
    "xpu": DeviceType.ONEAPI,
    "mps": DeviceType.METAL,
}
_DEVICE_NAMES = {int(code): name for name, code in _DEVICES.items()}
_CUDA = DeviceType.CUDA
_torch_dtypes = {kind: dtype for dtype, kind in _dlpack_dtypes.items()}
# Bytes of an element, and whether it has a conjugate.
_items = {dtype: (dtype.itemsize, dtype.is_complex) for dtype in _dlpack_dtypes}
# A handle in 0.1 µs, where ``torch.cuda.current_stream`` makes an object; builds for CUDA have it.
_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
_API = exchange_api(torch.Tensor)
_MOST_AXES = 64
_STRIDED = torch.strided
_USUAL = tuple(TensorInfo._field_defaults.values())  # of what follows `device`
_made: Any = tuple.__new__
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_modes = torch._C._len_torch_dispatch_stack
_transformed = torch._C._functorch.maybe_current_level  # None outside torch.func's functions
_NO_DISPATCH = torch._C._disabled_torch_dispatch_impl
# Elements of dtypes that NumPy lacks are viewed as integers of the same size.
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32}
_IN_NUMPY = frozenset(
    getattr(torch, n) for n in _NAMES if n not in ("bfloat16", "complex32") and "float8" not in n
)


def _built_for() -> frozenset[DeviceType]:
    kinds = {DeviceType.CPU}
    if torch.version.cuda or torch.version.hip:
        kinds.add(_DEVICES["cuda"])
    if hasattr(torch, "xpu") and torch.xpu.is_available():
        kinds.add(DeviceType.ONEAPI)
    return frozenset(kinds)


class Torch(Library):
    """PyTorch."""

    name = "torch"
    exports_description = True
    accepts = Accepts(
        library="torch",
        tested="2.13.0",
        dtypes=frozenset(dtype.name for dtype in _dlpack_dtypes.values()) | {"float4_e2m1fnx2"},
        devices=_built_for(),
        strides="non-negative",
        aligned=frozenset({"complex128"}),  # 10 of 55 operations crash elsewhere
    )

    def owns(self, array_type: type) -> bool:
        return issubclass(array_type, torch.Tensor)

    def has_doors(self, array_type: type) -> bool:
        return array_type in _PLAIN

    def describe(self, x: torch.Tensor) -> TensorInfo:
        dtype = _dlpack_dtypes.get(x.dtype)
        if (
            type(x) is torch.Tensor
            and dtype is not None
            and x.is_cpu
            and x.layout is _STRIDED
            and not (x.requires_grad or x.is_nested or x.is_conj() or x.is_neg())
            and forward_ad._current_level < 0
            and x.is_contiguous()
            and not _modes()
        ):
            try:
                data, start = x.data_ptr(), x.storage_offset()
            except RuntimeError:  # inside vmap
                return self._described(x)
            end = (start + x.numel()) * dtype.itemsize
            if data and data != start * dtype.itemsize and end <= x.untyped_storage().nbytes():
                # As the constructor does, at a third of the time.
                return _made(
                    TensorInfo,
                    ("torch", data, 0, tuple(x.shape), x.stride(), dtype, CPU, *_USUAL),
                )
        return self._described(x)

    def _described(self, x: torch.Tensor) -> TensorInfo:
        """Describe any tensor."""
        check_shape(x)
        dtype = _dlpack_dtypes.get(x.dtype)
        device = _device(x.device)
        if device is None:
            raise ConversionError(
                f"torch's device {x.device} has no memory to share: "
                "move the tensor to a real device"
            )
        refused = _no_memory(x)
        shape = tuple(x.shape)
        data, strides = 0, (0,) * len(shape)
        if refused is None:
            strides = x.stride()
            try:
                data = x.data_ptr()
            except RuntimeError as error:
                refused = (
                    f"this {type(x).__name__} has no plain memory ({first_line(error)}): "
                    "convert outside vmap, grad and compile"
                )
            else:
                refused = _lacks_memory(x, data, shape, strides)
        if refused is None and x.requires_grad:
            refused = "gradients are tracked and would be cut silently: pass x.detach()"
        if refused is None and _has_tangent(x):
            refused = "forward-mode gradients would be lost silently: pass x.detach()"
        if dtype is None:
            dtype = NO_DTYPE
            other = "x.dequantize()" if x.is_quantized else "x.to(torch.float32)"
            refused = refused or f"{x.dtype} has no DLPack type: pass {other}"
        pending: tuple[str, ...] = ()
        if refused is None:
            if x.is_conj():
                pending += ("conj",)
            if x.is_neg():
                pending += ("neg",)
        return TensorInfo(
            "torch",
            data,
            0,
            shape,
            strides,
            dtype,
            device,
            pending=pending,
            refused=refused,
        )

    def memory(self, x: torch.Tensor) -> tuple[int, tuple[int, ...], tuple[int, ...] | None] | None:
        if type(x) not in _PLAIN or not x.is_cpu:
            return None
        if x.is_contiguous():
            return x.data_ptr(), x.shape, None
        itemsize = x.itemsize
        return x.data_ptr(), x.shape, tuple([step * itemsize for step in x.stride()])

    def carries(self, x: torch.Tensor, _strided: torch.layout = torch.strided) -> bool:
        return x.layout is _strided and not x.is_meta and not x.is_nested

    def export(self, x: torch.Tensor, stream: int | None = None) -> ManagedTensor:
        x = self.held(x)
        info = self.describe(x)
        if info.device.type == DeviceType.CPU:
            return self.export_described(x, info)
        if info.device.type == _CUDA:
            self._order(x, info.device, 1 if stream is None else stream)
            return super().export_described(x, info)
        # An alias has the storage still when ``x`` has another.
        tensor = acquire(x.detach(), stream=stream)
        tensor.readonly = False  # a legacy capsule, of older versions, cannot say so
        return tensor

    def _order(self, x: torch.Tensor, device: Device, reader: int) -> None:
        """Make a stream wait for what was queued on the tensor's device; -1 wants no waiting.

        PyTorch's own ``__dlpack__`` does so too, but takes no stream to be the legacy one, refuses
        the per-thread one, and does not tell the allocator: memory that is freed would be used
        again by PyTorch's stream while the other stream reads it.
        """
        own = self.current_stream(device)
        if reader in (-1, own):
            return
        place = torch.device("cuda", device.id)
        if reader == 1:
            side = torch.cuda.default_stream(place)
        else:
            side = torch.cuda.ExternalStream(reader, device=place)  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream(place))
        x.record_stream(side)

    def held(self, x: torch.Tensor) -> torch.Tensor:
        if (
            type(x) in _PLAIN
            and not x.requires_grad  # which `data` forgets, as it does a tangent
            and forward_ad._current_level < 0
            and not _modes()  # fake tensors and their like
        ):
            try:
                return x.data
            except RuntimeError:  # inside transformations
                return x
        return x

    def pin(self, x: torch.Tensor, info: TensorInfo) -> object:
        """NumPy's array: an alias of the storage, which from then on cannot be resized.

        The tensor itself can be given another storage (``x.data = ``, ``set_``, ``swap_tensors``),
        and an alias alone would not keep ``resize_`` from moving the one that it has.
        """
        if info.device != CPU:
            return x.detach()
        if _modes():
            with torch._C._DisableTorchDispatch():  # fake tensors and their like
                return self._pinned(x, info)
        return self._pinned(x, info)

    @staticmethod
    def _pinned(x: torch.Tensor, info: TensorInfo) -> object:
        try:
            owner = (x if x.dtype in _IN_NUMPY else x.view(_BITS[x.itemsize])).numpy()
        except (RuntimeError, ValueError):  # inside torch.func.grad; more axes than NumPy has
            owner = x.untyped_storage()
        if x.data_ptr() != info.data:
            raise ConversionError("the tensor got other memory meanwhile: convert it again")
        return owner

    def wrap(self, tensor: ManagedTensor, *, move: bool = False) -> torch.Tensor:
        if tensor.device.type != DeviceType.CPU:
            # torch refuses a tensor that is not on the current device.
            with torch.device(_DEVICE_NAMES[tensor.device.type], tensor.device.id):
                return torch.from_dlpack(to_capsule(tensor, move=move))
        if not move:
            result = _by_numpy(tensor)
            if result is not None:
                return result
        if _API is not None:
            return _API.wrap(tensor, move=move)
        return torch.from_dlpack(to_capsule(tensor, move=move))

    def resolve(self, x: torch.Tensor) -> torch.Tensor:
        return x.resolve_conj().resolve_neg()

    def copy(self, x: torch.Tensor) -> torch.Tensor | None:
        if x.requires_grad or x.device.type != "cpu" or _has_tangent(x):
            return x.clone(memory_format=torch.contiguous_format)
        return None

    def empty(self, info: TensorInfo) -> torch.Tensor:
        kind = _torch_dtypes[info.dtype]
        return torch.empty(info.shape, dtype=kind, device=self.native_device(info.device))

    def read_on(self, x: torch.Tensor, device: Device, stream: int | None) -> None:
        """Keep what the allocator does not know; else it was told when the tensor was exported.

        It knows no memory of others, whose storage cannot be resized, and notes the default stream
        of a thread as that of the thread that frees.
        """
        if device.type != _CUDA or stream is None:
            return
        if not x.untyped_storage().resizable():
            from ...kernels.cuda import context

            context.hold(device.id, stream, x)
        elif stream == 2:
            super().read_on(x, device, stream)

    def compact(self, x: torch.Tensor, _small: int = SMALL) -> torch.Tensor | None:
        if type(x) is torch.Tensor and x.is_cpu and x.numel() <= _small:
            # PyTorch's own, before any test that it makes as well. A copy has conjugate and
            # negative bits applied, and gradients tracked.
            try:
                result = x.contiguous()
            except RuntimeError:  # other layouts have none
                return None
            if result is not x:
                return result
        if (
            type(x) is not torch.Tensor
            or x.layout is not torch.strided
            or x.is_conj()
            or x.is_neg()
            or not (x.is_cpu or x.is_cuda)
        ):
            return None
        if x.is_contiguous():
            return x
        if x.is_cuda:
            return self._compact_on_cuda(x)
        if x.numel() <= SMALL:
            return x.contiguous()
        # Long runs PyTorch moves by memcpy, see NumPy's.
        itemsize = x.itemsize
        if x.stride(-1) == 1 and x.nbytes <= RUNS and x.shape[-1] * itemsize >= RUN:
            return x.contiguous()
        return None

    def fresh(self, x: torch.Tensor) -> torch.Tensor | None:
        if (
            type(x) is not torch.Tensor
            or not x.is_cpu
            or x.requires_grad
            or x.is_nested
            or x.ndim > _MOST_AXES
            or not x.data_ptr()  # empty, or without memory; inside vmap it raises
            or _modes()
            or _transformed() is not None  # a copy would be a tensor without memory
            or forward_ad._current_level >= 0
        ):
            return None
        itemsize, conjugates = _items.get(x.dtype, (0, False))
        if not itemsize:
            return None
        x = x.data  # its memory of now, as `held` has it
        size = x.numel()
        # A clone has conjugate and negative bits applied; other layouts with them it keeps.
        if x.is_contiguous() and size <= SMALL:
            end = (x.storage_offset() + size) * itemsize
            return x.clone() if end <= x.untyped_storage().nbytes() else None
        if (conjugates and x.is_conj()) or x.is_neg():
            return x.clone()
        return x.contiguous() if size <= SMALL and _has_storage(x) else None

    def copies_small(self, x: torch.Tensor, info: TensorInfo) -> bool:
        return (
            type(x) is torch.Tensor
            and info.data != 0
            and info.size <= SMALL
            and not _modes()
            and _transformed() is None
            and forward_ad._current_level < 0
        )

    def pattern(self, x: torch.Tensor) -> Hashable | None:
        if type(x) is torch.Tensor and (x.is_conj() or x.is_neg()) and not x.requires_grad:
            return x.dtype  # whatever its layout, it is copied
        return None

    def _compact_on_cuda(self, x: torch.Tensor) -> torch.Tensor | None:
        """Copy by the kernel on PyTorch's stream; None where gradients or modes may matter."""
        if x.requires_grad or forward_ad._current_level >= 0 or _modes():
            return None
        try:
            device, data = _device(x.device), x.data_ptr()
        except RuntimeError:  # inside vmap
            return None
        assert device is not None
        kernel = kernel_for(device)
        if kernel is None or _raw_stream is None or not data:
            return None
        block = torch.empty_like(x, memory_format=torch.contiguous_format)
        stream = _raw_stream(device.id) or (1 if device.type == _CUDA else 0)
        try:
            kernel.compact(
                block.data_ptr(), data, x.shape, x.stride(), x.itemsize, stream, device
            )  # fmt: skip
        except NoKernel:  # there is no compiler: the planned way knows by now
            return None
        return block

    def overwrite(self, dst: torch.Tensor, src: torch.Tensor) -> bool:
        dst.copy_(src)
        return True

    def written(self, x: torch.Tensor) -> None:
        increment_version(x)  # so that backward() refuses what it saved before

    def to_host(self, x: torch.Tensor) -> torch.Tensor:
        return x.cpu()

    def to_device(self, x: Any, device: Device) -> torch.Tensor:
        if isinstance(x, np.ndarray):
            x = torch.from_numpy(x)
        return x.to(self.native_device(device))

    def native_device(self, device: Device) -> torch.device:
        name = _DEVICE_NAMES.get(device.type)
        if name is None:
            why = missing_device(self.accepts, device)
            raise ConversionError(why or f"PyTorch has no arrays on {device}")
        return torch.device(name) if name == "cpu" else torch.device(name, device.id)

    def place(self, device: object) -> Device | None:
        return _device(device) if isinstance(device, torch.device) else None

    def current_stream(self, device: Device) -> int | None:
        if device.type == _CUDA and _raw_stream is not None:
            return _raw_stream(device.id) or 1
        if device.type == DeviceType.ROCM:
            return int(torch.cuda.current_stream(device.id).cuda_stream)
        return None

    def native_namespace(self) -> Any:
        from .namespace import native

        return native

    def array_class(self) -> Any:
        from .array import TorchArray

        return TorchArray


@cache
def _device(place: torch.device) -> Device | None:
    kind = _DEVICES.get(place.type)
    return None if kind is None else Device(kind, place.index or 0)


def check_shape(x: torch.Tensor) -> None:
    """Refuse nested and uninitialized tensors, whose shape cannot be read."""
    if x.is_nested:
        raise ConversionError(
            "a nested tensor's parts differ in shape: pass torch.nested.to_padded_tensor(x, 0.0), "
            "or its parts, x.unbind()"
        )
    if type(x) is not torch.Tensor and isinstance(x, _UNINITIALIZED):
        raise ConversionError(
            f"an {type(x).__name__} has no shape yet: run the module once, or call "
            "x.materialize(shape) and pass x.detach()"
        )


_UNINITIALIZED = torch.nn.parameter.UninitializedTensorMixin


def _has_tangent(x: torch.Tensor) -> bool:
    """Whether it is a dual number of forward-mode differentiation."""
    return forward_ad._current_level >= 0 and forward_ad.unpack_dual(x).tangent is not None


def _no_memory(x: torch.Tensor) -> str | None:
    """Why a tensor is not one dense piece of memory, or None."""
    if x.layout is not torch.strided:
        return f"a {x.layout} tensor is not dense memory: pass x.to_dense()"
    if type(x) is not torch.Tensor:
        dispatch = getattr(type(x), "__torch_dispatch__", _NO_DISPATCH)
        if dispatch is not _NO_DISPATCH:
            return f"{type(x).__name__} wraps other tensors: convert what it wraps"
    return None


def _lacks_memory(
    x: torch.Tensor, data: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> str | None:
    """Why the elements are not in the memory that the tensor reports, or None."""
    if 0 in shape:
        return None
    start = x.storage_offset() * x.itemsize
    if data in (0, start):  # the storage is at address 0
        if x._is_zerotensor():
            return "its zeros are in no memory: pass x.clone()"
        if torch._is_functional_tensor(x):
            return "it is functionalized, without memory: convert outside torch.func.functionalize"
    if x.is_contiguous():
        span = x.numel()
    else:
        span = 1 + sum([(n - 1) * step for n, step in zip(shape, strides, strict=True)])
    needed = start + span * x.itemsize
    there = x.untyped_storage().nbytes()
    if there < needed:
        return (
            f"its storage was resized to {there} bytes, of which its elements need {needed}: pass "
            f"x after x.untyped_storage().resize_({needed})"
        )
    return None


def _by_numpy(tensor: ManagedTensor) -> torch.Tensor | None:
    """Wrap host memory by way of a NumPy array, which takes half the time; None where it is not so.

    NumPy's array may be written, as PyTorch's tensors may: the plan has looked at read-only memory.
    """
    kind = _TYPESTRS.get(tensor.dtype)
    shape = tensor.shape
    if kind is None or 0 in shape or len(shape) > _MOST_AXES or _modes():
        return None
    strides = in_bytes(relaxed(shape, tensor.strides), tensor.dtype.itemsize)
    memory = Memory(tensor.pointer, shape, strides, kind, False, tensor.owner)
    return torch.from_numpy(np.asarray(memory))


_TYPESTRS = {kind: np.dtype(kind.name).str for t, kind in _dlpack_dtypes.items() if t in _IN_NUMPY}


def _has_storage(x: torch.Tensor) -> bool:
    """Whether the storage has all elements; False also where that is not seen at once."""
    storage = x.untyped_storage()
    if not storage.resizable():  # NumPy owned it, or has it
        return True
    if not x.is_contiguous():
        return _lacks_memory(x, x.data_ptr(), x.shape, x.stride()) is None
    return (x.storage_offset() + x.numel()) * x.itemsize <= storage.nbytes()


def _from_numpy(
    x: np.ndarray,
    _from: Any = torch.from_numpy,
    _kind: Any = torch.Tensor,
    _usual: Any = WRITABLE,
) -> torch.Tensor | None:
    """``torch.from_numpy``: it refuses negative strides and foreign dtypes by itself.

    Inside FakeTensorMode it gives another kind of tensor; complex128 must be aligned.
    """
    flags = x.flags
    if flags in _usual or (  # its errors are slow
        (number := flags.num) & _WRITABLE == _ALIGNED_WRITABLE
        and (number & DENSE or min(x.strides) >= 0)
    ):
        if _foreign and x.dtype in _foreign:
            return None
        try:
            result = _from(x)
        except ValueError:
            if x.dtype in SWAPPED:
                _foreign.add(x.dtype)
            raise
        if result.__class__ is _kind and (x.itemsize != 16 or not result.data_ptr() % 16):
            return result
    return None


_WRITABLE = WRITING | ALIGNED
_ALIGNED_WRITABLE = WRITEABLE | ALIGNED
_foreign: set[np.dtype] = set()  # dtypes in a byte order that was refused once


def _from_fresh_numpy(
    x: np.ndarray, _from: Any = torch.from_numpy, _kind: Any = torch.Tensor
) -> torch.Tensor | None:
    """`_from_numpy` of an array that is writable and contiguous."""
    result = _from(x)
    if result.__class__ is _kind and (x.itemsize != 16 or not result.data_ptr() % 16):
        return result
    return None


def _aliased(x: np.ndarray, _from: Any = torch.utils.dlpack.from_dlpack) -> torch.Tensor | None:
    """A view of memory that may be read-only, by NumPy's capsule, whose flag PyTorch ignores.

    NumPy refuses foreign dtypes by itself.
    """
    number = x.flags.num
    if number & ALIGNED and (number & DENSE or min(x.strides) >= 0) and not _modes():
        result: torch.Tensor = _from(x.__dlpack__(max_version=(1, 0)))
        if x.itemsize != 16 or not result.data_ptr() % 16:
            return result
    return None


_from_numpy.of_fresh = _from_fresh_numpy  # type: ignore[attr-defined]
_from_numpy.aliasing = _aliased  # type: ignore[attr-defined]


def _from_jax(x: Any) -> torch.Tensor | None:
    """A small JAX array is copied (it is immutable, a tensor is not) from JAX's own view."""
    if x.nbytes > 1 << 16 or not own_copies_serve():
        return None
    view = NUMPY.doors["jax"](x)
    return None if view is None else _from_numpy(view.copy())


def _from_arrow(x: Any) -> torch.Tensor | None:
    """A small immutable array of Arrow is copied from its own view."""
    view = NUMPY.doors["pyarrow"](x)
    if view is None or view.flags.writeable or view.size > SMALL or not own_copies_serve():
        return None
    return _from_fresh_numpy(view.copy())


def _by_numpys(name: str) -> Any:
    """Return the door that takes the view which NumPy has of an array of a library."""

    def aliased(x: Any) -> torch.Tensor | None:
        view = NUMPY.doors[name](x)
        return None if view is None else _aliased(view)

    return aliased


_from_jax.copies = _from_arrow.copies = True  # type: ignore[attr-defined]
_from_jax.aliasing = _by_numpys("jax")  # type: ignore[attr-defined]
_from_arrow.aliasing = _by_numpys("pyarrow")  # type: ignore[attr-defined]


def to_numpy(
    x: torch.Tensor, _modes: Any = _modes, _forward: Any = forward_ad
) -> np.ndarray | None:
    """``Tensor.numpy`` shares, and itself refuses gradients, conj, neg and other devices.

    It takes no notice of forward-mode gradients, and gives other memory where there is none: inside
    FakeTensorMode, and for address 0.
    """
    if _flagged and x.dtype in _flagged and (x.is_conj() or x.is_neg()):
        return None
    if not x.data_ptr() or _modes() or _forward._current_level >= 0:
        return None
    # Memory that NumPy owned, or has, cannot be resized.
    if x.untyped_storage().resizable() and not _has_storage(x):
        return None
    if _viewed and x.dtype in _viewed:
        return _bits_to_numpy(x)
    try:
        return x.numpy()
    except RuntimeError:
        if x.is_conj() or x.is_neg():
            _flagged.add(x.dtype)
        raise
    except TypeError:
        if x.dtype not in _in_ml_dtypes:
            raise
        _viewed.add(x.dtype)
        return _bits_to_numpy(x)


def _bits_to_numpy(x: torch.Tensor) -> np.ndarray | None:
    if x.requires_grad:
        return None
    bits = x.view(_BITS[x.dtype.itemsize]).numpy()
    return bits.view(numpy_dtype(_dlpack_dtypes[x.dtype]))


# The dtypes of which ``Tensor.numpy`` refused a tensor once, for its bits or for what NumPy lacks.
# Its error takes 20 µs, and to ask each tensor of any dtype would be a fifth of the door.
_flagged: set[torch.dtype] = set()
_viewed: set[torch.dtype] = set()
_in_ml_dtypes = frozenset(
    dtype for dtype, kind in _dlpack_dtypes.items() if kind.name.startswith(("bfloat16", "float8"))
)


to_numpy.of_fresh = torch.Tensor.numpy  # type: ignore[attr-defined]

LIBRARY = Torch()
LIBRARY.doors = {"numpy": _from_numpy, "jax": _from_jax, "pyarrow": _from_arrow}
NUMPY.doors["torch"] = to_numpy
