"""``execute``: carry out a :class:`Route`."""

from __future__ import annotations

from ..dlpack import CPU, Device, ManagedTensor
from .library import Library
from .records import ConversionError, Route, TensorInfo
from .registry import library_of_type
from .route import route_between


def execute(x: object, source: Library, target: Library, route: Route, info: TensorInfo) -> object:
    """Make the array that ``route`` promises.

    Raises
    ------
    ConversionError
        If the route is a refusal.
    """
    if route.kind == "view":
        if route.device == info.device and (source is target or isinstance(x, target.forms)):
            return x
        here = info.device
        stream = None if here.type == CPU.type else target.current_stream(here)
        tensor = source.export_described(x, info, stream)
        if tensor.device != route.device:
            tensor = relabelled(tensor, route.device)
        return target.wrap(tensor)
    if route.kind == "refuse":
        raise ConversionError(str(route.why), route)
    fresh = route.copier.copy(x, source, target, info, route.device)
    made_by = library_of_type(type(fresh)) or source  # what it resolved may be a core tensor
    if made_by is target or isinstance(fresh, target.forms):
        return fresh
    if route.kind == "kernel" and not (info.device.host or info.pending):
        # A view, whatever the target says of it: one that copies all would be given copy upon copy.
        view, made = route._replace(kind="view", copier=None), made_by.describe(fresh)
        return execute(fresh, made_by, target, view, made)
    return _onward(fresh, made_by, target, route.device)


def relabelled(tensor: ManagedTensor, device: Device) -> ManagedTensor:
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


def _onward(x: object, source: Library, target: Library, device: Device) -> object:
    """Convert an intermediate array, to which nothing else refers, to the target."""
    route, info = route_between(x, source, target, device=device, share=True)
    return execute(x, source, target, route, info)
