"""``execute``: carry out a :class:`Route`."""

from __future__ import annotations

from ..dlpack import CPU, Device, ManagedTensor
from .kernel import compact_copy, copy_into, kernel_for
from .library import Library
from .records import ConversionError, Route, TensorInfo
from .registry import library_named, library_of_type
from .route import allocates, copies_itself, moves, no_copy, route_between


def execute(x: object, source: Library, target: Library, route: Route, info: TensorInfo) -> object:
    """Make the array that ``route`` promises.

    Raises
    ------
    ConversionError
        If the route is a refusal.
    """
    if route.kind == "view":
        if source is target and route.device == info.device:
            return x
        tensor = source.export_described(x, info, target.current_stream(info.device))
        if tensor.device != route.device:
            tensor = _relabelled(tensor, route.device)
        return target.wrap(tensor)
    if route.kind == "kernel":
        return _copied(x, source, target, route, info)
    if route.kind == "transfer":
        return _transferred(x, source, target, route, info)
    raise ConversionError(str(route.why), route)


def _relabelled(tensor: ManagedTensor, device: Device) -> ManagedTensor:
    """Relabel host memory as another device; leave ``tensor``, which may be the caller's."""
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


def _copied(x: object, source: Library, target: Library, route: Route, info: TensorInfo) -> object:
    if info.pending:
        fresh = resolved(x, source, info)
        return fresh if target is source else _onward(fresh, source, target, route.device)
    if not info.device.host:
        fresh = copied_off_host(x, source, info)
        if fresh is None:
            raise ConversionError(no_copy(info, source), route)
        if source is target:
            return fresh
        view = route._replace(kind="view")
        return execute(fresh, source, target, view, source.describe(fresh))
    if copies_itself(target, info):
        return target.wrap(source.export_described(x, info))
    return copied_on_host(x, source, target, info, route.device)


def resolved(x: object, library: Library, info: TensorInfo) -> object:
    """Copy ``x`` with everything ``pending`` applied.

    Raises
    ------
    ConversionError
        If its library has none.
    """
    fresh = library.resolve(x)
    if fresh is x:
        raise ConversionError(f"{library.name} could not resolve {', '.join(info.pending)}")
    return fresh


def copied_on_host(
    x: object, source: Library, target: Library, info: TensorInfo, device: Device
) -> object:
    """Copy to C-contiguous host memory by the kernel, and wrap it as an array of the target."""
    block = compact_copy(source.lend(x, info))
    if device.type == CPU.type:  # the target may tell several apart
        block.device = device
    return target.wrap(block, move=True)


def copied_off_host(x: object, library: Library, info: TensorInfo) -> object | None:
    """Copy on the same device, C-contiguous, by its kernel or the library; None if neither can."""
    kernel = kernel_for(info.device)
    if kernel is None or not allocates(library):
        return library.copy(x)
    block = library.empty_like(x)
    stream = library.current_stream(info.device)
    copy_into(library.export(block, stream), library.export(x, stream), stream)
    return block


def _transferred(
    x: object, source: Library, target: Library, route: Route, info: TensorInfo
) -> object:
    """Copy across devices: within one library that supports both, or else through the host."""
    place = route.device
    if place.type == CPU.type:
        return _onward(source.to_host(x), None, target, place)
    if info.pending:
        x = source.resolve(x)
    if source is target or moves(source, place):
        moved = source.to_device(x, place)
        return moved if source is target else _onward(moved, None, target)
    numpy = library_named("numpy")
    host = x if source is numpy else _onward(x, source, numpy)
    return target.to_device(host, place)


def _onward(
    x: object, source: Library | None, target: Library, device: Device | None = None
) -> object:
    """Convert an intermediate array, to which nothing else refers, to the target."""
    source = source or library_of_type(type(x))  # what a library resolved may be a core tensor
    assert source is not None, f"{type(x).__name__} came from a transfer, but is not a known array"
    route, info = route_between(x, source, target, device=device, share=True)
    return execute(x, source, target, route, info)
