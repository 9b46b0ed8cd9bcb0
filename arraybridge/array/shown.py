"""How a notebook shows an Array; imported by the first that is shown."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy

from ..dispatch.records import TensorInfo
from ..drawing import array_html

if TYPE_CHECKING:
    from .carrier import Array

_EDGE = 3  # elements at each end of an axis that is too long to show
_MOST = 200  # elements that are all shown
_ROWS, _AXES = 40, 4


def html_of(array: Array) -> str:
    """Return what ``_repr_html_`` does: the kind of array, its values, its memory.

    Values are read from host memory alone. It never raises: what cannot be described or read (a
    tracer, a gradient) is shown as its ``repr``.
    """
    try:
        info: TensorInfo | None = array.info
    except Exception:
        info = None
    if info is None:
        return array_html(info, array.library, _safely(array))
    head = f"{array.library}: {info.dtype_name} {info.shape} on {info.device}"
    return array_html(info, head, _values(array) if info.device.host else None)


def _safely(array: Array) -> str:
    try:
        return repr(array)
    except Exception as error:
        return f"{type(array).__name__} whose repr raises {type(error).__name__}"


def _values(array: Array) -> str:
    """Return the values, or those of the first block of an array of many axes."""
    try:
        native = array.__array__()
    except Exception:  # a gradient
        return _safely(array)
    leading, shape = 0, [min(extent, 2 * _EDGE) for extent in native.shape]
    while len(shape) - leading > _AXES or prod(shape[leading:-1]) > _ROWS:
        leading += 1
    shown = numpy.asarray(native[(0,) * leading])
    text = numpy.array2string(shown, separator=", ", threshold=_MOST, edgeitems=_EDGE)
    return f"[{', '.join('0' * leading)}, ...] =\n{text}" if leading else text
