"""Routes between two libraries: the plan, limited by what the libraries can do."""

from __future__ import annotations

from ..dlpack import CPU, Device
from .kernel import MOVE, kernel_for
from .library import Library
from .plan import checked_copy, plan
from .records import ConversionError, Route, TensorInfo


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
    if source is target and not copy:
        # The array itself is the view: no property of its memory matters.
        info = source.describe(x)
        if device is None or device == info.device:
            why = "it is one already"
            return Route("view", why, 0, source.name, target.name, info.device), info
    else:
        info = source.describe(x)
    route = plan(
        info,
        target.accepts,
        device=device,
        copy=copy,
        alias_readonly=alias_readonly,
        share=share,
        copier=lambda: _copier(info, source, target),
    )
    obstacle = None
    if type(target).wrap is Library.wrap and _wraps(info, source, target, route):
        obstacle = target.no_wrap
    elif route.kind == "transfer":
        obstacle = _no_way(info, source, target, route.device)
    elif route.kind == "kernel" and not (info.device.host or info.pending):
        obstacle = None if route.kernel else no_copy(info, source)
    if obstacle is None and route.kind != "refuse" and route.device.type != CPU.type:
        try:
            target.native_device(route.device)
        except ConversionError as error:  # it has others of the kind
            obstacle = str(error)
    if obstacle is not None:
        route = route._replace(kind="refuse", why=obstacle, nbytes=0, kernel=None)
    return route, info


def _wraps(info: TensorInfo, source: Library, target: Library, route: Route) -> bool:
    """Whether a route ends in the target's ``wrap``."""
    if route.kind == "kernel":
        return source is not target or (info.device.host and not info.pending)
    if route.kind == "transfer":
        to_host = route.device.type == CPU.type
        return to_host or (source is not target and moves(source, route.device))
    return route.kind == "view" and (source is not target or route.device != info.device)


def no_copy(info: TensorInfo, source: Library) -> str:
    """Return why nothing can copy outside the host, and what to do."""
    if allocates(source):
        return f"no kernel copies on {info.device}: arraybridge.register_kernel adds one"
    return (
        f"{source.name} has nothing that makes a copy on {info.device}: copy it in the library "
        "that made it, and convert the copy"
    )


def _no_way(info: TensorInfo, source: Library, target: Library, place: Device) -> str | None:
    """Return why an array cannot move from one device to another, or None."""
    if place.type == CPU.type:
        if type(source).to_host is Library.to_host:
            return f"{source.name} arrays on {info.device} cannot be fetched"
    elif source is target or moves(source, place):
        if type(source).to_device is Library.to_device:
            return f"{source.name} arrays on {info.device} cannot be moved"
    elif not info.device.host:
        return f"no direct way from {info.device} to {place}: go through device='cpu' first"
    elif type(target).to_device is Library.to_device:
        return f"arraybridge cannot put {target.name} arrays on {place}"
    return None


def moves(source: Library, place: Device) -> bool:
    """Whether a library can move its own arrays to a device."""
    # TVM-FFI holds any device, and moves none.
    able = type(source).to_device is not Library.to_device
    return able and place.type in source.accepts.devices


def allocates(library: Library) -> bool:
    """Whether a library allocates memory for a kernel outside the host."""
    return type(library).empty_like is not Library.empty_like


def _copier(info: TensorInfo, source: Library, target: Library) -> str | None:
    """Name what would make a copy, for ``explain``; None if nothing does."""
    own = f"{source.name}'s own copy"
    if info.pending:
        return own
    kernel = kernel_for(info.device)
    if not info.device.host:
        if kernel is not None and allocates(source):
            return kernel.name
        return own if source.copies(info) else None
    if copies_itself(target, info):
        return f"{target.name}'s own copy"
    assert kernel is not None  # on the host there is always one
    return MOVE if info.c_contiguous else kernel.name


def copies_itself(target: Library, info: TensorInfo) -> bool:
    """Whether the import of a library copies what an info describes."""
    accepts = target.accepts
    return accepts.copies or info.dtype_name in accepts.copied
