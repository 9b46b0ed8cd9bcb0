"""``plan``: a pure function from a tensor's info and a library's record to a :class:`Route`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..dlpack import CPU, Device, DeviceType
from ..layout import c_strides, is_broadcast, is_compact, is_non_negative
from .records import Accepts, Kind, Route, TensorInfo, no_copy_allowed, pending_told


def checked_copy(copy: object) -> bool | None:
    """Return the argument ``copy`` as None, True or False; 0, 1 and NumPy's booleans are accepted.

    Raises
    ------
    ValueError
        For anything else, which would otherwise silently be a copy or a view.
    """
    if copy is None or copy is True or copy is False:
        return copy
    if isinstance(copy, np.bool_) or (isinstance(copy, int) and copy in (0, 1)):
        return bool(copy)
    raise ValueError(f"copy is {copy!r}; expected None, True or False")


def unavailable(info: TensorInfo) -> str | None:
    """Return why an array cannot be converted, whatever the target takes; None if it can be."""
    if info.refused:
        return info.refused
    if not info.data and not info.pending and info.size:  # chunks have an address each
        return "its elements are said to be at address 0: copy it first"
    return None


def _layout_objection(info: TensorInfo, accepts: Accepts) -> str | None:
    """Return why ``accepts`` does not allow the layout as it is, or None."""
    rule = accepts.strides
    if (rule == "any" and accepts.broadcast) or info.c_contiguous:
        return None
    shape, strides = info.shape, info.strides
    if rule == "c":
        return "takes C order only"
    if rule == "compact":
        return None if is_compact(shape, strides) else "takes compact strides only"
    if rule == "non-negative" and not is_non_negative(shape, strides):
        return "takes no negative strides"
    if not accepts.broadcast and is_broadcast(shape, strides):
        return "takes no zero strides"
    return None


def view_objection(info: TensorInfo, accepts: Accepts, alias_readonly: bool = False) -> str | None:
    """Return why a view in the target would be refused, crash or break a promise, or None."""
    if info.pending:
        return pending_told(info.pending)
    if accepts.copies:
        return f"{accepts.library} copies whatever it imports"
    dtype = info.dtype_name
    if dtype in accepts.copied:
        return f"{accepts.library} takes {dtype} by copying it only"
    if info.readonly and not (accepts.readonly or alias_readonly):
        return f"the memory is read-only and {accepts.library} cannot mark it so"
    objection = _layout_objection(info, accepts)
    if objection:
        return f"{accepts.library} {objection}; the layout is {info.layout}"
    wanted = wanted_alignment(info, accepts)
    if wanted > 1 and info.pointer % wanted and info.size:
        return (
            f"{accepts.library} wants data aligned to {wanted} bytes; "
            f"this is aligned to {info.alignment}"
        )
    return None


def wanted_alignment(info: TensorInfo, accepts: Accepts) -> int:
    """Return the number of bytes that the address of a view must be a multiple of."""
    wanted = accepts.alignment
    if info.dtype_name in accepts.aligned or not info.device.host:  # where misaligned is a fault
        return max(wanted, info.itemsize & -info.itemsize)
    return wanted


_ANY = 2**63 - 1  # of a library without a limit


def _from_to(least: int, most: int) -> str:
    return str(most) if least == most else f"{least} to {most}"


def _too_large(info: TensorInfo, accepts: Accepts, copy: bool | None) -> str | None:
    """Return why the shape and strides exceed the target's integers, or None."""
    shape, itemsize = info.shape, info.itemsize

    def largest(strides: tuple[int, ...]) -> int:
        reach = (abs(s) * itemsize for e, s in zip(shape, strides, strict=True) if e > 1)
        return max(*shape, *reach, 0, 0)

    packed = largest(c_strides(shape)) <= accepts.largest
    if packed and (copy or largest(info.strides) <= accepts.largest):
        return None
    bits = accepts.largest.bit_length() + 1
    return (
        f"{accepts.library} keeps extents and strides (bytes) in {bits} bits, too few for shape "
        f"{shape} with strides {tuple(s * itemsize for s in info.strides)}: convert it in parts"
        + (", or with copy=True" if packed else "")
    )


def _missing_dtype(info: TensorInfo, accepts: Accepts) -> str:
    remedy = accepts.remedies.get(info.dtype_name) or accepts.remedies.get("")
    return f"{accepts.library} has no {info.dtype_name}" + (
        f": {remedy}" if remedy else ": ask for another data type, dtype="
    )


def _place(info: TensorInfo, accepts: Accepts, wanted: Device | None) -> tuple[Device | None, str]:
    """Return (the device of the result, why not): None for an impossible device."""
    here = info.device
    if wanted is None:
        if here.type in accepts.devices:
            if here.type == CPU.type and here.id >= accepts.cpus:
                return CPU, f"{here} is host memory"
            return here, ""
        if here.host and CPU.type in accepts.devices:
            return CPU, f"{here} is host memory"
        kinds = accepts.devices
        there = CPU if CPU.type in kinds or not kinds else Device(min(kinds))
        return None, (
            f"the array is on {here}, which {accepts.library} cannot address: pass "
            f"device='{there}' to ask for a copy to that device"
        )
    why = missing_device(accepts, wanted)
    return (None, why) if why else (wanted, "")


