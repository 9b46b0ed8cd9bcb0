"""A conversion's request: the keywords of ``convert``, read once and normalised."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ..dlpack import DataType, Device
from ..layout import dense_strides
from .library import place_named
from .records import TensorInfo

_ORDERS = ("C", "F", "K", "channels_last")
_MEMORY_FORMATS = {
    "contiguous_format": "C",
    "preserve_format": "K",
    "channels_last": "channels_last",
    "channels_last_3d": "channels_last",
}


class Cast(NamedTuple):
    """The data type and the order requested of a result."""

    dtype: DataType | None  # None: the array's, unless `table` has it
    casting: str  # the rule that the cast must obey
    order: str | None  # of the axes in memory: "C", "F", "channels_last"; None: any
    table: tuple[tuple[DataType, DataType], ...] = ()  # results' data types by the arrays'

    def wanted(self, given: DataType) -> DataType:
        """Return the result's data type for an array's."""
        if self.dtype is not None:
            return self.dtype
        return next((to for of, to in self.table if of == given), given)


class Request(NamedTuple):
    """What a conversion requests, other than its target."""

    device: Device | None = None  # the result's; None: the array's
    # None: a view if one is safe; False: a view or an error; True: always a copy
    copy: bool | None = None
    # Take a view of read-only memory even if the target cannot mark it.
    alias_readonly: bool = False
    cast: Cast | None = None
    # Share memory that may still be written with immutable arrays too: it has no other user, or the
    # standard's ``from_dlpack`` requires it.
    share: bool = False
    contiguous: bool = False  # :func:`arraybridge.contiguous`: `x` itself, or a copy in C order


def request_of(
    device: object = None,
    copy: object = None,
    alias_readonly: object = False,
    dtype: object = None,
    casting: object = "same_kind",
    order: object = None,
    share: bool = False,
) -> Request:
    """Return the request for keywords as callers spell them, or raise ValueError or TypeError."""
    place = None if device is None else place_named(device)
    cast = None
    if not (dtype is None and order is None and casting == "same_kind"):
        cast = cast_of(dtype, casting, order)
    return Request(place, checked_copy(copy), bool(alias_readonly), cast, share)


def checked_copy(copy: object) -> bool | None:
    """Return `copy` as None, True or False (0, 1 and NumPy's booleans too), or raise ValueError."""
    if copy is None or copy is True or copy is False:
        return copy
    if isinstance(copy, np.bool_) or (isinstance(copy, int) and copy in (0, 1)):
        return bool(copy)
    raise ValueError(f"copy is {copy!r}; expected None, True or False")


def cast_of(dtype: object, casting: object = "same_kind", order: object = None) -> Cast | None:
    """Read the keywords; None if they request no cast, ValueError or TypeError if they are invalid.

    A mapping, as `dtype`, maps arrays' data types to results'; other types are kept.
    """
    from .cast_rules import checked_casting, data_type_named

    casting = checked_casting(casting)
    layout = None if order is None else _order_named(order)
    if isinstance(dtype, Mapping):
        read = data_type_named
        return Cast(None, casting, layout, tuple((read(k), read(v)) for k, v in dtype.items()))
    wanted = None if dtype is None else data_type_named(dtype)
    return None if wanted is None and layout is None else Cast(wanted, casting, layout)


def _order_named(order: object) -> str | None:
    name = order if isinstance(order, str) else None
    if name is None and type(order).__name__ == "memory_format":  # PyTorch's
        name = _MEMORY_FORMATS.get(str(order).rpartition(".")[2])
    if name not in _ORDERS:
        from ..suggest import did_you_mean

        raise ValueError(
            f"order is {order!r}{did_you_mean(order, _ORDERS)} or a torch.memory_format"
        )
    return None if name == "K" else name


def order_axes(order: str | None, ndim: int) -> tuple[int, ...]:
    """Return the axes of an order, outermost first in memory; ValueError for missing channels."""
    if order == "F":
        return tuple(reversed(range(ndim)))
    if order == "channels_last":
        if ndim not in (4, 5):
            raise ValueError(
                "order='channels_last' is for arrays (N, C, H, W) or (N, C, D, H, W); this one "
                f"has {ndim} dimensions"
            )
        return (0, *range(2, ndim), 1)
    return tuple(range(ndim))


#: The pending kinds whose elements are not at a TensorInfo's strides.
_ASTRIDE = {
    "fraction": "strides that are not multiples of the item size",
    "chunks": "several chunks",
    "columns": "separate columns",
}


def has_order(s: TensorInfo, axes: tuple[int, ...]) -> bool:
    """Whether the elements are stored in the order of some axes, without gaps."""
    if not _ASTRIDE.keys().isdisjoint(s.pending):
        return False
    if s.empty or axes == tuple(range(s.ndim)):
        return s.empty or s.c_contiguous
    dense = dense_strides(s.shape, axes)
    return all(
        ours == theirs or extent == 1
        for ours, theirs, extent in zip(s.strides, dense, s.shape, strict=True)
    )


def layout_change(info: TensorInfo, cast: Cast) -> str:
    """Return the reason for a copy to another order."""
    steps = next(filter(None, map(_ASTRIDE.get, info.pending)), f"strides {info.strides}")
    return f"a layout of {steps} to {cast.order}, for order="
