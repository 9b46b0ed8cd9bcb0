"""Exports of Arrays to other libraries, noted: methods of their classes, and words of their tables.

C code keeps the address of a class's exchange table, so the table stays, and its quick way is shut:
what it calls instead is ``_exported``, in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import numpy

from ..array import native_array
from ..array.carrier import Array
from ..array.exporting import export_route
from ..array.native_array import NativeArray
from ..array.offered import offer_exchange
from ..dispatch.library import Library
from ..dispatch.records import Route
from ..dlpack import CPU, VERSION
from ..dlpack.offered import table_of
from ..explaining import explain
from ..machine_code.offered import Table
from .watching import Noted, here, put_back, seen, taken

__all__ = ["start", "stop"]

_TABLE = "__dlpack_c_exchange_api__"


def _noted(array: Any, **keywords: Any) -> Any:
    """Note an export that will be made; None where the export itself says what is wrong."""
    try:
        info = array._library.describe(array._native)
        route = export_route(info, **keywords)
    except Exception:
        return None
    if route.kind == "refuse":
        return None
    return seen(route, info.dtype_name, info.shape)


def _dlpack(own: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(own)
    def dlpack(self: Any, **keywords: Any) -> object:
        if here.exporting:  # a method of a subclass calls that of its base
            return own(self, **keywords)
        asked = {k: v for k, v in keywords.items() if k in ("max_version", "dl_device", "copy")}
        call = "__dlpack__"  # noqa: F841 - for `callers`
        noted = _noted(self, **asked)
        here.exporting = True
        try:
            result = own(self, **keywords)
        finally:
            here.exporting = False
        if noted is not None:
            taken(noted)
        return result

    return dlpack


def _exported(own: Callable[..., int]) -> Callable[..., int]:
    @wraps(own)
    def exported(self: Any) -> int:
        if here.exporting:
            return own(self)
        call = _TABLE  # noqa: F841
        noted = _noted(self, max_version=VERSION)
        address = own(self)
        if noted is not None:  # 0: what called this makes the export in another way
            taken(noted)
        return address

    return exported


def _array(self: Any, dtype: Any = None, copy: bool | None = None) -> Any:
    """Stand in for ``Array.__array__``: note casts and views too, which are no conversion."""
    call = "__array__"  # noqa: F841 - for `callers`
    before = here.count
    gathering = None if copy is False else _gathering(self)
    result = _own_array(self, None, copy)
    if gathering is not None and here.count == before:
        taken(gathering)
    if here.count == before:  # the native array itself
        route = Route("view", "it is one already", 0, self._library.name, "numpy", CPU)
        taken(seen(route, result.dtype, result.shape))
    if dtype is None or result.dtype == dtype:
        return result
    if copy is False:
        return _own_array(self, dtype, copy)  # which raises
    why = f"{result.dtype} becomes {numpy.dtype(dtype)}"
    cast = Route("kernel", why, result.nbytes, "numpy", "numpy", CPU)
    noted = seen(cast, result.dtype, result.shape)
    result = result.astype(dtype)
    taken(noted)
    return result


def _gathering(array: Any) -> Noted | None:
    """Note the copy of an array in several pieces of memory, which no conversion makes."""
    library = array._library
    if type(library).gathered is Library.gathered:
        return None
    try:
        route = explain(array, "numpy")
        info = library.describe(array._native)
    except Exception:  # the method says what is wrong
        return None
    if route.kind != "refuse" or "chunks" not in info.pending:
        return None
    why = "its elements lie in several chunks"
    gathered = Route("kernel", why, info.nbytes, library.name, "numpy", CPU)
    return seen(gathered, info.dtype_name, info.shape)


_own_array = Array.__array__
_own_dlpack = Array.__dlpack__
_own_offer = offer_exchange

#: What is replaced: (class, name, own or None where it is inherited), and tables with their words.
_replaced: list[tuple[Any, str, Any]] = []
_tables: list[tuple[Table, int]] = []


def _classes(cls: type[Any] = NativeArray) -> Iterator[type[Any]]:
    for each in cls.__subclasses__():
        yield each
        yield from _classes(each)


def _replace(cls: Any, name: str, value: object) -> None:
    _replaced.append((cls, name, vars(cls).get(name)))
    setattr(cls, name, value)


def _watch(cls: Any) -> None:
    """Note the exports of a class of Arrays."""
    if "_home" in vars(cls):
        capsule = getattr(cls, _TABLE, None)  # which makes it, where that was not done before
        if capsule is not None:
            table = table_of(capsule)
            _tables.append((table, table.way))
            table.way = 0
        _replace(cls, "_exported", _exported(cls._exported))
    if "__dlpack__" in vars(cls):
        _replace(cls, "__dlpack__", _dlpack(vars(cls)["__dlpack__"]))


def _offer(cls: Any) -> None:
    """Stand in for ``offer_exchange``, of a class that is made while an audit is on."""
    base: Any = Array
    noting, base.__dlpack__ = base.__dlpack__, _own_dlpack  # what the class keeps for good
    try:
        _own_offer(cls)
    finally:
        base.__dlpack__ = noting
    _watch(cls)


def start() -> None:
    """Note exports from now on, those of classes that are made meanwhile too."""
    _replace(Array, "__array__", _array)
    _replace(Array, "__dlpack__", _dlpack(_own_dlpack))
    for cls in [*_classes()]:
        _watch(cls)
    vars(native_array)["offer_exchange"] = _offer


def stop() -> None:
    """Put everything back."""
    vars(native_array)["offer_exchange"] = _own_offer
    put_back(_replaced)
    while _tables:
        table, way = _tables.pop()
        table.way = way
