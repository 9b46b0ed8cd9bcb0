"""What type checkers see of ``convert``: the class of the result, by the name of the library.

Nothing imports this at run time. ``Convert`` is a class, as an overloaded function whose overloads
name a library that is not installed is "partially unknown" to pyright wherever it is used; of a
class that is asked only where that library is named.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, overload

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

    from .dispatch.casting import Casting

__all__ = ["Asked", "Convert", "LibraryName"]

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


class Asked(TypedDict, total=False):
    """The keywords of ``convert``; see there."""

    device: object
    copy: bool | None
    alias_readonly: bool
    dtype: object
    casting: Casting
    order: object


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
    @overload
    def __call__(
        self, x: Any, /, to: LibraryName | str | ModuleType, **asked: Unpack[Asked]
    ) -> Any: ...


if TYPE_CHECKING:
    convert: Convert
