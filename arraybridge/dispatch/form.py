"""Casts and layouts on request: ``dtype=``, ``casting=`` and ``order=``.

What is asked for is a `Form`. Where an array has it already, the route is the one that it has
without; else it is a copy, which the planner plans as that of the array that the cast will make.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..dlpack import CPU, DataType, Device
from ..layout import c_strides
from ..meant import meant
from ..named import NamedTuple
from .casting import allowed, checked_casting, data_type_named
from .copier import on_host
from .library import Library
from .plan import checked_copy, unavailable
from .recast import Recast, caster_of
from .records import Route, TensorInfo, no_copy_allowed
from .route import makes_c_order, planned, route_between

__all__ = ["ADDRESS", "Form", "form_of", "route_to", "strides_in"]

_ORDERS = ("C", "F", "K", "channels_last")
_MEMORY_FORMATS = {
    "contiguous_format": "C",
    "preserve_format": "K",
    "channels_last": "channels_last",
    "channels_last_3d": "channels_last",
}
#: Of an array that is not made yet: aligned as any is.
ADDRESS = 1 << 12


class Form(NamedTuple):
    """What the result of a conversion is to be.

    Attributes
    ----------
    dtype : DataType or None
        None: that of the array, unless it is in the table.
    casting : str
        The rule that the cast must obey.
    order : {"C", "F", "channels_last"} or None
        The order of the axes in memory; None: any.
    table : tuple of (DataType, DataType)
        What arrays of some data types become.
    """

    dtype: DataType | None
    casting: str
    order: str | None
    table: tuple[tuple[DataType, DataType], ...] = ()

    def wanted(self, given: DataType) -> DataType:
        """Return the data type of the result for that of an array."""
        if self.dtype is not None:
            return self.dtype
        return next((to for of, to in self.table if of == given), given)


def form_of(dtype: object, casting: object = "same_kind", order: object = None) -> Form | None:
    """Read the keywords; None where nothing is asked for.

    Parameters
    ----------
    dtype : data type or mapping, optional
        A mapping is from the data types of arrays to those of the results; others stay.

    Raises
    ------
    ValueError, TypeError
        For what is no data type, no rule of casting, or no order.
    """
    casting = checked_casting(casting)
    layout = None if order is None else _order_named(order)
    if isinstance(dtype, Mapping):
        read = data_type_named
        return Form(None, casting, layout, tuple((read(k), read(v)) for k, v in dtype.items()))
    wanted = None if dtype is None else data_type_named(dtype)
    return None if wanted is None and layout is None else Form(wanted, casting, layout)


def _order_named(order: object) -> str | None:
    name = order if isinstance(order, str) else None
    if name is None and type(order).__name__ == "memory_format":  # PyTorch's
        name = _MEMORY_FORMATS.get(str(order).rpartition(".")[2])
    if name not in _ORDERS:
        raise ValueError(f"order is {order!r}{meant(order, _ORDERS)} or a torch.memory_format")
    return None if name == "K" else name


def _axes(order: str | None, ndim: int) -> tuple[int, ...]:
    """Return the axes of an order, from the outermost in memory to the innermost.

    Raises
    ------
    ValueError
        For "channels_last" of an array that has no channels.
    """
    if order == "F":
        return tuple(reversed(range(ndim)))
    if order == "channels_last":
        if ndim not in (4, 5):
            raise ValueError(
                "order='channels_last' is of arrays (N, C, H, W) or (N, C, D, H, W); this has "
                f"{ndim} dimensions"
            )
        return (0, *range(2, ndim), 1)
    return tuple(range(ndim))


def strides_in(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of a dense array whose axes have an order in memory."""
    dense = c_strides(tuple(shape[axis] for axis in axes))
    steps = dict(zip(axes, dense, strict=True))
    return tuple(steps[axis] for axis in range(len(shape)))


#: What is pending where elements do not lie at the strides of a TensorInfo.
_ASTRIDE = {
    "fraction": "strides that are no whole elements",
    "chunks": "several chunks",
    "columns": "columns that lie apart",
}


def _has_order(info: TensorInfo, axes: tuple[int, ...]) -> bool:
    if not _ASTRIDE.keys().isdisjoint(info.pending):
        return False
    dense = strides_in(info.shape, axes)
    return 0 in info.shape or all(
        ours == theirs or extent == 1
        for ours, theirs, extent in zip(info.strides, dense, info.shape, strict=True)
    )


def _layout_change(info: TensorInfo, form: Form) -> str:
    steps = next(filter(None, map(_ASTRIDE.get, info.pending)), f"strides {info.strides}")
    return f"a layout of {steps} to {form.order}, for order="


