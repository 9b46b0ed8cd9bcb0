"""Routes between two libraries: the plan, limited by what the libraries can do."""

from __future__ import annotations

from ..dlpack import CPU, Device
from .copier import copier_for, no_copy, small_copy
from .library import Library
from .plan import checked_copy, plan
from .records import ConversionError, Route, TensorInfo
from .transfer import moves, no_way, transfer_for


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

    Raises
    ------
    ValueError
        For a ``copy`` that is neither None nor a boolean.
    """
    if copy is not None:
        copy = checked_copy(copy)
    info = source.describe(x)
    if source is target and not copy and (device is None or device == info.device):
        # The array itself is the view: no property of its memory matters.
        return Route("view", "it is one already", 0, source.name, target.name, info.device), info
    route = plan(
        info,
        target.accepts,
        device=device,
        copy=copy,
        alias_readonly=alias_readonly,
        share=share,
        copier=lambda: (
            ((device is None or device == CPU) and small_copy(x, info, source, target))
            or copier_for(info, source, target)
        ),
        transfer=lambda place: transfer_for(info, source, target, place),
    )
    obstacle = None
    if type(target).wrap is Library.wrap and _wraps(info, source, target, route):
        obstacle = target.no_wrap
    elif route.kind == "transfer":
        obstacle = no_way(info, source, target, route.device)
    elif route.kind == "kernel" and route.copier is None:
        obstacle = no_copy(info, source)
    if obstacle is None and route.kind != "refuse" and route.device.type != CPU.type:
        try:
            target.native_device(route.device)
        except ConversionError as error:  # it has others of the kind
            obstacle = str(error)
    if obstacle is not None:
        route = route._replace(kind="refuse", why=obstacle, nbytes=0, copier=None)
    return route, info


def _wraps(info: TensorInfo, source: Library, target: Library, route: Route) -> bool:
    """Whether a route ends in the target's ``wrap``."""
    if route.kind == "kernel":
        return source is not target or (info.device.host and not info.pending)
    if route.kind == "transfer":
        to_host = route.device.type == CPU.type
        return to_host or (source is not target and moves(source, route.device))
    return route.kind == "view" and (source is not target or route.device != info.device)
