"""The aliases that the templates' annotations use.

``Array`` itself is :class:`arraybridge.Array`, imported by each chapter for type checkers alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from ...dlpack import Device as DLPackDevice

# A library's own dtype object (``numpy.dtype``, ``torch.dtype``, ...): they share no base class.
DType: TypeAlias = Any

# What a ``device=`` takes: an `arraybridge.Device`, its string, or the library's own device.
Device: TypeAlias = "DLPackDevice | str | object"

# What `asarray` takes: an array, a Python scalar, nested sequences of those, or a buffer.
ArrayLike: TypeAlias = object

Shape: TypeAlias = tuple[int, ...]
Axes: TypeAlias = "int | tuple[int, ...]"

# A kind of data types, as `isdtype` and the inspection's ``dtypes`` name it.
Kind: TypeAlias = Literal[
    "bool",
    "signed integer",
    "unsigned integer",
    "integral",
    "real floating",
    "complex floating",
    "numeric",
]

# Which discrete Fourier transforms are scaled: the inverse ones by 1/n ("backward"), both by
# 1/sqrt(n) ("ortho"), or the forward ones by 1/n ("forward").
Norm: TypeAlias = Literal["backward", "ortho", "forward"]
