"""Dask's backends: ``x.to_backend("torch")``, and ``dask.config.set({"array.backend": "torch"})``.

The classes of the entry points ``dask.array.backends``.
"""

from __future__ import annotations

from typing import Any

import dask.array
import numpy
from dask import config
from dask.array.backends import ArrayBackendEntrypoint

from ...array.array_types import ArrayType
from .arrays import ConvertBlock, convert_blocks, prepare


class Backend(ArrayBackendEntrypoint):  # type: ignore[misc]
    """Blocks of one library; see the subclasses.

    Attributes
    ----------
    library : str
        Empty for the library that the blocks already have.
    wrapped : bool
        Whether computing returns an :class:`arraybridge.Array`.
    """

    library = ""
    wrapped = False

    def __init__(self) -> None:
        prepare()

    @classmethod
    def to_backend(cls, data: Any, **options: Any) -> Any:
        """Convert the blocks; the options are those of :func:`arraybridge.convert`."""
        return convert_blocks(data, cls.library or None, wrapped=cls.wrapped, **options)

    @classmethod
    def to_backend_dispatch(cls) -> Any:
        """Return the function that converts one block."""
        return ConvertBlock(ArrayType(cls.library or "numpy", cls.wrapped), {})


def _creating(name: str, keyword: str = "meta") -> Any:
    """Make a method that calls Dask's function of that name with a model of the blocks."""

    def method(cls: Any, *args: Any, **options: Any) -> Any:
        given = options.get(keyword)
        if given is None or keyword == "meta":
            block = numpy.empty((), "float32") if given is None else given
            options[keyword] = cls.to_backend_dispatch()(block)
        with config.set({"array.backend": "numpy"}):
            return getattr(dask.array, name)(*args, **options)

    method.__name__, method.__doc__ = name, f"``dask.array.{name}``."
    return classmethod(method)


for _name in ("ones", "zeros", "empty", "full"):
    setattr(Backend, _name, _creating(_name))
setattr(Backend, "arange", _creating("arange", "like"))  # noqa: B010 - of a type checker's making


def _backend(library: str, wrapped: bool) -> Any:
    """Make the backend for blocks of a library; computing may return Arrays."""
    name = ("arraybridge." * wrapped + library).rstrip(".")
    doc = f'``to_backend("{name}")``: ' + ("Arrays" if wrapped else "the library's own arrays")
    return type(name, (Backend,), {"library": library, "wrapped": wrapped, "__doc__": doc})


Torch, JAX = _backend("torch", False), _backend("jax", False)
Arrays, NumPyArrays = _backend("", True), _backend("numpy", True)
TorchArrays, JAXArrays = _backend("torch", True), _backend("jax", True)
