"""Adapted functions over Dask arrays: by blocks, along core dimensions, or with a margin."""

from __future__ import annotations

import functools
from contextlib import suppress
from typing import Any

import dask.array
import numpy
from dask.array.utils import meta_from_array
from dask.tokenize import normalize_token

from ...adapting.gufunc import Signature
from ...adapting.options import name_of
from ...array.array import Array
from ...array.array_types import is_array, unwrapped
from ...containers import leaves, mapped
from ...conversion import convert
from ...core.records import ConversionError
from ...core.registry import library_of_type
from .arrays import OnNativeArrays, one_element, prepare
from .chunk import Chunk, chunked


def applied(function: Any, adapt_options: dict[str, Any], args: Any, kwargs: Any) -> Any:
    """Build a graph that calls an adapted function on blocks; it returns the caller's arrays.

    `adapt_options` are ``library``, ``blockwise``, ``signature``, ``depth``, ``boundary``,
    ``copy``, ``alias_readonly`` of :func:`arraybridge.adapt`.
    """
    prepare()
    name = name_of(function)
    for x in args:
        if is_array(x) and not _is_graph(x):
            raise TypeError(
                f"{name} is called block by block, but a {type(x).__qualname__} is in memory: pass "
                "it as a Dask array, arraybridge.convert(x, 'dask'), to split it, or by keyword, "
                "to pass all of it to every call"
            )
    for keyword, x in kwargs.items():
        if _is_graph(x):
            raise TypeError(
                f"{name} is called block by block: pass the Dask array {keyword} by position"
            )
    copies = adapt_options["copy"] is not True and not adapt_options["alias_readonly"]
    call = OnNativeArrays(ReadOnly(function, adapt_options["library"], copies))
    how: Any = adapt_options.get("blockwise")
    options = dict(how) if isinstance(how, dict) else {}
    if adapt_options.get("signature") is not None:
        return _along(call, name, adapt_options["signature"], args, kwargs, options)
    if adapt_options.get("depth") is not None:
        margin = {"depth": adapt_options["depth"], "boundary": adapt_options.get("boundary")}
        if "meta" not in options and "dtype" not in options:
            first = next(x for x in args if _is_graph(x))
            options["meta"] = meta_from_array(_on_one_element(call, args, kwargs), ndim=first.ndim)
        return dask.array.map_overlap(call, *args, **margin, **options, **kwargs)
    return dask.array.map_blocks(call, *args, **options, **kwargs)


class ReadOnly:
    """An adapted function that sees blocks as read-only, since the graph's other tasks read them.

    If `copies`, blocks of a library that cannot mark them are copied. A function that writes to
    such a copy must return it, as with a copy of any read-only array.
    """

    def __init__(self, function: Any, library: str, copies: bool) -> None:
        self.function = function
        self.library = library
        self.copies = copies
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **options: Any) -> Any:
        given = [_readonly(x, self.copies) for x in args]
        options = {name: _readonly(x, False) for name, x in options.items()}
        result = self.function(*given, **options)
        pairs = list(zip(args, given, strict=True))
        every = leaves(result)
        for block, seen in pairs:
            if _is_copy(block, seen) and not any(_same(x, seen) for x in every):
                self._check_unwritten(block, seen)

        def whole(x: Any) -> Any:
            return next((block for block, seen in pairs if _is_view(x, seen)), x)

        return mapped(whole, result)

    def __dask_tokenize__(self) -> Any:
        return "arraybridge.ReadOnly", self.library, self.copies, normalize_token(self.function)

    def __reduce__(self) -> Any:
        return ReadOnly, (self.function, self.library, self.copies)

    def _check_unwritten(self, block: Any, seen: Any) -> None:
        """Raise if the function wrote to a copy that it did not return.

        PyTorch counts the writes of its own functions; otherwise elements on the host are compared.
        """
        block, seen = unwrapped(block), unwrapped(seen)
        home = library_of_type(type(seen))
        assert home is not None
        version = None
        with suppress(RuntimeError):  # inference tensors count nothing
            version = getattr(seen, "_version", None)
        if home.name != self.library or version is None:
            if not home.describe(seen).device.host:
                return
            before, after = (
                convert(x.detach() if hasattr(x, "detach") else x, "numpy").tobytes()
                for x in (block, seen)
            )
            version = before != after
        if version:
            raise ConversionError(
                f"{name_of(self.function)} wrote to a block of a Dask array, which other tasks "
                "read: let it return what it writes to, or pass copy=True to adapt"
            )


def _readonly(x: Any, copies: bool) -> Any:
    """Return a block that cannot be written, or a copy of it."""
    if isinstance(x, Array):
        native = _readonly(x._native, copies)
        return x if native is x._native else type(x)._of(native)  # type: ignore[attr-defined]
    if type(x) is numpy.ndarray:
        seen = x.view()
        seen.flags.writeable = False
        return seen
    library = library_of_type(type(x))
    if library is None or not copies or library.accepts.immutable or isinstance(x, numpy.generic):
        return x
    block = chunked(x, False)
    return block.copy().native if isinstance(block, Chunk) else x


def _is_view(x: Any, seen: Any) -> bool:
    native = unwrapped(x)
    return type(x) is type(seen) and native is unwrapped(seen) and type(native) is numpy.ndarray


def _is_copy(block: Any, seen: Any) -> bool:
    return seen is not block and type(unwrapped(block)) is not numpy.ndarray


def _same(x: Any, seen: Any) -> bool:
    """Whether the function returned that copy."""
    x, seen = unwrapped(x), unwrapped(seen)
    return x is seen or getattr(x, "_base", None) is seen


def _is_graph(x: Any) -> bool:
    return isinstance(x, dask.array.Array)


def _on_one_element(call: Any, args: Any, kwargs: Any) -> Any:
    """Call a function to learn the type of its result."""
    return call(*[one_element(x) if _is_graph(x) else x for x in args], **kwargs)


def _along(
    call: Any, name: str, signature: Signature, args: Any, kwargs: Any, options: dict[str, Any]
) -> Any:
    """Call ``dask.array.apply_gufunc``, with blocks of the library that the function returns."""
    inputs, outputs = signature.inputs, signature.outputs
    placed = "axis" in options or "axes" in options  # Dask reports what does not fit
    shapes = [None if placed else getattr(x, "shape", ()) for x in args]
    signature.check_arguments(name, shapes, options.get("output_sizes") or {})
    for x, axes in zip(args, inputs, strict=True):
        cut = [] if placed or not axes or not _is_graph(x) else x.numblocks[-len(axes) :]
        if any(count > 1 for count in cut) and not options.get("allow_rechunk"):
            whole = dict.fromkeys(range(-len(axes), 0), -1)
            raise ValueError(
                f"{name} is adapted with signature={signature.text!r}, but an array is split along "
                f"({', '.join(axes)}) into {cut} blocks: pass x.rechunk({whole}), or "
                'blockwise={"allow_rechunk": True} to adapt'
            )
    if "meta" not in options and "output_dtypes" not in options:
        given = _on_one_element(call, args, kwargs)
        signature.check_results(name, given)
        loops = [x.ndim - len(axes) for x, axes in zip(args, inputs, strict=True) if _is_graph(x)]
        pairs = zip(given if len(outputs) > 1 else [given], outputs, strict=True)
        models = [meta_from_array(x, ndim=max(loops) + len(axes)) for x, axes in pairs]
        options["meta"] = tuple(models) if len(outputs) > 1 else models[0]
    return dask.array.apply_gufunc(call, signature.text, *args, **options, **kwargs)
