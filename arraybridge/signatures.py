"""What type checkers see of functions that take a library: the class of the result, by its name.

Nothing imports this at run time. ``Convert`` and its like are classes, as an overloaded function
whose overloads name a library that is not installed is "partially unknown" to pyright wherever it
is used; of a class that is asked only where that library is named. A library's module is told by
the class of its arrays, which it has as an attribute.

A library that a user registers has a name that no checker knows: annotate it as ``Any``. A function
that passes the name of a library on takes a ``LibraryName``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    Protocol,
    TypeAlias,
    TypedDict,
    TypeVar,
    overload,
)

if TYPE_CHECKING:  # whichever of them is installed
    from typing import Unpack

    import cupy
    import dask.array
    import dpnp
    import jax
    import mlx.core
    import numpy
    import onnxruntime
    import openvino
    import paddle
    import PIL.Image
    import pyarrow
    import tensorflow
    import torch
    import tvm_ffi
    import warp
    from torch._C import memory_format

    from .array import Array
    from .dispatch.casting import Casting
    from .dispatch.records import Route

__all__ = ["Asarray", "Asked", "Contiguous", "Convert", "Explain", "LibraryName", "Order", "To"]

LibraryName = Literal[
    "array_api_strict",
    "cuda_core",
    "cupy",
    "dask",
    "dpnp",
    "jax",
    "mlx",
    "numba",
    "numpy",
    "onnxruntime",
    "openvino",
    "paddle",
    "pillow",
    "pyarrow",
    "pyarrow.Array",
    "tensorflow",
    "torch",
    "tvm_ffi",
    "warp",
]


#: The order of the elements in memory, as ``convert`` takes it. To mypy it is any object where
#: PyTorch is not installed.
Order: TypeAlias = "Literal['C', 'F', 'K', 'channels_last'] | memory_format | None"


class Asked(TypedDict, total=False):
    """The keywords of ``convert``; see there."""

    device: object
    copy: bool | None
    alias_readonly: bool
    dtype: object
    casting: Casting
    order: Order


class AskedOfAsarray(TypedDict, total=False):
    """The keywords of ``asarray`` besides ``like``; see there."""

    dtype: object
    casting: Casting
    device: object
    copy: bool | None


class AskedOfTo(TypedDict, total=False):
    """The keywords of ``Array.to``; see there."""

    device: object
    copy: bool | None
    alias_readonly: bool


class Native(Protocol):
    """An array of any library, by what they all have."""

    @property
    def shape(self) -> Any: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def device(self) -> Any: ...
    def __getitem__(self, key: Any, /) -> Any: ...


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


ArrayT = TypeVar("ArrayT", bound=Native)


class _NumPy(Protocol):
    @property
    def busdaycalendar(self) -> Any: ...
    @property
    def ndarray(self) -> type[numpy.ndarray[Any, Any]]: ...


class _Torch(Protocol):
    @property
    def is_storage(self) -> Any: ...
    @property
    def Tensor(self) -> type[torch.Tensor]: ...


class _Jax(Protocol):
    @property
    def jit(self) -> Any: ...
    @property
    def Array(self) -> type[jax.Array]: ...


class _TensorFlow(Protocol):
    @property
    def GradientTape(self) -> Any: ...
    @property
    def Tensor(self) -> type[tensorflow.Tensor]: ...


class _CuPy(Protocol):
    @property
    def ElementwiseKernel(self) -> Any: ...
    @property
    def ndarray(self) -> type[cupy.ndarray]: ...


class _Dpnp(Protocol):
    @property
    def dpnp_array(self) -> Any: ...
    @property
    def ndarray(self) -> type[dpnp.ndarray]: ...


class _Paddle(Protocol):
    @property
    def to_tensor(self) -> Any: ...
    @property
    def Tensor(self) -> type[paddle.Tensor]: ...


class _TvmFfi(Protocol):
    @property
    def register_global_func(self) -> Any: ...
    @property
    def Tensor(self) -> type[tvm_ffi.Tensor]: ...


class _Warp(Protocol):
    @property
    def kernel(self) -> Any: ...
    @property
    def array(self) -> type[warp.array[Any]]: ...


class _PyArrow(Protocol):
    @property
    def ChunkedArray(self) -> Any: ...
    @property
    def Tensor(self) -> type[pyarrow.Tensor]: ...


class _OnnxRuntime(Protocol):
    @property
    def InferenceSession(self) -> Any: ...
    @property
    def OrtValue(self) -> type[onnxruntime.OrtValue]: ...


class _OpenVino(Protocol):
    @property
    def Core(self) -> Any: ...
    @property
    def Tensor(self) -> type[openvino.Tensor]: ...


class Convert(Protocol):
    """The signatures of :func:`arraybridge.convert`."""

    @overload
    def __call__(
        self, x: Any, /, to: Literal["numpy"], **asked: Unpack[Asked]
    ) -> numpy.ndarray[Any, Any]: ...
    @overload
    def __call__(self, x: Any, /, to: Literal["torch"], **asked: Unpack[Asked]) -> torch.Tensor: ...
    @overload
    def __call__(self, x: Any, /, to: Literal["jax"], **asked: Unpack[Asked]) -> jax.Array: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["tensorflow"], **asked: Unpack[Asked]
    ) -> tensorflow.Tensor: ...
    @overload
    def __call__(self, x: Any, /, to: Literal["cupy"], **asked: Unpack[Asked]) -> cupy.ndarray: ...
    @overload
    def __call__(self, x: Any, /, to: Literal["dpnp"], **asked: Unpack[Asked]) -> dpnp.ndarray: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["paddle"], **asked: Unpack[Asked]
    ) -> paddle.Tensor: ...
    @overload
    def __call__(self, x: Any, /, to: Literal["mlx"], **asked: Unpack[Asked]) -> mlx.core.array: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["tvm_ffi"], **asked: Unpack[Asked]
    ) -> tvm_ffi.Tensor: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["warp"], **asked: Unpack[Asked]
    ) -> warp.array[Any]: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["pyarrow"], **asked: Unpack[Asked]
    ) -> pyarrow.Tensor: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["pyarrow.Array"], **asked: Unpack[Asked]
    ) -> pyarrow.Array: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["pillow"], **asked: Unpack[Asked]
    ) -> PIL.Image.Image: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["onnxruntime"], **asked: Unpack[Asked]
    ) -> onnxruntime.OrtValue: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["openvino"], **asked: Unpack[Asked]
    ) -> openvino.Tensor: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["dask"], **asked: Unpack[Asked]
    ) -> dask.array.Array: ...

    if TYPE_CHECKING:

        @overload
        def __call__(
            self, x: Any, /, to: _NumPy, **asked: Unpack[Asked]
        ) -> numpy.ndarray[Any, Any]: ...
        @overload
        def __call__(self, x: Any, /, to: _Torch, **asked: Unpack[Asked]) -> torch.Tensor: ...
        @overload
        def __call__(self, x: Any, /, to: _Jax, **asked: Unpack[Asked]) -> jax.Array: ...
        @overload
        def __call__(
            self, x: Any, /, to: _TensorFlow, **asked: Unpack[Asked]
        ) -> tensorflow.Tensor: ...
        @overload
        def __call__(self, x: Any, /, to: _CuPy, **asked: Unpack[Asked]) -> cupy.ndarray: ...
        @overload
        def __call__(self, x: Any, /, to: _Dpnp, **asked: Unpack[Asked]) -> dpnp.ndarray: ...
        @overload
        def __call__(self, x: Any, /, to: _Paddle, **asked: Unpack[Asked]) -> paddle.Tensor: ...
        @overload
        def __call__(self, x: Any, /, to: _TvmFfi, **asked: Unpack[Asked]) -> tvm_ffi.Tensor: ...
        @overload
        def __call__(self, x: Any, /, to: _Warp, **asked: Unpack[Asked]) -> warp.array[Any]: ...
        @overload
        def __call__(self, x: Any, /, to: _PyArrow, **asked: Unpack[Asked]) -> pyarrow.Tensor: ...
        @overload
        def __call__(
            self, x: Any, /, to: _OnnxRuntime, **asked: Unpack[Asked]
        ) -> onnxruntime.OrtValue: ...
        @overload
        def __call__(self, x: Any, /, to: _OpenVino, **asked: Unpack[Asked]) -> openvino.Tensor: ...

    @overload
    def __call__(self, x: Any, /, to: LibraryName | ModuleType, **asked: Unpack[Asked]) -> Any: ...


class Explain(Protocol):
    """The signature of :func:`arraybridge.explain`."""

    def __call__(
        self, x: Any, /, to: LibraryName | ModuleType, **asked: Unpack[Asked]
    ) -> Route: ...


class Asarray(Protocol):
    """The signatures of :func:`arraybridge.asarray`."""

    @overload
    def __call__(
        self, obj: Any, /, *, like: Literal["numpy"] | _NumPy, **asked: Unpack[AskedOfAsarray]
    ) -> numpy.ndarray[Any, Any]: ...
    @overload
    def __call__(
        self, obj: Any, /, *, like: Literal["torch"] | _Torch, **asked: Unpack[AskedOfAsarray]
    ) -> torch.Tensor: ...
    @overload
    def __call__(
        self, obj: Any, /, *, like: Literal["jax"] | _Jax, **asked: Unpack[AskedOfAsarray]
    ) -> jax.Array: ...
    @overload
    def __call__(
        self,
        obj: Any,
        /,
        *,
        like: Literal["tensorflow"] | _TensorFlow,
        **asked: Unpack[AskedOfAsarray],
    ) -> tensorflow.Tensor: ...
    @overload
    def __call__(
        self, obj: Any, /, *, like: Literal["cupy"] | _CuPy, **asked: Unpack[AskedOfAsarray]
    ) -> cupy.ndarray: ...
    @overload
    def __call__(
        self, obj: Any, /, *, like: Literal["dpnp"] | _Dpnp, **asked: Unpack[AskedOfAsarray]
    ) -> dpnp.ndarray: ...
    @overload
    def __call__(
        self, obj: Any, /, *, like: Literal["paddle"] | _Paddle, **asked: Unpack[AskedOfAsarray]
    ) -> paddle.Tensor: ...
    @overload
    def __call__(
        self, obj: Any, /, *, like: Literal["mlx"], **asked: Unpack[AskedOfAsarray]
    ) -> mlx.core.array: ...
    @overload
    def __call__(
        self, obj: Any, /, *, like: Literal["tvm_ffi"] | _TvmFfi, **asked: Unpack[AskedOfAsarray]
    ) -> tvm_ffi.Tensor: ...
    @overload
    def __call__(
        self, obj: Any, /, *, like: Literal["warp"] | _Warp, **asked: Unpack[AskedOfAsarray]
    ) -> warp.array[Any]: ...
    @overload
    def __call__(
        self, obj: Any, /, *, like: Literal["pyarrow"] | _PyArrow, **asked: Unpack[AskedOfAsarray]
    ) -> pyarrow.Tensor: ...
    @overload
    def __call__(
        self, obj: Any, /, *, like: Literal["pyarrow.Array"], **asked: Unpack[AskedOfAsarray]
    ) -> pyarrow.Array: ...
    @overload
    def __call__(
        self, obj: Any, /, *, like: Literal["pillow"], **asked: Unpack[AskedOfAsarray]
    ) -> PIL.Image.Image: ...
    @overload
    def __call__(
        self,
        obj: Any,
        /,
        *,
        like: Literal["onnxruntime"] | _OnnxRuntime,
        **asked: Unpack[AskedOfAsarray],
    ) -> onnxruntime.OrtValue: ...
    @overload
    def __call__(
        self, obj: Any, /, *, like: Literal["openvino"] | _OpenVino, **asked: Unpack[AskedOfAsarray]
    ) -> openvino.Tensor: ...
    @overload
    def __call__(
        self, obj: Any, /, *, like: Literal["dask"], **asked: Unpack[AskedOfAsarray]
    ) -> dask.array.Array: ...
    @overload
    def __call__(self, obj: Any, /, *, like: ArrayT, **asked: Unpack[AskedOfAsarray]) -> ArrayT: ...
    @overload
    def __call__(
        self, obj: Any, /, *, like: LibraryName | ModuleType, **asked: Unpack[AskedOfAsarray]
    ) -> Any: ...
    @overload
    def __call__(
        self,
        obj: Any,
        /,
        *,
        like: Mapping[Any, Any] | Sequence[Native] | _Dataclass,
        **asked: Unpack[AskedOfAsarray],
    ) -> Any: ...


class To(Protocol):
    """The signatures of :meth:`arraybridge.Array.to`."""

    @overload
    def __call__(self, library: None = None, /, **asked: Unpack[AskedOfTo]) -> Array: ...
    @overload
    def __call__(
        self, library: Literal["numpy"] | _NumPy, /, **asked: Unpack[AskedOfTo]
    ) -> numpy.ndarray[Any, Any]: ...
    @overload
    def __call__(
        self, library: Literal["torch"] | _Torch, /, **asked: Unpack[AskedOfTo]
    ) -> torch.Tensor: ...
    @overload
    def __call__(
        self, library: Literal["jax"] | _Jax, /, **asked: Unpack[AskedOfTo]
    ) -> jax.Array: ...
    @overload
    def __call__(
        self, library: Literal["tensorflow"] | _TensorFlow, /, **asked: Unpack[AskedOfTo]
    ) -> tensorflow.Tensor: ...
    @overload
    def __call__(
        self, library: Literal["cupy"] | _CuPy, /, **asked: Unpack[AskedOfTo]
    ) -> cupy.ndarray: ...
    @overload
    def __call__(
        self, library: Literal["dpnp"] | _Dpnp, /, **asked: Unpack[AskedOfTo]
    ) -> dpnp.ndarray: ...
    @overload
    def __call__(
        self, library: Literal["paddle"] | _Paddle, /, **asked: Unpack[AskedOfTo]
    ) -> paddle.Tensor: ...
    @overload
    def __call__(
        self, library: Literal["mlx"], /, **asked: Unpack[AskedOfTo]
    ) -> mlx.core.array: ...
    @overload
    def __call__(
        self, library: Literal["tvm_ffi"] | _TvmFfi, /, **asked: Unpack[AskedOfTo]
    ) -> tvm_ffi.Tensor: ...
    @overload
    def __call__(
        self, library: Literal["warp"] | _Warp, /, **asked: Unpack[AskedOfTo]
    ) -> warp.array[Any]: ...
    @overload
    def __call__(
        self, library: Literal["pyarrow"] | _PyArrow, /, **asked: Unpack[AskedOfTo]
    ) -> pyarrow.Tensor: ...
    @overload
    def __call__(
        self, library: Literal["pyarrow.Array"], /, **asked: Unpack[AskedOfTo]
    ) -> pyarrow.Array: ...
    @overload
    def __call__(
        self, library: Literal["pillow"], /, **asked: Unpack[AskedOfTo]
    ) -> PIL.Image.Image: ...
    @overload
    def __call__(
        self, library: Literal["onnxruntime"] | _OnnxRuntime, /, **asked: Unpack[AskedOfTo]
    ) -> onnxruntime.OrtValue: ...
    @overload
    def __call__(
        self, library: Literal["openvino"] | _OpenVino, /, **asked: Unpack[AskedOfTo]
    ) -> openvino.Tensor: ...
    @overload
    def __call__(
        self, library: Literal["dask"], /, **asked: Unpack[AskedOfTo]
    ) -> dask.array.Array: ...
    @overload
    def __call__(self, library: LibraryName | ModuleType, /, **asked: Unpack[AskedOfTo]) -> Any: ...


class Contiguous(Protocol):
    """The signatures of :func:`arraybridge.contiguous`."""

    @overload
    def __call__(self, x: ArrayT, /, *, out: None = None) -> ArrayT: ...
    @overload
    def __call__(self, x: Any, /, *, out: ArrayT) -> ArrayT: ...
    @overload
    def __call__(self, x: Any, /, *, out: Any = None) -> Any: ...


if TYPE_CHECKING:
    asarray: Asarray
    contiguous: Contiguous
    convert: Convert
    explain: Explain
