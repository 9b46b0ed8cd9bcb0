"""The array API standard over Arrays of array-api-strict."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import array_api_strict

from .corrections.array_api_strict import get as _get
from .corrections.array_api_strict import set as _set
from .namespace import open_namespace

if TYPE_CHECKING:
    from .standard.everything import *  # noqa: F403
    from .standard.everything import __array_api_version__ as __array_api_version__
    from .standard.everything import __array_namespace_info__ as __array_namespace_info__


def _probe(native: Any, device: Any) -> Any:
    """An array on a device, if that has every dtype.

    ``devices()`` promises that any array can be brought to what it lists; the devices "no_float64"
    and "no_x64", which array-api-strict lists as well, refuse some. Named, they are taken.
    """
    try:
        for dtype in (native.uint64, native.complex128):
            array = native.empty((1,), dtype=dtype, device=device)
    except ValueError as error:
        raise TypeError(str(error)) from error
    return array


open_namespace(
    sys.modules[__name__],
    "array_api_strict",
    native_type=type(array_api_strict.zeros(())),
    get=_get,
    set=_set,
    errors=(OverflowError, ValueError),
    members={"_probe": staticmethod(_probe)},
)
