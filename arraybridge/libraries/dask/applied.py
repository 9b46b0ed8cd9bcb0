"""Adapted functions over Dask arrays: by blocks, along core dimensions, or with a margin."""

from __future__ import annotations

from typing import Any

import dask.array
from dask.array.utils import meta_from_array

from ...array.kinds import is_array
from ...array.terms import spelled
from .arrays import Seeing, one_of, prepare


def applied(function: Any, terms: dict[str, Any], args: Any, kwargs: Any) -> Any:
    """Call an adapted function later, on blocks.

    Parameters
    ----------
    function : callable
        Takes arrays of any library, and returns those of the caller.
    terms : dict
        ``blockwise``, ``signature``, ``depth``, ``boundary`` of :func:`arraybridge.adapt`.
    """
    prepare()
    name = spelled(function)
    for x in args:
        if is_array(x) and not _is_graph(x):
            raise TypeError(
                f"{name} is called by blocks, and a {type(x).__qualname__} is in memory: pass it "
                "as a Dask array, arraybridge.convert(x, 'dask'), to have it cut, or by keyword, "
                "to have every call see all of it"
            )
    for keyword, x in kwargs.items():
        if _is_graph(x):
            raise TypeError(
                f"{name} is called by blocks: pass the Dask array {keyword} by position"
            )
    call = Seeing(function)
    how: Any = terms.get("blockwise")
    options = dict(how) if isinstance(how, dict) else {}
    if terms.get("signature") is not None:
        return _along(call, terms["signature"], args, kwargs, options)
    if terms.get("depth") is not None:
        margin = {"depth": terms["depth"], "boundary": terms.get("boundary")}
        if "meta" not in options and "dtype" not in options:
            options["meta"] = _model(call, args, kwargs)
        return dask.array.map_overlap(call, *args, **margin, **options, **kwargs)
    return dask.array.map_blocks(call, *args, **options, **kwargs)


def _is_graph(x: Any) -> bool:
    return isinstance(x, dask.array.Array)


def _model(call: Any, args: Any, kwargs: Any) -> Any:
    """Return an empty block of what a function gives, by calling it on one element."""
    result = call(*[one_of(x) if _is_graph(x) else x for x in args], **kwargs)
    first = next(x for x in args if _is_graph(x))
    return meta_from_array(result, ndim=first.ndim)


def _along(call: Any, signature: str, args: Any, kwargs: Any, options: dict[str, Any]) -> Any:
    """``dask.array.apply_gufunc``, with blocks of the library that the function gives."""
    if "meta" not in options and "output_dtypes" not in options:
        from dask.array.gufunc import _parse_gufunc_signature

        inputs, outputs = _parse_gufunc_signature(signature)
        given = call(*[one_of(x) if _is_graph(x) else x for x in args], **kwargs)
        loops = [x.ndim - len(dims) for x, dims in zip(args, inputs, strict=True) if _is_graph(x)]
        if isinstance(outputs, list):
            pairs = zip(given, outputs, strict=True)
            models = [meta_from_array(x, ndim=max(loops) + len(dims)) for x, dims in pairs]
            options["meta"] = tuple(models)
        else:
            options["meta"] = meta_from_array(given, ndim=max(loops) + len(outputs))
    return dask.array.apply_gufunc(call, signature, *args, **options, **kwargs)
