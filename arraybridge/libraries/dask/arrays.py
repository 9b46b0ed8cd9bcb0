"""Dask arrays with blocks of any library: made blockwise, computed to the requested type."""

from __future__ import annotations

import functools
from typing import Any
from uuid import uuid4

import dask.array
import numpy
from dask import config
from dask.array.core import finalize
from dask.delayed import Delayed
from dask.hashing import hash_buffer_hex
from dask.tokenize import _maybe_raise_nondeterministic, normalize_token, tokenize
from dask.utils import typename

from ...array.array_types import ArrayType, array_type_of
from ...array.native_array import NativeArray, array_class
from ...conversion import convert, converted
from ...core.records import ConversionError
from ...core.registry import known_name, library_named
from .chunk import Chunk, bare, chunk_class, chunked
from .lookups import register_lookups
from .registration import register_sizes

_KEEPS_BLOCKS = frozenset({"numpy", "dask", "arraybridge", "array_api_compat"})


class _AsDasks(type):
    """The type of a class that equals Dask's, since xarray compares the types of results."""

    def __eq__(cls, other: object) -> bool:
        return cls is other or other is dask.array.Array

    def __hash__(cls) -> int:
        return hash(dask.array.Array)


class BridgedArray(dask.array.Array, metaclass=_AsDasks):  # type: ignore[misc]
    """A Dask array with blocks of another library than NumPy.

    Dask arrays made of one are also of this class (`config.array_plugins`). Computing returns the
    library's own array, or an :class:`arraybridge.Array`; functions passed to ``map_blocks`` and
    ``map_overlap`` see the same. Dask's own functions see the blocks: `Chunk`.
    """

    __slots__ = ()

    def __dask_postcompute__(self) -> Any:
        return computed, ()

    @property
    def _elemwise(self) -> Any:
        return _elementwise

    def _rebuild(self, *args: Any, **options: Any) -> Any:
        made = super()._rebuild(*args, **options)  # persisted: no layer below knows it
        made.__class__ = BridgedArray
        made.dask.layers[made.name].collection_annotations["type"] = _BRIDGED
        return made

    def map_blocks(self, func: Any, *args: Any, **options: Any) -> Any:
        """Call ``dask.array.Array.map_blocks`` with the library's own arrays."""
        return super().map_blocks(on_native_arrays(func), *args, **_described(options))

    def map_overlap(self, func: Any, *args: Any, **options: Any) -> Any:
        """Call ``dask.array.Array.map_overlap`` with the library's own arrays."""
        return super().map_overlap(on_native_arrays(func), *args, **_described(options))

    def to_delayed(self, *args: Any, **options: Any) -> Any:
        """Call ``dask.array.Array.to_delayed``; computing returns the library's own array."""
        made = super().to_delayed(*args, **options)
        blocks = [BlockDelayed(x.key, x.dask, layer=x._layer) for x in made.flat]
        made.flat[:] = blocks
        return made

    def store(self, target: Any, **options: Any) -> Any:
        """Call ``dask.array.Array.store`` with NumPy's blocks, which files take."""
        return dask.array.store([convert_blocks(self, "numpy")], [target], **options)

    def _scalarfunc(self, cast_type: Any) -> Any:
        if self.size > 1:
            return super()._scalarfunc(cast_type)
        return cast_type(self.reshape(()).compute())

    def __reduce__(self) -> Any:
        return _remade, super().__reduce__()[1]


def _elementwise(*args: Any, out: Any = None, **options: Any) -> Any:
    """Call ``dask.array.core.elemwise``; ``out`` then has such blocks too."""
    result = dask.array.core.elemwise(*args, out=out, **options)
    if type(result) is dask.array.Array:  # it was ``out``
        result.__class__ = BridgedArray
    return result


class BlockDelayed(Delayed):  # type: ignore[misc]
    """A block that is computed separately."""

    __slots__ = ()

    def __dask_postcompute__(self) -> Any:
        return _computed_block, ()


