"""Dask's own door: ``x.to_backend("torch")``, and ``dask.config.set({"array.backend": "torch"})``.

The classes of the entry points ``dask.array.backends``.
"""

from __future__ import annotations

from typing import Any

import dask.array
import numpy
from dask import config
from dask.array.backends import ArrayBackendEntrypoint

from ...array.kinds import Kind
from .arrays import Bring, brought, prepare


class Backend(ArrayBackendEntrypoint):  # type: ignore[misc]
    """Blocks of one library; see the subclasses.

    Attributes
    ----------
    library : str
        Empty for the library that the blocks have already.
    wrapped : bool
        Whether what is computed is an :class:`arraybridge.Array`.
    """

    library = ""
    wrapped = False

    def __init__(self) -> None:
        prepare()

    @classmethod
    def to_backend(cls, data: Any, **options: Any) -> Any:
        """Convert the blocks; the options are those of :func:`arraybridge.convert`."""
        return brought(data, cls.library or None, wrapped=cls.wrapped, **options)

    @classmethod
    def to_backend_dispatch(cls) -> Any:
        """Return what converts one block."""
        return Bring(Kind(cls.library or "numpy", cls.wrapped), {})

    @classmethod
    def _made(cls, name: str, *args: Any, meta: Any = None, **options: Any) -> Any:
        """Call Dask's function of that name for blocks of this library."""
        model = cls.to_backend_dispatch()(numpy.empty((), "float32") if meta is None else meta)
        with config.set({"array.backend": "numpy"}):
            return getattr(dask.array, name)(*args, meta=model, **options)

    @classmethod
    def ones(cls, *args: Any, **options: Any) -> Any:
        """``dask.array.ones``."""
        return cls._made("ones", *args, **options)

    @classmethod
    def zeros(cls, *args: Any, **options: Any) -> Any:
        """``dask.array.zeros``."""
        return cls._made("zeros", *args, **options)

    @classmethod
    def empty(cls, *args: Any, **options: Any) -> Any:
        """``dask.array.empty``."""
        return cls._made("empty", *args, **options)

    @classmethod
    def full(cls, *args: Any, **options: Any) -> Any:
        """``dask.array.full``."""
        return cls._made("full", *args, **options)

    @classmethod
    def arange(cls, *args: Any, like: Any = None, **options: Any) -> Any:
        """``dask.array.arange``."""
        like = cls.to_backend_dispatch()(numpy.empty((), "float32")) if like is None else like
        with config.set({"array.backend": "numpy"}):
            return dask.array.arange(*args, like=like, **options)


class Torch(Backend):
    """``to_backend("torch")``: what is computed is a tensor."""

    library = "torch"


class JAX(Backend):
    """``to_backend("jax")``: what is computed is an array of JAX."""

    library = "jax"


class Arrays(Backend):
    """``to_backend("arraybridge")``: Arrays, over the library that the blocks have."""

    wrapped = True


class NumPyArrays(Backend):
    """``to_backend("arraybridge.numpy")``."""

    library, wrapped = "numpy", True


class TorchArrays(Backend):
    """``to_backend("arraybridge.torch")``."""

    library, wrapped = "torch", True


class JAXArrays(Backend):
    """``to_backend("arraybridge.jax")``."""

    library, wrapped = "jax", True
