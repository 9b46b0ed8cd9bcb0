"""How a notebook shows an Array; imported by the first that is shown."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy

from ..core.records import TensorInfo
from ..drawing import array_html
from ..drawing.memory import format_shape
from .exporting import in_place

if TYPE_CHECKING:
    from .array import Array

_EDGE = 3  # elements at each end of an axis that is too long to show
_MOST = 200  # elements that are all shown
_ROWS, _AXES = 40, 4
_READ = 1 << 20  # bytes that are copied to be read, where elements are not stored as they are
_COLUMNS = 56  # letters in a line of the card


def html_of(array: Array) -> str:
    """Return what ``_repr_html_`` does: the kind of array, its values, its memory.

    Values are read where they are, in host memory: nothing is copied, and no audit sees it. What
    NumPy cannot view is shown as its library prints it. It never raises.
    """
    info: TensorInfo | None
    try:
        info = array.info
    except Exception:  # a tracer
        info = None
    if info is None:
        return array_html(info, array.library, _printed(array))
    head = f"{array.library}: {info.dtype_name} {format_shape(info.shape)} on {info.device}"
    values = None
    if info.device.host:
        try:
            values = _values(array, info)
        except Exception:  # a gradient; print options that NumPy cannot follow
            values = _printed(array)
    return array_html(info, head, values)


def _printed(array: Array) -> str:
    """Return how its library prints an array; bare memory says what it is."""
    try:
        return repr(array) if array.native is None else array._printed()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _values(array: Array, info: TensorInfo) -> str:
    """Return the values, or those of the first block of an array of many axes."""
    native = in_place(array, info)
    if native is None:
        if info.pending and info.nbytes > _READ:  # torch's repr, too, copies all of it
            return f"not read, which would copy {info.nbytes:,} bytes"
        return _printed(array)
    if not native.size:
        return "no elements"
    leading, shape = 0, [min(extent, 2 * _EDGE) for extent in native.shape]
    while len(shape) - leading > _AXES or prod(shape[leading:-1]) > _ROWS:
        leading += 1
    shown = numpy.asarray(native[(0,) * leading])
    text = numpy.array2string(
        shown, max_line_width=_COLUMNS, separator=", ", threshold=_MOST, edgeitems=_EDGE
    )
    return f"[{', '.join('0' * leading)}, ...] =\n{text}" if leading else text
