"""Views of an Array: the route of ``__dlpack__``, and short-lived views for printing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from ..core.library import exported
from ..core.records import Kind, Route, TensorInfo, no_copy_allowed, of_native, pending_reason
from ..core.registry import library_named
from ..core.table import plan_for
from ..dlpack import CPU, Device, reads_versioned

if TYPE_CHECKING:
    from .array import Array


def export_route(
    info: TensorInfo, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
) -> Route:
    """Return the route of an export with the standard's keywords; TypeError for other types."""
    here = place = info.device
    problem = None
    if dl_device is not None:
        try:
            place = Device.parse(tuple(dl_device) if isinstance(dl_device, list) else dl_device)
        except ValueError as error:
            problem = str(error)

    def route(kind: Kind, why: str) -> Route:
        nbytes = info.nbytes if kind in ("copy", "transfer") else 0
        return Route(kind, why, nbytes, info.library, "dlpack", place)

    if problem or info.refused:
        return route("refuse", problem or of_native(info.refused or ""))
    if place not in (here, CPU):
        why = f"cannot export an array on {here} to dl_device={dl_device!r}, only to its own device"
        why += "" if here == CPU else " and the CPU"
        return route("refuse", f"{why}: arraybridge.convert(..., device=) copies it")
    if place != here and not here.host:
        if copy is False:
            return route("refuse", no_copy_allowed(f"{here} to {place} is a copy"))
        return route("transfer", "asked for by dl_device=")
    legacy = not reads_versioned(max_version)
    if legacy and info.padded:
        why = f"a legacy capsule cannot express that each {info.dtype} takes a byte"
        return route("refuse", f"{why}: pass max_version=(1, 0)")
    unsaid = info.readonly and legacy
    if info.pending:
        why = pending_reason(info.pending)
    elif unsaid:
        why = "the memory is read-only, which a legacy capsule cannot express"
    elif copy:
        why = "copy=True"
    else:
        return route("view", "DLPack takes it as it is")
    if copy is not False:
        return route("copy", why)
    if info.pending:
        return route("refuse", no_copy_allowed(why))
    return route("refuse", no_copy_allowed(why, "pass max_version=(1, 0)"))


def in_place(array: Array, info: TensorInfo) -> Any:
    """Return a short-lived NumPy view of the memory; None if only a copy is possible.

    The memory is not held: a PyTorch storage can still be resized afterwards.
    """
    if isinstance(array.native, numpy.ndarray):
        return array.native
    to = library_named("numpy")
    if plan_for(array._native, array._library, to).kind != "view":
        return None
    return to.wrap(exported(array._library, array._native, info, briefly=True))
