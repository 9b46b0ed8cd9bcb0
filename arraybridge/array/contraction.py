"""What opt_einsum looks for in the package that an array's class comes from.

xarray's ``dot``, ``cov`` and weighted means contract by it; without these functions here it would
call NumPy's.
"""

from __future__ import annotations

from typing import Any


def tensordot(x1: Any, x2: Any, axes: Any = 2) -> Any:
    """Contract two Arrays, as their namespace's ``tensordot``."""
    return x1.__array_namespace__().tensordot(x1, x2, axes=axes)


def transpose(x: Any, axes: Any) -> Any:
    """Permute the axes of an Array, as its namespace's ``permute_dims``."""
    return x.__array_namespace__().permute_dims(x, tuple(axes))


def einsum(subscripts: str, /, *operands: Any) -> Any:
    """Contract Arrays, as the ``einsum`` of their library."""
    return operands[0].__array_namespace__().einsum(subscripts, *operands)
