"""The array API standard over Arrays of NumPy."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy

from ..array.operators import OPERATORS
from .corrections import overlaps
from .namespace import open_namespace

if TYPE_CHECKING:
    from .standard.everything import *  # noqa: F403
    from .standard.everything import __array_api_version__ as __array_api_version__
    from .standard.everything import __array_namespace_info__ as __array_namespace_info__


def _normal(result):
    return result if result.__class__ is numpy.ndarray else numpy.asarray(result)


# A ufunc is 20 ns nearer than the operator that calls it; ** has short cuts of its own.
_UFUNCS = {
    op.function: ufunc
    for op in OPERATORS
    if isinstance(ufunc := getattr(numpy, op.function, None), numpy.ufunc) and op.name != "pow"
}

open_namespace(
    sys.modules[__name__],
    "numpy",
    native_type=numpy.ndarray,
    normal=_normal,
    set=overlaps.set,
    direct=_UFUNCS,
    errors=(ValueError,),  # of in-place operators on read-only memory
    # A NumPy scalar's dtype takes part, as it does in NumPy.
    members={"_scalar": staticmethod(lambda scalar: scalar)},
)