def _computed_block(results: Any) -> Any:
    return bare(results[0])


def _remade(*what: Any) -> Any:
    prepare()
    return dask.array.Array(*what)


_BRIDGED = typename(BridgedArray)


def computed(results: Any) -> Any:
    """Join computed blocks and return them as the requested type."""
    return bare(finalize(results))


def _described(options: dict[str, Any]) -> dict[str, Any]:
    if options.get("meta") is not None:
        options["meta"] = chunked(options["meta"], False)
    return options


def of_blocks(x: Any) -> Any:
    """Make a Dask array of such blocks a `BridgedArray` (Dask's ``array_plugins``).

    Dask declares some results to have NumPy's blocks (a selection by a mask), so the layers below
    are searched too. Arrays as blocks (``from_array(array)``), which refuse NumPy's functions, are
    converted.
    """
    if type(x) is dask.array.Array and isinstance(x._meta, NativeArray):
        return convert_blocks(x, x._meta.library, wrapped=True)
    if type(x) is dask.array.Array and (isinstance(x._meta, Chunk) or _is_on_blocks(x)):
        x.__class__ = BridgedArray
    return x


def _is_on_blocks(x: Any) -> bool:
    layers, below = x.dask.layers, x.dask.dependencies
    seen, wanted = set(), list(below.get(x.name, ()))
    while wanted:
        name = wanted.pop()
        note = layers[name].collection_annotations if name in layers else None
        if note is not None and "type" in note:
            if note["type"] == _BRIDGED:
                return True
        elif name not in seen:  # no array's layer: look at the layers below
            seen.add(name)
            wanted.extend(below.get(name, ()))
    return False


class OnNativeArrays:
    """A function that takes the library's own arrays and returns blocks."""

    def __init__(self, function: Any) -> None:
        self.function = function
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **options: Any) -> Any:
        wrapped = any(isinstance(x, Chunk) and x.kind.wrapped for x in args)
        return chunked(self.function(*bare(args), **bare(options)), wrapped)

    def __dask_tokenize__(self) -> Any:
        return "arraybridge.OnNativeArrays", normalize_token(self.function)

    def __reduce__(self) -> Any:
        return OnNativeArrays, (self.function,)


def on_native_arrays(function: Any) -> Any:
    """Return a function as Dask must call it: NumPy's and Dask's own see the blocks."""
    inner = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    owner = getattr(inner, "__self__", None)
    inner = owner if isinstance(owner, numpy.ufunc) else inner  # such as numpy.add.accumulate
    package = getattr(inner, "__module__", None) or type(inner).__module__
    keeps = package.partition(".")[0] in _KEEPS_BLOCKS
    if keeps or isinstance(inner, numpy.ufunc | OnNativeArrays):
        return function
    return OnNativeArrays(function)


class ConvertBlock:
    """Converts one block; ``convert`` maps it over a Dask array."""

    def __init__(self, kind: ArrayType, options: dict[str, Any]) -> None:
        register_lookups()  # a worker may not have imported arraybridge yet
        self.kind = kind
        self.options = options
        self.__name__ = kind.library

    def convert(self, block: Any) -> Any:
        library, wrapped = self.kind
        options = dict(self.options)
        native = converted(block, library, options.pop("cast", None), **options)
        if library == "numpy" and not wrapped:
            return native
        cls: Any = array_class(library)
        return chunk_class(self.kind)(cls._taken(native))

    __call__ = convert  # the name in audit logs

    def __dask_tokenize__(self) -> Any:
        options = sorted((k, str(v)) for k, v in self.options.items())
        return "arraybridge.ConvertBlock", *self.kind, options

    def __reduce__(self) -> Any:
        return ConvertBlock, (self.kind, self.options)


def kind_of_blocks(x: Any) -> ArrayType | None:
    """Return the type of the blocks of a Dask array, or None if unknown."""
    meta = x._meta
    if isinstance(meta, Chunk):
        return meta.kind
    known = type(meta) is numpy.ndarray and not isinstance(x, BridgedArray)
    return ArrayType("numpy", False) if known else None


