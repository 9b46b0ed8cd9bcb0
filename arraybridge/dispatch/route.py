"""Routes between two libraries: the plan, limited by what the libraries can do."""

from __future__ import annotations

from typing import Any

from ..dlpack import CPU, Device
from .copier import (
    Copier,
    HostCopy,
    SmallCopy,
    copier_for,
    copies_itself,
    may_be_small,
    no_copy,
    on_host,
    small_copy,
)
from .library import Library
from .plan import checked_copy, plan
from .records import Accepts, ConversionError, Route, TensorInfo
from .registry import ROUTES

_MOST = 1024  # routes that are remembered


def route_between(
    x: object,
    source: Library,
    target: Library,
    *,
    device: Device | None = None,
    copy: bool | None = None,
    alias_readonly: bool = False,
    share: bool = False,
) -> tuple[Route, TensorInfo]:
    """Return the route of ``x`` from one library to another, and the info of ``x``.

    A route within the CPU's memory is remembered for arrays that differ in nothing but the address
    and, where it decides, its alignment.

    Raises
    ------
    ValueError
        For a ``copy`` that is neither None nor a boolean.
    """
    if copy is not None:
        copy = checked_copy(copy)
    info = source.describe(x)
    same = source is target or (target.forms and isinstance(x, target.forms))
    if same and not copy and (device is None or device == info.device):
        # The array itself is the view: no property of its memory matters.
        return Route("view", "it is one already", 0, source.name, target.name, info.device), info
    accepts = target.accepts
    if accepts.immutable and info.readonly and not (share or info.legacy) and source.may_change(x):
        info = info._replace(legacy=True)
    if info.device is not CPU or info.refused is not None or not info.data:
        return planned(x, info, source, target, accepts, device, copy, alias_readonly, share), info
    alignment = 0
    if accepts.alignment > 1 or (accepts.aligned and info.dtype.name in accepts.aligned):
        alignment = info.alignment
    key = (
        source, target, id(accepts), device, copy, not alias_readonly, share, alignment, info[3:],
    )  # fmt: skip
    known = ROUTES.get(key)
    if known is not None and known[0] is accepts:
        _, route, small = known
        if route.kind == "kernel":
            route = _recopied(route, x, info, source, target, small)
        return route, info
    route = planned(x, info, source, target, accepts, device, copy, alias_readonly, share)
    if route.kind in ("view", "kernel") and route.device.type == CPU.type:
        if len(ROUTES) >= _MOST:
            ROUTES.clear()
        small = route.kind == "kernel" and route.device == CPU and may_be_small(source, target)
        ROUTES[key] = accepts, route, small
    return route, info


def _recopied(
    route: Route, x: object, info: TensorInfo, source: Library, target: Library, small: bool
) -> Route:
    """Return a remembered route of another array, whose copier may be another."""
    copier: Any = small_copy(x, info, source, target) if small else None
    if copier is None:
        copier = route.copier
        if type(copier) is SmallCopy:
            copier = on_host(info)
        elif type(copier) is HostCopy:
            copier = HostCopy(copier.kernel, info)
    made: Route = _made(Route, (*route[:-1], copier))
    return made


def _transfers() -> Any:
    """Return what moves arrays between devices; a view needs none of it."""
    from . import transfer

    return transfer


_made: Any = tuple.__new__  # without the constructor's keywords


def makes_c_order(route: Route, info: TensorInfo, source: Library, target: Library) -> bool:
    """Whether a route makes a copy in C order, whatever the layout of the array."""
    if route.kind == "transfer":
        return not _transfers().keeps_layout(route.copier)
    # Columns stay whole in a copy, and a library's own import may keep the layout.
    return route.kind == "kernel" and not (source.in_pieces or copies_itself(target, info))


def _copier(
    x: object, info: TensorInfo, source: Library, target: Library, device: Device | None
) -> Copier | None:
    """Return what copies an array on its device."""
    if device is None or device == CPU:
        small = small_copy(x, info, source, target)
        if small is not None:
            return small
    return copier_for(info, source, target)


def planned(
    x: object,
    info: TensorInfo,
    source: Library,
    target: Library,
    accepts: Accepts,
    device: Device | None,
    copy: bool | None,
    alias_readonly: bool,
    share: bool,
) -> Route:
    """Plan a route, and refuse what the two libraries have no functions for."""
    route = plan(
        info,
        accepts if type(target).accepts_of is Library.accepts_of else target.accepts_of(info),
        device=device,
        copy=copy,
        alias_readonly=alias_readonly,
        share=share,
        copier=lambda: _copier(x, info, source, target, device),
        transfer=lambda place: _transfers().transfer_for(info, source, target, place),
    )
    obstacle = None
    if type(target).wrap is Library.wrap and _wraps(info, source, target, route):
        obstacle = target.no_wrap
    elif route.kind == "transfer":
        obstacle = _transfers().no_way(info, source, target, route.device)
    elif route.kind == "kernel" and route.copier is None:
        obstacle = no_copy(info, source)
    if obstacle is None and route.kind != "refuse" and route.device.type != CPU.type:
        try:
            target.native_device(route.device)
        except ConversionError as error:  # it has others of the kind
            obstacle = str(error)
    if obstacle is not None:
        route = route._replace(kind="refuse", why=obstacle, nbytes=0, copier=None)
    return route


def _wraps(info: TensorInfo, source: Library, target: Library, route: Route) -> bool:
    """Whether a route ends in the target's ``wrap``."""
    if route.kind == "kernel":
        return source is not target or (info.device.host and not info.pending)
    if route.kind == "transfer":
        to_host = route.device.type == CPU.type
        return to_host or (source is not target and _transfers().moves(source, route.device))
    return route.kind == "view" and (source is not target or route.device != info.device)