def missing_device(accepts: Accepts, wanted: Device) -> str | None:
    """Return why a library has no arrays on a device, or None where it may have them."""
    if wanted.type not in accepts.devices:
        known = ", ".join(sorted(str(Device(kind)) for kind in accepts.devices))
        return f"{accepts.library} has no arrays on {wanted}; it has them on {known}"
    if wanted.type == CPU.type and wanted.id >= accepts.cpus:
        known = f"cpu to cpu:{accepts.cpus - 1}" if accepts.cpus > 1 else "cpu"
        return f"{accepts.library} has no arrays on {wanted}; of CPU devices it has {known}"
    return None


def absent_device(library: str, wanted: Device, count: int) -> str | None:
    """Return why a library that is built for a kind of device cannot use one of them here, or None.

    Parameters
    ----------
    library : str
        Its name, as the message has it.
    wanted : Device
    count : int
        How many of the kind it finds now.
    """
    if wanted.id < count:
        return None
    first = Device(wanted.type)
    if count:
        known = str(first) if count == 1 else f"{first} to {Device(wanted.type, count - 1)}"
        return f"{library} finds no {wanted} here, only {known}"
    takes = _TAKES.get(wanted.type)
    return (
        f"{library} finds no usable {str(first).partition(':')[0]} device here"
        + (f": it takes {takes}" if takes else "")
        + "; without one, arrays stay on the CPU, in a library that computes there"
    )


_TAKES = {
    DeviceType.CUDA: "an NVIDIA GPU and a driver that is new enough for this build (nvidia-smi "
    "tells both; CUDA_VISIBLE_DEVICES may hide GPUs)",
    DeviceType.ROCM: "an AMD GPU and its driver (rocminfo tells both; HIP_VISIBLE_DEVICES may "
    "hide GPUs)",
    DeviceType.ONEAPI: "a SYCL device and its runtime (sycl-ls lists both)",
}


def _may_change(info: TensorInfo, accepts: Accepts) -> str | None:
    """Return why memory is not shared by default with immutable arrays, or None."""
    if not accepts.immutable or not info.size or (info.readonly and not info.legacy):
        return None
    told = ", though not through this array" if info.readonly else ""
    return (
        f"{accepts.library}'s arrays never change, and this memory may still be written{told}: "
        "copy=False asks for the view"
    )


def plan(
    info: TensorInfo,
    accepts: Accepts,
    *,
    device: Device | None = None,
    copy: bool | None = None,
    alias_readonly: bool = False,
    share: bool = False,
    copier: Callable[[], object] = lambda: "strided copy",
    transfer: Callable[[Device], object] = lambda place: "device transfer",
) -> Route:
    """Plan the route of an array to a library.

    Parameters
    ----------
    info : TensorInfo
    accepts : Accepts
        The target's record.
    device : Device, optional
        Where the result shall be; without it no route leaves the device.
    copy : bool, optional
        None: a view where it is safe; False: a view or a refusal; True: always a copy.
    alias_readonly : bool
        Take a view of read-only memory even where the target cannot mark it.
    share : bool
        Memory that may still be written is shared with immutable arrays too: nobody else has it, or
        the standard's ``from_dlpack`` is meant.
    copier : callable, optional
        Gives what copies on the source's device; called where that is the route.
    transfer : callable, optional
        Gives what copies to another device; called where that is the route.

    Returns
    -------
    Route
    """

    def route(
        kind: Kind, why: str, place: Device | None, nbytes: int = 0, by: object = None
    ) -> Route:
        return Route(kind, why, nbytes, info.library, accepts.library, place or info.device, by)

    why = unavailable(info)
    if why:
        return route("refuse", why, None)
    if info.dtype_name not in accepts.dtypes:
        return route("refuse", _missing_dtype(info, accepts), None)
    least, most = accepts.ndim
    if not least <= len(info.shape) <= most:
        return route(
            "refuse",
            f"{accepts.library} has arrays of {_from_to(least, most)} dimensions, this has "
            f"{len(info.shape)}: reshape it first",
            None,
        )
    if accepts.largest < _ANY:
        why = _too_large(info, accepts, copy)
        if why:
            return route("refuse", why, None)
    place, why = _place(info, accepts, device)
    if place is None:
        return route("refuse", why, None)
    here = info.device
    if place != here and not (place.type == CPU.type and here.host):
        if copy is False:
            return route("refuse", no_copy_allowed(f"{here} to {place} is a copy"), place)
        return route("transfer", "asked for by device=", place, info.nbytes, transfer(place))
    objection = None
    if copy is None and not share:
        # First, so that it is the same whatever the memory is aligned to.
        objection = _may_change(info, accepts)
    if objection is None:
        objection = view_objection(info, accepts, alias_readonly)
    if objection is None and not copy:
        return route("view", why or f"{accepts.library} takes it as it is", place)
    if copy is False:
        why = objection or ""
        if info.readonly and view_objection(info, accepts, True) is None:
            told = no_copy_allowed(why, "alias_readonly=True asks for the view all the same")
        else:
            told = no_copy_allowed(why)
        return route("refuse", told, place)
    if info.dtype.subbyte and not info.padded and not info.c_contiguous:
        return route("refuse", "packed sub-byte elements are only copied in C order", place)
    if here.host and place.type != CPU.type:
        place = CPU  # pinned memory is copied to plain memory
    return route("kernel", objection or "copy=True", place, info.nbytes, copier())