def convert_blocks(x: Any, library: object, *, wrapped: bool = False, **options: Any) -> Any:
    """Convert the blocks of a Dask array when they are computed.

    TypeError if the library has no namespace here, without which Dask cannot use the blocks.
    """
    prepare()
    if library is None:
        own = kind_of_blocks(x)
        if own is None:
            raise TypeError(f"name a library: the type of the blocks of {_named(x)} is unknown")
        library = own.library
    kind = ArrayType(library_named(known_name(library)).name, wrapped)
    options = given(options)
    if not options and kind_of_blocks(x) == kind:
        return x
    _check_namespace(kind.library)
    call = ConvertBlock(kind, options)
    meta = call(x._meta)
    return dask.array.map_blocks(
        call, x, meta=meta, dtype=meta.dtype, name=f"to-{call.__name__}-{tokenize(call, x)}"
    )


def one_element(x: Any) -> Any:
    """Return an array of one element, of the type of the blocks."""
    meta = x._meta
    if isinstance(meta, Chunk):
        return meta.of(meta.xp.ones((1,) * x.ndim, dtype=meta.array._native.dtype))
    return numpy.ones((1,) * x.ndim, dtype=x.dtype)


def given(options: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of ``convert`` that are not at their defaults."""
    asked = {name: value for name, value in options.items() if value is not None}
    if not asked.get("alias_readonly"):
        asked.pop("alias_readonly", None)
    return asked


def _check_namespace(library: str) -> None:
    if array_class(library) is None:
        raise TypeError(
            f"Dask cannot compute with blocks of {library}, which has no array API namespace here: "
            "convert them in a function, x.map_blocks(lambda block: function(arraybridge.convert("
            f"block, {library!r})), ...)"
        )


def convert_like(model: Any, x: Any, **options: Any) -> Any:
    """Convert the blocks of a Dask array to the type of another's, or of its own (for device=)."""
    kind = kind_of_blocks(model)
    if kind is None:
        advice = "name a library: " if model is x else ""
        raise TypeError(f"{advice}the type of the blocks of {_named(model)} is unknown")
    return convert_blocks(x, kind.library, wrapped=kind.wrapped, **options)


def _named(x: Any) -> str:
    return f"{type(x._meta).__module__.partition('.')[0]}.{type(x._meta).__qualname__}"


def over(x: Any, like: Any = None, **options: Any) -> Any:
    """Return a Dask array over an array in memory, in the library of ``like`` or its own."""
    prepare()
    kind = None if like is None else kind_of_blocks(like)
    options = given(options)
    if kind is None:
        kind = array_type_of(x)
    _check_namespace(kind.library)
    block = ConvertBlock(kind, options)(x)
    return dask.array.from_array(block, chunks="auto", asarray=False)


@functools.cache
def prepare() -> None:
    """Register such arrays with Dask, once."""
    register_sizes()
    register_lookups()
    plugins = tuple(config.get("array_plugins", ()))
    config.set(array_plugins=(*plugins, of_blocks))


def token_of_array(x: Any) -> Any:
    """Return what Dask hashes for an Array: its elements, if they are on the host.

    Off the host they would have to be fetched, so the token is unique to this Array.
    """
    try:
        info = x.info
        if not info.device.host:
            return _unique(x, f"it is on {info.device}")
        elements = numpy.ascontiguousarray(convert(x, "numpy"))
    except (ConversionError, TypeError) as error:
        return _unique(x, str(error))
    data = hash_buffer_hex(elements.reshape(-1).view("u1")) if elements.size else ""
    return "arraybridge.Array", x.library, str(info.device), info.dtype_name, info.shape, data


def _unique(x: Any, why: str) -> Any:
    _maybe_raise_nondeterministic(f"the elements of {x!r} are not read for a token: {why}")
    return uuid4().hex