def _permuted(info: TensorInfo, axes: tuple[int, ...]) -> TensorInfo:
    shape, strides = info.shape, info.strides
    return info._replace(
        shape=tuple([shape[axis] for axis in axes]), strides=tuple([strides[axis] for axis in axes])
    )


def route_to(
    x: object,
    source: Library,
    target: Library,
    *,
    form: Form | None = None,
    device: Device | None = None,
    copy: bool | None = None,
    alias_readonly: bool = False,
    share: bool = False,
) -> tuple[Route, TensorInfo]:
    """Return the route of ``x`` from one library to another, and the info of ``x``.

    As `route_between`, with a form that the result must have.
    """
    if form is None:
        return route_between(
            x, source, target, device=device, copy=copy, alias_readonly=alias_readonly, share=share
        )
    copy = checked_copy(copy)
    info = source.describe(x)
    wanted = form.wanted(info.dtype)
    axes = None if form.order is None else _axes(form.order, info.ndim)
    if wanted == info.dtype:
        route, info = route_between(
            x, source, target, device=device, copy=copy, alias_readonly=alias_readonly, share=share
        )
        if route.kind == "refuse" or axes is None:
            return route, info
        if route.kind == "view" and _has_order(info, axes) and (info.data or not info.size):
            return route, info
        if copy is not False and axes == tuple(range(info.ndim)):
            if route.kind == "view":
                route, info = route_between(x, source, target, device=device, copy=True)
                route = route._replace(why=_layout_change(info, form))
            laid = _has_order(info, axes) or makes_c_order(route, info, source, target)
            if route.kind != "refuse" and laid:
                return route, info
    return _recast(x, info, source, target, form, wanted, axes, device, copy), info


def _recast(
    x: object,
    info: TensorInfo,
    source: Library,
    target: Library,
    form: Form,
    wanted: DataType,
    axes: tuple[int, ...] | None,
    device: Device | None,
    copy: bool | None,
) -> Route:
    """Return the route of an array that is copied to another data type or layout."""

    def refuse(why: str, place: Device | None = None) -> Route:
        return Route("refuse", why, 0, source.name, target.name, place or info.device)

    given = info.dtype
    layout = axes or tuple(range(info.ndim))
    why = unavailable(info)
    if why and not (info.tracked and source is target and source.recasts(info, wanted, layout)):
        return refuse(why)
    if not allowed(given, wanted, form.casting):
        return refuse(
            f"casting={form.casting!r} does not allow {given} to {wanted}: pass casting='unsafe', "
            "or 'same_value', which raises where a value would change"
        )
    change = f"{given} to {wanted}, for dtype=" if given != wanted else ""
    if axes is not None and not _has_order(info, axes):
        change += (" and " if change else "") + _layout_change(info, form)
    if copy is False:
        return refuse(no_copy_allowed(f"{change}, takes a copy"))
    caster = caster_of(info, source, target, wanted, layout)
    if caster is None:
        what = f"casts {source.name}'s {given} to {wanted}"
        if given == wanted:
            what = f"copies {source.name}'s arrays to order={form.order!r}"
        return refuse(f"nothing {what} on {info.device}: do it in the library that made the array")
    made = info._replace(
        library=caster.name,
        data=ADDRESS,
        byte_offset=0,
        strides=strides_in(info.shape, layout),
        dtype=wanted,
        readonly=False,
        version=None,
        device=CPU if info.device.host and info.device.type != CPU.type else info.device,
        padded=wanted.subbyte,
        pending=(),
        refused=None,
        legacy=False,
        tracked=False,
    )
    route = planned(x, made, caster, target, target.accepts, device, None, False, True)
    if route.kind == "refuse":
        return route._replace(source=source.name)
    if axes is not None and route.kind != "view" and axes != tuple(range(info.ndim)):
        return refuse(
            f"order={form.order!r} has to end in a view of {target.name}, but {route.why}"
        )
    by = f"{caster.name}'s own {'cast' if given != wanted else 'copy'}"
    if given == wanted and caster.name == "numpy" and not info.pending:
        by = str(on_host(_permuted(info, layout)))
    onward = None if route.kind == "view" else route
    copier = Recast(caster, wanted, form.casting, layout, onward, by)
    moves = route.kind == "transfer"
    return Route(
        "transfer" if moves else "kernel",
        " and ".join(filter(None, (change or "copy=True", route.why if moves else ""))),
        made.nbytes,
        source.name,
        target.name,
        route.device,
        copier,
    )
