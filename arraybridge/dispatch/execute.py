"""``execute``: what a :class:`Route` says is done."""

from __future__ import annotations

from ..dlpack import CPU, Device, ManagedTensor
from .kernel import MOVE, compact_copy, copy_into, kernel_for
from .library import Library, library_named, library_of_type
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
    """The route of ``x`` from one library to another, and what ``x`` is.

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


def _wraps(info, source, target, route):
    """Whether a route ends in the target's wrap()."""
    if route.kind == "kernel":
        return source is not target or (info.device.host and not info.pending)
    if route.kind == "transfer":
        to_host = route.device.type == CPU.type
        return to_host or (source is not target and _moves(source, route.device))
    return route.kind == "view" and (source is not target or route.device != info.device)


def no_copy(info: TensorInfo, source: Library) -> str:
    """Why nothing copies off the host, and what to do."""
    if _allocates(source):
        return f"no kernel copies on {info.device}: arraybridge.register_kernel adds one"
    return (
        f"{source.name} has nothing that makes a copy on {info.device}: copy it in the library "
        "that made it, and convert the copy"
    )


def _no_way(info, source, target, place):
    """Why nothing goes from one device to another, or None."""
    if place.type == CPU.type:
        if type(source).to_host is Library.to_host:
            return f"{source.name} arrays on {info.device} cannot be fetched"
    elif source is target or _moves(source, place):
        if type(source).to_device is Library.to_device:
            return f"{source.name} arrays on {info.device} cannot be moved"
    elif not info.device.host:
        return f"no direct way from {info.device} to {place}: go through device='cpu' first"
    elif type(target).to_device is Library.to_device:
        return f"arraybridge cannot put {target.name} arrays on {place}"
    return None


def _moves(source, place):
    # TVM-FFI holds any device, and moves none.
    moves = type(source).to_device is not Library.to_device
    return moves and place.type in source.accepts.devices


def _allocates(library):
    return type(library).empty_like is not Library.empty_like


def copied_off_host(x: object, library: Library, info: TensorInfo) -> object | None:
    """A C-contiguous copy on the same device, by its kernel or by the library; None for neither."""
    kernel = kernel_for(info.device)
    if kernel is None or not _allocates(library):
        return library.copy(x)
    block = library.empty_like(x)
    stream = library.current_stream(info.device)
    copy_into(library.export(block, stream), library.export(x, stream), stream)
    return block


def execute(x: object, source: Library, target: Library, route: Route, info: TensorInfo) -> object:
    """The array that ``route`` promises.

    Raises
    ------
    ConversionError
        If the route is a refusal.
    """
    kind = route.kind
    if kind == "view":
        if source is target and route.device == info.device:
            return x
        tensor = source.export_described(x, info, target.current_stream(info.device))
        if tensor.device != route.device:
            tensor = _relabelled(tensor, route.device)
        return target.wrap(tensor)
    if kind == "kernel":
        return _copied(x, source, target, route, info)
    if kind == "transfer":
        return _transferred(x, source, target, route, info)
    raise ConversionError(str(route.why), route)


def _relabelled(tensor, device):
    """Host memory under another label; ``tensor`` may be the caller's, and stays as it is."""
    return ManagedTensor.adopt(
        tensor.pointer,
        tensor.shape,
        tensor.dtype,
        owner=tensor.owner,
        device=device,
        strides=tensor.strides,
        readonly=tensor.readonly,
        copied=tensor.copied,
        padded=tensor.padded,
    )


def _copier(info: TensorInfo, source: Library, target: Library) -> str | None:
    """What would make a copy, as ``explain`` prints it; None where nothing does."""
    own = f"{source.name}'s own copy"
    if info.pending:
        return own
    kernel = kernel_for(info.device)
    if not info.device.host:
        if kernel is not None and _allocates(source):
            return kernel.name
        return own if source.copies(info) else None
    if _copies_itself(target, info):
        return f"{target.name}'s own copy"
    assert kernel is not None  # on the host there is always one
    return MOVE if info.c_contiguous else kernel.name


def _copies_itself(target, info):
    """Whether the import of a library copies what an info describes."""
    accepts = target.accepts
    return accepts.copies or info.dtype_name in accepts.copied


def _copied(x, source, target, route, info):
    if info.pending:
        resolved = source.resolve(x)
        if resolved is x:
            raise ConversionError(f"{source.name} could not resolve {', '.join(info.pending)}")
        x, info = resolved, source.describe(resolved)
        if target is source:
            return x
        rest, info = route_between(x, source, target, device=route.device, share=True)
        return execute(x, source, target, rest, info)
    if not info.device.host:
        own = copied_off_host(x, source, info)
        if own is None:
            raise ConversionError(no_copy(info, source), route)
        return (
            own
            if source is target
            else execute(own, source, target, route._replace(kind="view"), source.describe(own))
        )
    if _copies_itself(target, info):
        return target.wrap(source.export_described(x, info))
    block = compact_copy(source.lend(x, info))
    if route.device.type == CPU.type:  # the target may tell several apart
        block.device = route.device
    return target.wrap(block, move=True)


def _transferred(x, source, target, route, info):
    """Across devices: within one library where one holds both, else by way of the host."""
    place = route.device
    if place.type == CPU.type:
        return _arrive(source.to_host(x), target, device=place)
    if info.pending:
        x = source.resolve(x)
    if source is target or _moves(source, place):
        moved = source.to_device(x, place)
        return moved if source is target else _arrive(moved, target)
    numpy = library_named("numpy")
    host = x if source is numpy else _arrive(x, numpy, source)
    return target.to_device(host, place)


def _arrive(x, target, source=None, device=None):
    source = source or library_of_type(type(x))  # what a library resolved may be a core tensor
    assert source is not None, f"{type(x).__name__} came from a transfer, and is no known array"
    route, info = route_between(x, source, target, device=device, share=True)
    return execute(x, source, target, route, info)
