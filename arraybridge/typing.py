"""Types of functions that take a library: the names of the main ones give the result's class.

Nothing imports this at run time. ``Convert`` and the others are classes: if an overload names a
library that is not installed, pyright calls an overloaded function "partially unknown" at every
use, but a class only where that library is named.

Type checkers do not know the names of registered libraries: annotate them as ``Any``. Annotate the
parameter of a function that passes on the name of a library as ``LibraryName``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypedDict, TypeVar, overload

if TYPE_CHECKING:  # some may not be installed
    from typing import Concatenate, TypeAlias, Unpack

    import jax
    import numpy
    import torch
    from torch._C import memory_format

    from .array import Array
    from .core.cast_rules import Casting
    from .core.records import Route

__all__ = ["Asarray", "Contiguous", "Convert", "Explain", "LibraryName", "Options", "Order", "To"]

LibraryName = Literal[
    "array_api_strict", "cuda_core", "cupy", "dpnp", "jax", "mlx", "numba", "numpy",
    "onnxruntime", "openvino", "paddle", "pillow", "pyarrow", "pyarrow.Array", "tensorflow",
    "torch", "tvm_ffi", "warp",
]  # fmt: skip


#: The order of elements in memory, as ``convert`` takes it; any object for mypy without PyTorch.
Order: TypeAlias = "Literal['C', 'F', 'K', 'channels_last'] | memory_format | None"


class ToOptions(TypedDict, total=False):
    """The keywords of ``Array.to``; see there."""

    device: object
    copy: bool | None
    alias_readonly: bool


class Options(ToOptions, total=False):
    """The keywords of ``convert``; see there."""

    dtype: object
    casting: Casting
    order: Order


class AsOptions(TypedDict, total=False):
    """The keywords of ``asarray`` besides ``like``; see there."""

    dtype: object
    casting: Casting
    device: object
    copy: bool | None


class Native(Protocol):
    """An array of any library: the attributes that all have."""

    @property
    def shape(self) -> Any: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def device(self) -> Any: ...
    def __getitem__(self, key: Any, /) -> Any: ...


ArrayT = TypeVar("ArrayT", bound=Native)
OtherT = TypeVar("OtherT", bound="Native | None")
T = TypeVar("T")
P = ParamSpec("P")
_Function: TypeAlias = Callable[..., Any]


# The type of a library's module: it has the class of its arrays as an attribute.


class _Tensors(Protocol[T]):
    Tensor: type[T]


class _Ndarrays(Protocol[T]):
    ndarray: type[T]


class _NumPy(Protocol):  # NumPy's arrays have type parameters
    busdaycalendar: Any
    ndarray: type[numpy.ndarray[Any, Any]]


class _Jax(Protocol):
    jit: Any
    Array: type[jax.Array]


NDArray: TypeAlias = "numpy.ndarray[Any, Any]"

# A library, by its name or its module.
NumPy: TypeAlias = "Literal['numpy'] | _NumPy"
Torch: TypeAlias = "Literal['torch']"
Jax: TypeAlias = "Literal['jax'] | _Jax"
Named: TypeAlias = "LibraryName | ModuleType"  # any of them
_Like: TypeAlias = "Named | Mapping[Any, Any] | Sequence[Native]"


class Convert(Protocol):
    """The signatures of :func:`arraybridge.convert`."""

    @overload
    def __call__(self, x: Any, /, to: NumPy, **kw: Unpack[Options]) -> NDArray: ...
    @overload
    def __call__(self, x: Any, /, to: Torch, **kw: Unpack[Options]) -> torch.Tensor: ...
    @overload
    def __call__(self, x: Any, /, to: Jax, **kw: Unpack[Options]) -> jax.Array: ...
    @overload
    def __call__(self, x: Any, /, to: _Tensors[T], **kw: Unpack[Options]) -> T: ...
    @overload
    def __call__(self, x: Any, /, to: _Ndarrays[T], **kw: Unpack[Options]) -> T: ...
    @overload
    def __call__(self, x: Any, /, to: Named, **kw: Unpack[Options]) -> Any: ...


class Explain(Protocol):
    """The signature of :func:`arraybridge.explain`."""

    def __call__(self, x: Any, /, to: Named, **kw: Unpack[Options]) -> Route: ...


class Asarray(Protocol):
    """The signatures of :func:`arraybridge.asarray`."""

    @overload
    def __call__(self, obj: Any, /, *, like: NumPy, **kw: Unpack[AsOptions]) -> NDArray: ...
    @overload
    def __call__(self, obj: Any, /, *, like: Torch, **kw: Unpack[AsOptions]) -> torch.Tensor: ...
    @overload
    def __call__(self, obj: Any, /, *, like: Jax, **kw: Unpack[AsOptions]) -> jax.Array: ...
    @overload
    def __call__(self, obj: Any, /, *, like: _Tensors[T], **kw: Unpack[AsOptions]) -> T: ...
    @overload
    def __call__(self, obj: Any, /, *, like: _Ndarrays[T], **kw: Unpack[AsOptions]) -> T: ...
    @overload
    def __call__(self, obj: Any, /, *, like: ArrayT, **kw: Unpack[AsOptions]) -> ArrayT: ...
    @overload
    def __call__(self, obj: Any, /, *, like: _Like, **kw: Unpack[AsOptions]) -> Any: ...


class To(Protocol):
    """The signatures of :meth:`arraybridge.Array.to`."""

    @overload
    def __call__(self, library: None = None, /, **kw: Unpack[ToOptions]) -> Array: ...
    @overload
    def __call__(self, library: NumPy, /, **kw: Unpack[ToOptions]) -> NDArray: ...
    @overload
    def __call__(self, library: Torch, /, **kw: Unpack[ToOptions]) -> torch.Tensor: ...
    @overload
    def __call__(self, library: Jax, /, **kw: Unpack[ToOptions]) -> jax.Array: ...
    @overload
    def __call__(self, library: _Tensors[T], /, **kw: Unpack[ToOptions]) -> T: ...
    @overload
    def __call__(self, library: _Ndarrays[T], /, **kw: Unpack[ToOptions]) -> T: ...
    @overload
    def __call__(self, library: Named, /, **kw: Unpack[ToOptions]) -> Any: ...


class Contiguous(Protocol):
    """The signatures of :func:`arraybridge.contiguous`."""

    @overload
    def __call__(self, x: ArrayT, /, *, out: None = None) -> ArrayT: ...
    @overload
    def __call__(self, x: Any, /, *, out: ArrayT) -> ArrayT: ...
    @overload
    def __call__(self, x: Any, /, *, out: Any = None) -> Any: ...


class Adapted(Protocol[P]):
    """A function of one array that ``adapt`` made: of any library's, the first by position.

    `P` are the other parameters. Types cannot change single ones, such as arrays after numbers:
    annotate these as Any.
    """

    __name__: str
    __wrapped__: Any

    @overload
    def __call__(self, x: Any, /, *args: P.args, **kwargs: P.kwargs) -> Any: ...
    @overload
    def __call__(self, *arrays: Native, **named: Native) -> Any: ...
    @overload
    def __call__(self, **named: Any) -> Any: ...


class Adapt(Protocol):
    """The decorator that ``adapt`` returns. mypy takes the result for Any if a type has an Any."""

    @overload
    def __call__(self, f: Callable[Concatenate[ArrayT, OtherT, P], Any], /) -> _Function: ...
    @overload
    def __call__(self, f: Callable[Concatenate[ArrayT, P], Any], /) -> Adapted[P]: ...
    @overload
    def __call__(self, f: _Function, /) -> _Function: ...


if TYPE_CHECKING:
    asarray: Asarray
    contiguous: Contiguous
    convert: Convert
    explain: Explain
