"""``Chunk``: a block of a Dask array in any library, with the NumPy protocols that Dask uses.

Dask calls NumPy's functions and keeps whatever they return: an object without
``__array_function__`` and ``__array_ufunc__`` (NEP 13, NEP 18) ends as an ndarray. An Array defines
them to refuse; this class defines them only for Dask. Its data types and promotion rules are
NumPy's, since Dask declares its results by them.
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
from operator import attrgetter
from typing import Any, ClassVar, Self

import numpy

from ...array.array import Array
from ...array.array_types import ArrayType
from ...array.native_array import array_class
from ...array.operators import OPERATORS
from ...array.unsupported import COMPARISONS, CONVERTING, _in_the_standard
from ...containers import mapped
from ...core.library import Library
from ...core.records import ConversionError
from ...core.registry import library_of_type
from ...protocols.foreign import check_whole
from . import numpy_functions
from .numpy_rules import IGNORED, cast, dtype_of, is_array, mixed, number, own_dtype, positions
from .ufuncs import UFUNCS

_KERNELS = "dask.array.chunk"  # joins the positions in blocks with positions made by NumPy
_INDEXES = "dask.array.slicing"  # indexes NumPy's positions by a block: nonzero


class Chunk:
    """A block of another library than NumPy; see `chunk_class`.

    `array` is the block as an :class:`arraybridge.Array`; `kind` is the type that computing
    returns: a library's array, or an Array over it. `counts`: the elements are numbers of elements,
    with no definite data type, because JAX without x64 lacks those that Dask requests.
    """

    __slots__ = ("__weakref__", "array")
    __array_priority__ = 2000  # Dask lets the highest in a list of arrays join them
    __hash__ = None  # type: ignore[assignment]

    kind: ClassVar[ArrayType]
    counts: ClassVar[bool] = False
    array: Any

    def __init__(self, array: Array) -> None:
        self.array = array

    @property
    def xp(self) -> Any:
        """The namespace of its Array."""
        return self.array.__array_namespace__()

    @property
    def value(self) -> Any:
        """The block as users see it: the library's own array, or an Array."""
        return self.array if self.kind.wrapped else self.array.native

    @property
    def dtype(self) -> numpy.dtype[Any]:
        """NumPy's data type of its elements."""
        return dtype_of(self.array)

    native, shape = property(attrgetter("array.native")), property(attrgetter("array.shape"))
    ndim, size = property(attrgetter("array.ndim")), property(attrgetter("array.size"))
    itemsize = property(attrgetter("dtype.itemsize"))

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return int(self.size) * self.dtype.itemsize

    def of(self, array: Any) -> Self:
        """Return a block of this kind over an Array."""
        return type(self)(array)

    def astype(self, dtype: Any, copy: bool = True, **options: Any) -> Self:
        """Convert the elements to one of NumPy's data types."""
        casting = options.pop("casting", "unsafe")
        if options.keys() - {"order", "subok"}:
            raise TypeError(f"astype of a block does not support {', '.join(options)}")
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
        if self.array._library.accepts.immutable:  # a write to one must not show in the other
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
            if self.xp.isdtype(key[axis].dtype, "integral"):  # some lack index arrays
                return self.of(self.xp.take(self.array, key[axis], axis=axis))
        return self.of(self.array[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, Chunk):
            value = value.array
        key = self._whole(key)
        try:
            self.array[key] = value
        except TypeError:  # such as NaN written to integers, if Dask selected none
            (mask, *rest) = key
            selects = rest or not isinstance(mask, Array) or mask.dtype != self.xp.bool
            if selects or bool(self.xp.any(mask)):
                raise

    def _whole(self, key: Any) -> tuple[Any, ...]:
        """Return an index for every axis, as the standard requires, of Arrays of this library."""
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
        if isinstance(key, numpy.ndarray | list):  # positions that Dask has computed with NumPy
            return positions(self.array, key)
        return int(key) if isinstance(key, numpy.integer) else key

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

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return ufunc_of(self, ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
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
        from .lookups import restored

        return restored, (self.kind.wrapped, self.counts, self.array)

    def __repr__(self) -> str:
        held = "its Array is .array" if self.kind.wrapped else "its own array is .native"
        return f"<{type(self).__name__}, a block of a Dask array ({held}): {self.array!r}>"


def _binary(name: str, function: Any, reflected: bool) -> Any:
    def method(self: Any, other: Any) -> Any:
        if hasattr(other, "_elemwise"):  # a Dask array handles the block
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
for _name, _numpys in (("T", "transpose"), ("real", "real"), ("imag", "imag")):
    setattr(Chunk, _name, property(_method(_numpys)))


def _of_array(name: str) -> Any:
    function = getattr(Array, name)

    def method(self: Any, *args: Any, **options: Any) -> Any:
        return getattr(self.array, name)(*args, **options)

    return functools.update_wrapper(method, function)


for _name in "arraybridge bool complex dlpack dlpack_device float index int len".split():
    setattr(Chunk, f"__{_name}__", _of_array(f"__{_name}__"))


def chunk_class(kind: ArrayType, counts: bool = False) -> type[Chunk]:
    """Return the class of blocks for a type of array."""
    return _made(kind, counts)


@functools.cache
def _made(kind: ArrayType, counts: bool) -> type[Chunk]:
    name = f"arraybridge.{kind.library}" if kind.wrapped else kind.library
    base = _made(kind, False) if counts else Chunk
    body = {"__slots__": (), "kind": kind, "counts": counts, "__module__": __name__}
    return type(f"Chunk[{name}]", (base,), body)


def chunked(x: Any, wrapped: bool) -> Any:
    """Return a function's result as a block; NumPy's arrays and other objects as they are."""
    return mapped(lambda each: _block(each, wrapped), x)


def _block(x: Any, wrapped: bool) -> Any:
    if isinstance(x, Chunk):
        return x
    if isinstance(x, Array):
        return chunk_class(ArrayType(x.library, True))(x)
    library = library_of_type(type(x))
    if library is None or isinstance(x, numpy.generic):
        return x
    if library.name == "numpy" and not wrapped:
        return x
    cls = array_class(library.name)
    if cls is None:
        return x
    check_whole(x)
    return chunk_class(ArrayType(library.name, wrapped))(cls._taken(x))


def bare(x: Any) -> Any:
    """Replace blocks, in nested arguments, by the arrays that users see."""
    return mapped(lambda each: each.value if isinstance(each, Chunk) else each, x)


# NumPy's functions on blocks, by the standard's functions in the block's own library. Elementwise
# functions promote by NumPy's rules, by which Dask has declared the result. Other functions are
# refused, since NumPy would convert the block.

_TYPED = (numpy.generic, numpy.ndarray)  # numbers with a data type
_PYTHON = (bool, int, float, complex)
_weak: dict[type, Any] = {bool: numpy.dtype(bool), int: int, float: float, complex: complex}
_LOGICAL = (numpy.logical_and, numpy.logical_or, numpy.logical_xor, numpy.logical_not)
#: ufunc.reduce and ufunc.accumulate: NumPy's function for each.
_REDUCED = {
    (numpy.add, "reduce"): numpy.sum,
    (numpy.multiply, "reduce"): numpy.prod,
    (numpy.maximum, "reduce"): numpy.max,
    (numpy.minimum, "reduce"): numpy.min,
    (numpy.logical_and, "reduce"): numpy.all,
    (numpy.logical_or, "reduce"): numpy.any,
    (numpy.add, "accumulate"): numpy.cumsum,
    (numpy.multiply, "accumulate"): numpy.cumprod,
}


def function_of(self: Chunk, function: Any, args: Any, options: Any, host: bool = False) -> Any:
    """Implement ``Chunk.__array_function__``; with ``host``, for Dask's joins of positions."""
    if function is numpy.apply_along_axis:
        return numpy_functions.along_axis(*args, **options)
    known = numpy_functions.FUNCTIONS.get(function)
    host = function in numpy_functions.WITH_HOST or (host and function is numpy.concatenate)
    xp, args, options = self.xp, arrays_of(self, args, host), arrays_of(self, options, host)
    if known is not None:
        args, options = _named(function, known, args, options, 1)
        return blocks_of(self, _applied(self, functools.partial(known, xp), args, options))
    own = _at(xp, _in_the_standard().get(function) or _beyond(xp, function))
    if own is None:
        raise _refused(self, f"{function.__module__}.{function.__name__}")
    if isinstance(options.get("dtype"), numpy.dtype | type | str):
        options["dtype"] = own_dtype(self.array, options["dtype"])
    return blocks_of(self, _applied(self, own, *_named(function, own, args, options)))


def _beyond(xp: Any, function: Any) -> str | None:
    """Return the name of a NumPy function that a namespace has beyond the standard, or None."""
    name = function.__name__
    if function is numpy.lib.stride_tricks.sliding_window_view:
        return f"lib.stride_tricks.{name}"
    return name if getattr(numpy, name, None) is function and hasattr(xp, name) else None


def _applied(self: Chunk, own: Any, args: Any, options: Any) -> Any:
    """Apply a function, even to Dask's empty model of a block if it takes no empty array.

    (A transform, a median.) The result is then empty, since nothing else is known of it.
    """
    try:
        return own(*args, **options)
    except (ValueError, RuntimeError):
        if self.size or any(self.shape) or not self.ndim:
            raise
        ones = [self.xp.ones((1,) * x.ndim, dtype=x.dtype) if is_array(x) else x for x in args]
        result = own(*ones, **options)
        every = result if isinstance(result, tuple) else (result,)
        if not all(is_array(x) and x.ndim for x in every):
            raise
        made = [x[(slice(0, 0),) * x.ndim] for x in every]
        return tuple(made) if isinstance(result, tuple) else made[0]


def ufunc_of(self: Chunk, ufunc: Any, method: str, inputs: Any, options: dict[str, Any]) -> Any:
    """``Chunk.__array_ufunc__``."""
    if any(hasattr(x, "_elemwise") for x in inputs):
        return NotImplemented  # a Dask array handles the block
    if method == "outer":
        a, b = inputs
        if numpy.ndim(a) and numpy.ndim(b):
            a = numpy.reshape(a, (*numpy.shape(a), *(1,) * numpy.ndim(b)))
        return ufunc(a, b, **options)
    if method != "__call__":
        function = _REDUCED.get((ufunc, method))
        if function is None:
            raise _refused(self, f"numpy.{ufunc.__name__}.{method}")
        defaults = {"axis": 0}  # the method's default, where the function's is None
        return function_of(self, function, inputs, defaults | options)
    out, where = options.pop("out", None), options.pop("where", True)
    wanted, casting = options.pop("dtype", None), options.pop("casting", "same_kind")
    if options.keys() - {"subok", "order"}:
        raise _refused(self, f"numpy.{ufunc.__name__} with {', '.join(options)}")
    results = _called(self, ufunc, inputs, wanted, casting)
    if out is not None or where is not True:
        out = (None,) * ufunc.nout if out is None else out
        made = [
            _write_out(self, ufunc, *each, where, casting)
            for each in zip(results, out, strict=True)
        ]
        results = tuple(made)
    return results if ufunc.nout > 1 else results[0]


def _called(self: Chunk, ufunc: Any, inputs: Any, wanted: Any, casting: str) -> tuple[Any, ...]:
    """Return the results of a ufunc, each as a block."""
    xp = self.xp
    own = _own(xp, ufunc)
    if own is None:
        raise _refused(self, f"numpy.{ufunc.__name__}")
    inputs = [numpy.asarray(x) if isinstance(x, list | tuple) else x for x in inputs]
    arrays = arrays_of(self, inputs)
    for x in arrays:
        if not isinstance(x, _PYTHON) and not is_array(x):
            kind = f"{type(x).__module__}.{type(x).__qualname__}"
            raise mixed(f"a block of {self.array.library} and a {kind}")
    takes, gives = _loop(ufunc, inputs, arrays, wanted, casting)
    try:
        arrays = [
            cast(x, dtype) if is_array(x) else number(self.array, x, dtype)
            for x, dtype in zip(arrays, takes, strict=True)
        ]
    except OverflowError:
        if ufunc not in COMPARISONS:
            raise
        arrays = [_ordered(self, x) for x in arrays]
    result = own(*arrays)
    if self.counts:  # the kind of the other operand, if it counts nothing
        self = next((x for x in inputs if isinstance(x, Chunk) and not x.counts), self)
    every = result if isinstance(result, tuple) else (result,)
    if gives is not None:
        every = tuple(cast(x, dtype) for x, dtype in zip(every, gives, strict=True))
    return tuple(self.of(x) for x in every)


@functools.cache
def _own(xp: Any, ufunc: Any) -> Any:
    """Return a namespace's function for a ufunc, or None."""
    own, path = UFUNCS.get(ufunc), _in_the_standard().get(ufunc)
    if own is not None:
        return functools.partial(own, xp)
    return _at(xp, path)


def _loop(ufunc: Any, inputs: Any, arrays: Any, wanted: Any, casting: str) -> tuple[Any, Any]:
    """Return NumPy's data types of the operands and the results."""
    given = [
        x.dtype if isinstance(x, _TYPED) else _weak.get(type(y)) or dtype_of(y)
        for x, y in zip(inputs, arrays, strict=True)
    ]
    if ufunc in _LOGICAL:
        return [numpy.dtype(bool)] * len(given), None
    wish = {}
    if wanted is not None:
        wish["signature"] = (*[None] * ufunc.nin, *[numpy.dtype(wanted)] * ufunc.nout)
    loop = ufunc.resolve_dtypes((*given, *[None] * ufunc.nout), casting=casting, **wish)
    return loop[: ufunc.nin], loop[ufunc.nin :]


def _ordered(self: Chunk, x: Any) -> Any:
    """Return what compares like an operand: zeros; infinities for integers out of range."""
    xp, device = self.xp, self.array.device
    if is_array(x):
        return xp.zeros(x.shape, dtype=xp.float32, device=device)
    return xp.asarray(math.copysign(math.inf, x), dtype=xp.float32, device=device)


def _write_out(self: Chunk, ufunc: Any, result: Any, out: Any, where: Any, casting: Any) -> Any:
    """Return ``out`` with the result written to it, under the condition ``where``."""
    name = f"numpy.{ufunc.__name__}"
    if out is None:  # elements outside the condition may have any value
        return numpy.where(where, result, numpy.zeros_like(result))
    if not isinstance(out, Chunk):
        raise _refused(self, f"{name} with out= of {type(out).__name__}")
    if not numpy.can_cast(result.dtype, out.dtype, casting):
        raise TypeError(
            f"{name} returns {result.dtype}, which casting={casting!r} does not allow for out= of "
            f"{out.dtype}: pass casting='unsafe'"
        )
    result = result.astype(out.dtype)
    if where is not True:
        result = numpy.where(where, result, out)
    if result.shape != out.shape:
        if numpy.broadcast_shapes(result.shape, out.shape) != out.shape:
            raise ValueError(f"{name} has shape {result.shape}, but out= has {out.shape}")
        result = numpy.broadcast_to(result, out.shape)
    out[...] = result
    return out


def arrays_of(self: Chunk, x: Any, host: bool = False) -> Any:
    """Replace blocks by Arrays, and NumPy scalars by Python's.

    With ``host`` ndarrays are allowed, for the positions and conditions that Dask makes with NumPy;
    otherwise they raise.
    """

    def array_of(x: Any) -> Any:
        if isinstance(x, Chunk):
            if x.array.library != self.array.library:
                raise mixed(f"blocks of {self.array.library} and {x.array.library}")
            return x.array
        if isinstance(x, numpy.generic) and not host:
            return x.item()
        if isinstance(x, numpy.ndarray) and not host:
            return _host_array(self, x)
        return x

    return mapped(array_of, x)


def _host_array(self: Chunk, x: numpy.ndarray[Any, Any]) -> Any:
    """Return the value of an ndarray that is a single number; raise for any other."""
    if not x.ndim:
        return x.item()
    if x.size == 1 and x.dtype.kind in "iu" and self.dtype.kind in "iu":
        return positions(self.array, x)  # an offset
    raise mixed(f"a block of {self.array.library} and a numpy.ndarray")


def blocks_of(self: Chunk, x: Any) -> Any:
    """Make blocks of the Arrays in a result."""
    return mapped(lambda each: self.of(each) if isinstance(each, Array) else each, x)


def _at(xp: Any, path: str | None) -> Any:
    """Return a function of a namespace or an extension, or None."""
    try:
        return None if path is None else attrgetter(path)(xp)
    except AttributeError:
        return None


def _named(
    function: Any, own: Any, args: Any, options: dict[str, Any], before: int = 0
) -> tuple[Any, Any]:
    """Translate the arguments of a NumPy function for another, after its `before` own.

    Keywords that the other lacks are dropped if they have NumPy's default or change no value;
    otherwise they raise.
    """
    takes, has = _parameters(own), _parameters(function)
    kinds, names = {each.kind for each in takes.values()}, list(has)
    known = not kinds.union(p.kind for p in has.values()) & {inspect.Parameter.VAR_POSITIONAL}
    if known and len(args) <= len(names):
        by_place = [name for name, each in takes.items() if each.kind in _BY_PLACE][before:]
        places = len(by_place)
        if before:  # positional up to the first name that differs from NumPy's
            pairs = enumerate(zip(by_place, names, strict=False))
            places = next((i for i, (ours, numpys) in pairs if i and ours != numpys), places)
        options = dict(zip(names[places:], args[places:], strict=False)) | options
        args = args[:places]
    kept = {}
    for name, value in options.items():
        if name in takes or (inspect.Parameter.VAR_KEYWORD in kinds and name not in has):
            if not (before and value is numpy._NoValue):
                kept[name] = value
        elif name not in IGNORED and not _is_default(name, value, has.get(name)):
            raise TypeError(f"{function.__name__} of blocks does not support {name}=")
    return args, kept


_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@functools.cache
def _parameters(function: Any) -> Any:
    try:
        return inspect.signature(function).parameters
    except ValueError:  # a function in C
        return inspect.signature(lambda *args, **options: None).parameters


def _is_default(name: str, value: Any, parameter: Any) -> bool:
    default = None if parameter is None else parameter.default
    return (
        value is None
        or value is numpy._NoValue
        or value is default
        or (name == "where" and value is True)
        or (type(value) is type(default) and bool(value == default))
    )


def _refused(self: Chunk, name: str) -> TypeError:
    library: Library = self.array._library
    return TypeError(
        f"{name} does not take blocks of {library.name}: NumPy would convert them to its own. "
        "Give Dask a function of the library with map_blocks, or take NumPy's blocks with "
        "arraybridge.convert(x, 'numpy')"
    )
