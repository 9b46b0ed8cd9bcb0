"""The array API standard over Arrays: one module per library."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import array_api_strict as array_api_strict
    from . import cupy as cupy
    from . import dpnp as dpnp
    from . import jax as jax
    from . import numpy as numpy
    from . import torch as torch


def __getattr__(name: str) -> Any:
    from importlib.util import find_spec

    from ..core.registry import is_library, library_named, library_names

    cls = None
    if name in library_names(declared=False) or (  # not a submodule, as in `from . import wrap`
        not name.startswith("_") and not find_spec(f"{__name__}.{name}") and is_library(name)
    ):
        cls = library_named(name).computing.array_class()
    if cls is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return cls._namespace
