"""``execute``: what a :class:`Route` says is done."""

from __future__ import annotations

from ..dlpack import Device, ManagedTensor
from .kernel import compact_copy, kernel_for
from .library import Library, library_named, library_of_type
from .plan import checked_copy, plan
from .records import ConversionError, Route, TensorInfo

_WRAPPED = ("view", "kernel")  # routes that end in the target's wrap()


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
        kernel=_copier(info, source, target),
    )
    if type(target).wrap is Library.wrap and source is not target and route.kind in _WRAPPED:
        route = route._replace(kind="refuse", why=target.no_wrap, nbytes=0, kernel=None)
    return route, info


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


def _copier(info: TensorInfo, source: Library, target: Library) -> str:
    """What would make a copy, as ``explain`` prints it."""
    if info.pending:
        return f"{source.name}'s own copy"
    if target.accepts.copies or info.dtype_name in target.accepts.copied:
        return f"{target.name}'s own copy"
    kernel = kernel_for(info.device)
    return kernel.name if kernel else f"{source.name}'s own copy"


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
        own = source.copy(x)
        if own is None:
            raise ConversionError(
                f"no kernel for {info.device}: arraybridge.register_kernel adds one, or copy it in "
                f"{source.name} first",
                route,
            )
        return (
            own
            if source is target
            else execute(own, source, target, route._replace(kind="view"), source.describe(own))
        )
    if target.accepts.copies or info.dtype_name in target.accepts.copied:
        return target.wrap(source.export_described(x, info))
    block = compact_copy(source.export_described(x, info))
    block.device = route.device
    return target.wrap(block, move=True)


def _transferred(x, source, target, route, info):
    """Across devices: within one library where one holds both, else by way of the host."""
    place = route.device
    if place.host:
        return _arrive(source.to_host(x), target, device=place)
    if info.pending:
        x = source.resolve(x)
    moves = type(source).to_device is not Library.to_device  # TVM-FFI holds any device, moves none
    if source is target or (moves and place.type in source.accepts.devices):
        moved = source.to_device(x, place)
        return moved if source is target else _arrive(moved, target)
    if not info.device.host:
        raise ConversionError(
            f"no direct way from {info.device} to {place}: go through device='cpu' first", route
        )
    numpy = library_named("numpy")
    host = x if source is numpy else _arrive(x, numpy, source)
    return target.to_device(host, place)


def _arrive(x, target, source=None, device=None):
    source = source or library_of_type(type(x))  # what a library resolved may be a core tensor
    assert source is not None, f"{type(x).__name__} came from a transfer, and is no known array"
    route, info = route_between(x, source, target, device=device, share=True)
    return execute(x, source, target, route, info)
