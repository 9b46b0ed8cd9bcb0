"""What opt_einsum looks for in the package that an array's class comes from.

xarray's ``dot``, ``cov`` and weighted means contract by it; without these functions here it would
call NumPy's.
"""

from __future__ import annotations

from typing import Any

from .array import Array
from .array_types import lazy_library


def _namespace(operands: tuple[Any, ...]) -> Any:
    """Return the namespace of the first Array, which says what is wrong with the others.

    Where there is none, that of Dask arrays whose class is of arraybridge's.
    """
    for x in operands:
        if isinstance(x, Array):
            return x.__array_namespace__()
    lazy = next(library for x in operands if (library := lazy_library(x)) is not None)
    return lazy.native_namespace()


def tensordot(x1: Any, x2: Any, axes: Any = 2) -> Any:
    """Contract two Arrays, as their namespace's ``tensordot``."""
    return _namespace((x1, x2)).tensordot(x1, x2, axes=axes)


def transpose(x: Any, axes: Any) -> Any:
    """Permute the axes of an Array, as its namespace's ``permute_dims``."""
    return _namespace((x,)).permute_dims(x, tuple(axes))


def einsum(subscripts: str, /, *operands: Any) -> Any:
    """Contract Arrays, as the ``einsum`` of their library."""
    return _namespace(operands).einsum(subscripts, *operands)
