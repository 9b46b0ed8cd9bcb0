"""How a notebook shows an Array; imported when the first one is shown."""

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
_MOST = 200  # elements; larger arrays are abbreviated
_ROWS, _AXES = 40, 4
_READ = 1 << 20  # the most bytes copied to read values that need computing first
_COLUMNS = 56  # characters per line


def html_of(array: Array) -> str:
    """Return the result of ``_repr_html_``: the type of array, its values, its memory.

    Values in host memory are read in place, without a copy and unseen by audits. Arrays that NumPy
    cannot view are shown as their library prints them. Never raises.
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
    """Return the library's own repr; for bare memory that of the Array."""
    try:
        return repr(array) if array.native is None else array._printed()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _values(array: Array, info: TensorInfo) -> str:
    """Return the values, or those of the first block of an array of many axes."""
    native = in_place(array, info)
    if native is None:
        if info.pending and info.nbytes > _READ:  # torch's repr would copy all of it as well
            return f"values not shown: reading them would copy {info.nbytes:,} bytes"
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
