"""``Chunk``: a block of a Dask array in any library, with the protocols that Dask asks of NumPy.

Dask computes with NumPy's functions and takes from them whatever they give: an object without
``__array_function__`` and ``__array_ufunc__`` (NEP 13, NEP 18) ends as an ndarray. An Array has
them to refuse; this class has them for Dask alone. Its data types are NumPy's, and so are the rules
by which they are promoted, since Dask declares its results by them.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, ClassVar, Self

import numpy

from ...array.carrier import Array
from ...array.kinds import Kind
from ...array.native_array import array_class
from ...array.operators import OPERATORS
from ...array.overrides import CONVERTING
from ...dispatch.records import ConversionError
from ...dispatch.registry import library_of_type
from ...protocols.foreign import check_whole
from .numpy_rules import cast, dtype_of, positions

_KERNELS = "dask.array.chunk"  # joins positions of blocks with those that it has made by NumPy
_INDEXES = "dask.array.slicing"  # NumPy's positions by a block: nonzero


class Chunk:
    """A block in another library than NumPy; see `chunk_class`.

    Attributes
    ----------
    array : Array
        The block as an :class:`arraybridge.Array`.
    kind : Kind
        What a computed Dask array of such blocks is: an array of a library, or an Array over it.
    counts : bool
        Whether its elements are numbers of elements, which have no data type of their own: JAX
        without 64 bits has none of those that Dask asks for.
    """

    __slots__ = ("__weakref__", "array")
    __array_priority__ = 2000  # of the arrays in one list Dask asks the highest how to join them
    __hash__ = None  # type: ignore[assignment]

    kind: ClassVar[Kind]
    counts: ClassVar[bool] = False
    array: Any

    def __init__(self, array: Array) -> None:
        self.array = array

    @property
    def xp(self) -> Any:
        """The namespace of its Array."""
        return self.array.__array_namespace__()

    @property
    def native(self) -> Any:
        """The library's own array."""
        return self.array.native

    @property
    def value(self) -> Any:
        """The block as Dask's user sees it: the library's own array, or an Array."""
        return self.array if self.kind.wrapped else self.array.native

    @property
    def dtype(self) -> numpy.dtype[Any]:
        """NumPy's data type of its elements."""
        return dtype_of(self.array)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        shape: tuple[int, ...] = self.array.shape
        return shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.array.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        size: int = self.array.size
        return size

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self.size * self.dtype.itemsize

    @property
    def T(self) -> Any:
        """The axes in reverse order."""
        return numpy.transpose(self)  # type: ignore[call-overload]

    @property
    def real(self) -> Any:
        """The real part."""
        return numpy.real(self)  # type: ignore[call-overload]

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return numpy.imag(self)  # type: ignore[call-overload]

    def of(self, array: Any) -> Self:
        """Return a block of this kind of an Array."""
        return type(self)(array)

    def astype(self, dtype: Any, copy: bool = True, **options: Any) -> Self:
        """Convert the elements to a data type of NumPy's."""
        casting = options.pop("casting", "unsafe")
        if options.keys() - {"order", "subok"}:
            raise TypeError(f"astype of a block takes no {', '.join(options)}")
        wanted = numpy.dtype(dtype)
        if not numpy.can_cast(self.dtype, wanted, casting):
            raise TypeError(f"cannot cast {self.dtype} to {wanted} by the rule {casting!r}")
        if wanted == self.dtype and not copy:
            return self
        try:
            return self.of(cast(self.array, wanted))
        except ConversionError:
            if self.counts:
                return self
            raise

    def copy(self, *_: Any, **__: Any) -> Self:
        """Copy the elements; immutable arrays stay."""
        if self.array._library.accepts.immutable:  # what is assigned to one the other must not see
            return self.of(type(self.array)._of(self.array._native))
        return self.of(self.xp.asarray(self.array, copy=True))

    def item(self) -> Any:
        """Return a Python scalar."""
        return self.array._number()

    def tolist(self) -> Any:
        """Return nested lists of Python scalars."""
        return numpy.asarray(self.array).tolist()

    def reshape(self, *shape: Any, order: str = "C", **_: Any) -> Any:
        """Reshape as NumPy's method does."""
        shape = shape[0] if len(shape) == 1 else shape
        return numpy.reshape(self, shape, order=order)  # type: ignore[call-overload]

    def transpose(self, *axes: Any) -> Any:
        """Permute the axes as NumPy's method does."""
        if len(axes) == 1 and not isinstance(axes[0], int):
            axes = axes[0]
        return numpy.transpose(self, axes or None)  # type: ignore[call-overload]

    def __getitem__(self, key: Any) -> Any:
        key = self._whole(key)
        picked = [i for i, each in enumerate(key) if isinstance(each, Array) and each.ndim == 1]
        if len(picked) == 1 and all(
            each == slice(None) for each in key if each is not key[picked[0]]
        ):
            (axis,) = picked
            if self.xp.isdtype(key[axis].dtype, "integral"):  # not every library indexes by arrays
                return self.of(self.xp.take(self.array, key[axis], axis=axis))
        return self.of(self.array[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, Chunk):
            value = value.array
        key = self._whole(key)
        try:
            self.array[key] = value
        except TypeError:  # NaN to integers, say, of which Dask has selected none
            (mask, *rest) = key
            selects = rest or not isinstance(mask, Array) or mask.dtype != self.xp.bool
            if selects or bool(self.xp.any(mask)):
                raise

    def _whole(self, key: Any) -> tuple[Any, ...]:
        """Return an index for every axis, as the standard asks, of Arrays of this library."""
        key = tuple(map(self._key, key if isinstance(key, tuple) else (key,)))
        if any(each is Ellipsis for each in key):
            return key
        covered = sum(
            each.ndim if isinstance(each, Array) and each.dtype == self.xp.bool else 1
            for each in key
            if each is not None
        )
        return key + (slice(None),) * (self.ndim - covered)

    def _key(self, key: Any) -> Any:
        if isinstance(key, Chunk):
            return key.array
        if isinstance(key, numpy.ndarray | list):  # positions that Dask has found by NumPy
            return positions(self.array, key)
        return int(key) if isinstance(key, numpy.integer) else key

    def __len__(self) -> int:
        return len(self.array)

    def __bool__(self) -> bool:
        return bool(self.array)

    def __int__(self) -> int:
        return int(self.array)

    def __float__(self) -> float:
        return float(self.array)

    def __complex__(self) -> complex:
        return complex(self.array)

    def __index__(self) -> int:
        return self.array.__index__()  # type: ignore[no-any-return]

    def __arraybridge__(self) -> Any:
        return self.array.__arraybridge__()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        caller = sys._getframe(1).f_globals.get("__name__", "")
        package = caller.partition(".")[0]
        if package in CONVERTING or caller == _INDEXES:  # their result would be NumPy's
            maker = "an ndarray's index" if caller == _INDEXES else package
            raise TypeError(
                f"{maker} would make an ndarray of a block of {self.array.library}. Give Dask a "
                "function of the library with map_blocks, or take NumPy's blocks with "
                "arraybridge.convert(x, 'numpy')"
            )
        return self.array.__array__(dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> object:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()  # type: ignore[no-any-return]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        from .functions import ufunc_of

        return ufunc_of(self, ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        from .functions import function_of

        caller = sys._getframe(1).f_globals.get("__name__", "")
        return function_of(self, function, args, options, host=caller == _KERNELS)

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return chunked(function(*bare(args), **bare(kwargs or {})), cls.kind.wrapped)

    def __dask_tokenize__(self) -> Any:
        return type(self).__name__, self.counts, self.array.__dask_tokenize__()

    def __reduce__(self) -> Any:
        return _restored, (self.kind.wrapped, self.counts, self.array)

    def __repr__(self) -> str:
        held = "its Array is .array" if self.kind.wrapped else "its own array is .native"
        return f"<{type(self).__name__}, a block of a Dask array ({held}): {self.array!r}>"


def _binary(name: str, function: Any, reflected: bool) -> Any:
    def method(self: Any, other: Any) -> Any:
        if hasattr(other, "_elemwise"):  # a Dask array, which takes the block
            return NotImplemented
        return function(other, self) if reflected else function(self, other)

    method.__name__ = name
    return method


for _op in OPERATORS:
    _ufunc = getattr(numpy, _op.function)
    if _op.forms == "unary":
        setattr(Chunk, f"__{_op.name}__", lambda self, _function=_ufunc: _function(self))
        continue
    setattr(Chunk, f"__{_op.name}__", _binary(f"__{_op.name}__", _ufunc, False))
    if _op.forms == "arithmetic":
        setattr(Chunk, f"__r{_op.name}__", _binary(f"__r{_op.name}__", _ufunc, True))


def _method(name: str) -> Any:
    function = getattr(numpy, name)

    def method(self: Any, *args: Any, **options: Any) -> Any:
        return function(self, *args, **options)

    method.__name__ = name
    return method


for _name in (
    "all any argmax argmin argsort clip cumprod cumsum dot max mean min nonzero prod ravel repeat "
    "round squeeze std sum swapaxes take var conj"
).split():
    setattr(Chunk, _name, _method(_name))
setattr(Chunk, "flatten", _method("ravel"))  # noqa: B010 - of a type checker's making
setattr(Chunk, "conjugate", _method("conj"))  # noqa: B010


def chunk_class(kind: Kind, counts: bool = False) -> type[Chunk]:
    """Return the class of blocks of a kind of arrays."""
    return _made(kind, counts)


@functools.cache
def _made(kind: Kind, counts: bool) -> type[Chunk]:
    from .lookups import register_lookups

    register_lookups()  # in a worker, such a class is the first that it hears of arraybridge
    name = f"arraybridge.{kind.library}" if kind.wrapped else kind.library
    base = _made(kind, False) if counts else Chunk
    body = {"__slots__": (), "kind": kind, "counts": counts, "__module__": __name__}
    return type(f"Chunk[{name}]", (base,), body)


def _restored(wrapped: bool, counts: bool, array: Any) -> Chunk:
    return chunk_class(Kind(array.library, wrapped), counts)(array)


def chunked(x: Any, wrapped: bool) -> Any:
    """Return the block of what a function gave; what is no array, and NumPy's own, as it is."""
    if isinstance(x, Chunk) or x is None:
        return x
    if isinstance(x, tuple | list):
        return type(x)([chunked(each, wrapped) for each in x])
    if isinstance(x, Array):
        return chunk_class(Kind(x.library, True))(x)
    library = library_of_type(type(x))
    if library is None or isinstance(x, numpy.generic):
        return x
    if library.name == "numpy" and not wrapped:
        return x
    cls = array_class(library.name)
    if cls is None:
        return x
    check_whole(x)
    return chunk_class(Kind(library.name, wrapped))(cls._taken(x))


def bare(x: Any) -> Any:
    """Replace blocks, in nested arguments, by the arrays that the user sees."""
    if isinstance(x, Chunk):
        return x.value
    if isinstance(x, tuple | list):
        return type(x)([bare(each) for each in x])
    if isinstance(x, dict):
        return {name: bare(each) for name, each in x.items()}
    return x
