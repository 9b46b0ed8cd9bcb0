"""The planner: makes a :class:`Route` from a description, two libraries and a request.

It decides everything about a conversion: read-only memory, layouts, alignment, data types, casts,
orders, devices, sharing, and the copier. The planner is pure: it reads only the description, never
the array. Modules that copy are imported for the first copy.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from ..dlpack import CPU, DataType, Device, DeviceType
from ..layout import c_strides
from .library import Library, edge_between, itself, own_copy, transfers
from .records import (
    Accepts,
    ConversionError,
    Kind,
    Route,
    TensorInfo,
    amended,
    dense_like,
    layout_objection,
    no_copy_allowed,
    pending_reason,
)
from .request import Cast, Request, has_order, layout_change, order_axes


def plan(
    info: TensorInfo,
    source: Library,
    target: Library,
    request: Request,
    *,
    edges: bool = True,
    same: bool | None = None,
) -> Route:
    """Plan the conversion of an array.

    `edges`: whether the libraries' own functions may be used (not for subclasses). `same`: whether
    the array already belongs to the target. ValueError for an order that does not fit the number of
    axes.
    """
    same = source is target if same is None else same
    found = _Planning(info, source, target, request, edges, same).plan()
    found.info = info
    return found


def unavailable(info: TensorInfo) -> str | None:
    """Return why no target can take an array, or None."""
    if info.refused:
        return info.refused
    if not info.data and not info.pending and not info.empty:  # each chunk has its own address
        return "its data pointer is null: copy it first"
    return None


class _Planning(NamedTuple):
    """The planning of one request; methods return routes or reasons."""

    s: TensorInfo
    source: Library
    target: Library
    request: Request
    edges: bool
    same: bool

    def _route(
        self,
        kind: Kind,
        why: str,
        place: Device | None = None,
        *,
        copier: Any = None,
        kernel: str | None = None,
        dtype: DataType | None = None,
        axes: tuple[int, ...] | None = None,
        edge: Callable[[Any], Any] | None = None,
    ) -> Route:
        """Make a route; a copy has a dtype and an order of axes, unless the libraries decide."""
        s, target = self.s, self.target
        place, nbytes = place or s.device, 0
        if kind in ("copy", "transfer"):
            nbytes = s.nbytes if dtype is None else dtype.nbytes(s.size, dtype.subbyte)
        if copier is not None:
            kernel = kernel or str(copier)
        route = Route(kind, why, nbytes, self.source.name, target.name, place, kernel)
        if copier is not None:
            route.copier = copier
        if edge is not None:
            route.edge = edge
        if kind == "copy" and axes is not None and _COLUMNS.isdisjoint(s.pending):
            route.laid = dtype or s.dtype, axes
        return route

    def refuse(self, why: str, place: Device | None = None) -> Route:
        return self._route("refuse", why, place)

    def plan(self) -> Route:
        cast, s = self.request.cast, self.s
        if self.request.contiguous:
            return self.contiguous()
        if cast is None:
            return self.as_it_is(self.request.copy)
        wanted = cast.wanted(s.dtype)
        axes = None if cast.order is None else order_axes(cast.order, s.ndim)
        if wanted == s.dtype:
            found = self.as_it_is(self.request.copy)
            if found.kind == "refuse" or axes is None:
                return found
            # Arrow's packed bits, on one axis, have no address in bytes.
            known = s.data or s.empty or "bitpacked" in s.pending
            if found.kind == "view" and has_order(s, axes) and known:
                return found
            if self.request.copy is not False and axes == tuple(range(s.ndim)):
                if found.kind == "view":
                    found = self.as_it_is(True)
                if found.kind == "copy" and not (self.request.copy or has_order(s, axes)):
                    found = amended(found, why=layout_change(s, cast))
                if found.kind != "refuse" and (self.makes_c_order(found) or has_order(s, axes)):
                    return found
            return self.cast(cast, wanted, axes, found.why)
        return self.cast(cast, wanted, axes)

    # ------------------------------------------------------------ without a cast

    def as_it_is(self, copy: bool | None) -> Route:
        """Plan a view or a copy without a cast."""
        s, request = self.s, self.request
        if self.same and not copy and (request.device is None or request.device == s.device):
            return self._route("view", "nothing to convert", edge=itself)
        if self.same and copy and s.tracked and request.device in (None, s.device):
            # The library's own copy, which continues the gradient, as a cast does.
            return self.cast(Cast(None, "same_kind", None), s.dtype, None, "copy=True")
        found = self.checked(self.to_target(copy))
        if found.kind == "view" and self.edges and s.device == found.device == CPU:
            found.edge = edge_between(self.source, self.target, s)
        return found

    def to_target(self, copy: bool | None) -> Route:
        """Plan by what the target accepts; `checked` then checks what the libraries can do."""
        s, request = self.s, self.request
        why = unavailable(s)
        if why:
            return self.refuse(why)
        accepts = self.target.accepts.of(s)
        if s.dtype_name not in accepts.dtypes:
            return self.refuse(_missing_dtype(s.dtype_name, accepts))
        least, most = accepts.ndim
        if not least <= s.ndim <= most:
            known = most if least == most else f"{least} to {most}"
            return self.refuse(
                f"{accepts.library} supports {known} dimensions, this array has {s.ndim}: reshape "
                "it first"
            )
        if accepts.largest < UNLIMITED:
            why = _too_large(s, accepts, copy)
            if why:
                return self.refuse(why)
        # Arrays on CUDA devices are fetched without their library, too.
        fetched = transfers(self.source) or s.device.type == DeviceType.CUDA
        place, note = _place(s.device, accepts, request.device, fetched)
        if place is None:
            return self.refuse(note)
        here = s.device
        if place != here and not (place.type == CPU.type and here.host):
            if copy is False:
                return self.refuse(no_copy_allowed(f"{here} to {place} is a copy"), place)
            copier = _transfers().transfer_for(s, self.source, self.target, place)
            if isinstance(copier, str):
                return self.refuse(copier, place)
            return self._route("transfer", "asked for by device=", place, copier=copier)
        objection = view_objection(s, accepts, request.alias_readonly)
        if objection is None and copy is None and not request.share:
            # Before the alignment, on which the result must not depend.
            objection = self.may_change(accepts)
        objection = objection or misalignment(s, accepts)
        if objection is None and not copy:
            return self._route("view", note or f"{accepts.library} takes it as it is", place)
        if copy is False:
            assert objection is not None
            remedy: tuple[str, ...] = ()
            if s.readonly and not (view_objection(s, accepts, True) or misalignment(s, accepts)):
                remedy = ("alias_readonly=True asks for the view all the same",)
            return self.refuse(no_copy_allowed(objection, *remedy), place)
        if s.dtype.subbyte and not s.padded and not s.c_contiguous:
            return self.refuse("packed sub-byte elements can only be copied in C order", place)
        if here.host and place.type != CPU.type:
            place = CPU  # pinned memory is copied to plain memory
        return self.copied(objection or "copy=True", place)

    def may_change(self, accepts: Accepts) -> str | None:
        """Return why memory is by default not shared with immutable arrays, or None."""
        s = self.s
        if not accepts.immutable or s.empty or (s.readonly and not s.legacy):
            return None
        but = ", though not through this array" if s.readonly else ""
        wanted = wanted_alignment(s, accepts)
        aligned = f", of memory aligned to {wanted} bytes" if wanted > 1 else ""
        return (
            f"{accepts.library}'s arrays never change, and this memory may still be written{but}: "
            f"convert it with copy=False for the view{aligned}"
        )

    def copied(self, why: str, place: Device) -> Route:
        from .copiers import LibraryCopy, copier_for, copies_itself, host_copy

        s, source, target = self.s, self.source, self.target
        device = self.request.device
        edge = kernel = None
        imports = source is not target and copies_itself(target, s)
        if self.edges and s.device == CPU and device in (None, CPU) and not imports:
            edge, kernel = host_copy(s, source, target)
        copier = copier_for(s, source, target, place)
        axes = None if isinstance(copier, LibraryCopy) else tuple(range(s.ndim))
        return self._route("copy", why, place, copier=copier, edge=edge, kernel=kernel, axes=axes)

    def makes_c_order(self, found: Route) -> bool:
        """Return whether a route makes a copy in C order from any layout."""
        if found.kind == "transfer":
            return not _transfers().keeps_layout(found.copier)
        if found.kind != "copy" or not _COLUMNS.isdisjoint(self.s.pending):
            return False  # a copy of a frame keeps whole columns
        from . import copiers

        return not copiers.copies_itself(self.target, self.s)  # an import may keep the layout

    def checked(self, found: Route) -> Route:
        """Refuse a route that the two libraries have no functions for."""
        s, source, target, obstacle = self.s, self.source, self.target, None
        place = found.device
        if type(target).wrap is Library.wrap and self.wraps(found):
            obstacle = f"library {target.name!r} has no wrap(): it cannot be a target"
        elif found.kind == "copy" and found.copier is None:
            from . import copiers

            obstacle = copiers.no_copy(s, source)
        if obstacle is None and found.kind != "refuse" and place.type != CPU.type:
            try:
                target.devices.native_device(place)
            except ConversionError as error:  # it has other devices of that kind
                obstacle = str(error)
        return found if obstacle is None else self.refuse(obstacle, place)

    def wraps(self, found: Route) -> bool:
        """Return whether a route ends in the target's ``wrap``."""
        s, source, target = self.s, self.source, self.target
        if found.kind == "copy":
            return source is not target or (s.device.host and not s.pending)
        if found.kind == "transfer":
            to_host = found.device.type == CPU.type
            return to_host or (source is not target and _transfers().moves(source, found.device))
        return found.kind == "view" and (source is not target or found.device != s.device)

    # ------------------------------------------------------------ one library, C order

    def contiguous(self) -> Route:
        """Plan `x` itself, or a copy in C order by its device's kernel."""
        s, source = self.s, self.source
        if source.accepts.one_layout or (s.c_contiguous and _OF_THE_DTYPE.issuperset(s.pending)):
            return self._route("view", "it already is contiguous", edge=itself)
        from . import copiers, kernel

        why = pending_reason(s.pending) or f"the layout is {s.layout}"
        if s.pending or s.refused:
            return self._route(
                "copy", why, copier=copiers.LibraryCopy(source, source, source, as_is=True)
            )
        edge = name = None
        if self.edges and s.device == CPU:
            edge, name = copiers.host_copy(s, source, source)
        elif self.edges and kernel.own_copies_serve():
            own = own_copy(source, s)
            edge = None if own is None else own.function
        # On the host never by the library's import, which may keep the layout.
        copier_of: Any = copiers.on_host if s.device.host else copiers.copier_for
        copier = copier_of(s, source, source)
        if copier is None:
            return self.refuse(copiers.no_copy(s, source))
        axes = tuple(range(s.ndim))
        return self._route("copy", why, copier=copier, edge=edge, kernel=name, axes=axes)

    # ------------------------------------------------------------ casts and orders

    def cast(
        self, cast: Cast, wanted: DataType, axes: tuple[int, ...] | None, why_copied: str = ""
    ) -> Route:
        """Plan a copy to another data type or order, usually a view of the cast's result.

        `why_copied`: why there is no view, if the array has the data type and the order.
        """
        s, source, target, request = self.s, self.source, self.target, self.request
        given = s.dtype
        layout = axes or tuple(range(s.ndim))
        why = unavailable(s)
        from .cast import CastCopy, can_cast, caster_of

        # Without memory, as traced, an array cannot be moved, nor its values be compared.
        fixed = request.device in (None, s.device) and cast.casting != "same_value"
        if why and s.tracked and source is target and (s.data or fixed):
            if wanted.name not in target.accepts.dtypes:
                why = _missing_dtype(wanted.name, target.accepts)
            elif can_cast(source, s, wanted, layout):
                why = None
        if why:
            return self.refuse(why)
        from .cast_rules import allowed

        if not allowed(given, wanted, cast.casting):
            return self.refuse(
                f"casting={cast.casting!r} does not allow {given} to {wanted}: pass "
                "casting='unsafe', or 'same_value', which raises where a value would change"
            )
        parts = [f"{given} to {wanted}, for dtype="] if given != wanted else []
        if axes is not None and not has_order(s, axes):
            parts.append(layout_change(s, cast))
        change = " and ".join(parts)
        if request.copy is False:
            return self.refuse(no_copy_allowed(f"{change}, requires a copy"))
        caster = caster_of(s, source, target, wanted, layout)
        if caster is None:
            what = f"casts {source.name}'s {given} to {wanted}"
            if given == wanted:
                what = f"copies {source.name}'s arrays to order={cast.order!r}"
            return self.refuse(
                f"no library {what} on {s.device}: do it in the library that made the array"
            )
        made = dense_like(s, wanted, layout)
        onward = Request(request.device, None, False, None, True)
        found = plan(made, caster, target, onward, edges=self.edges)
        if found.kind == "refuse":
            return self.refuse(found.why, found.device)
        in_order = axes is None or axes == tuple(range(s.ndim))
        if not in_order and found.kind != "view":
            return self.refuse(
                f"order={cast.order!r} requires a view in {target.name}, but {found.why}"
            )
        moves = found.kind == "transfer"
        then = None if found.kind == "view" else found
        copier = CastCopy(
            caster, source, target, found.device, wanted, cast.casting, layout, then, s
        )
        reasons = change or why_copied, found.why if moves else ""
        reason = " and ".join(dict.fromkeys(filter(None, reasons)))
        edge = None
        if self.edges and then is None and s.device == CPU:
            edge = copier.edge(found.edge)
        return self._route(
            "transfer" if moves else "copy", reason, found.device, copier=copier, edge=edge,
            dtype=wanted, axes=layout,
        )  # fmt: skip


_OF_THE_DTYPE = frozenset({"byteorder", "packed"})  # the pending kinds that contiguity allows
_COLUMNS = frozenset({"columns", "kinds"})  # of frames


def _transfers() -> Any:
    """Import what moves arrays between devices, which views do not need."""
    from . import transfer

    return transfer


def view_objection(s: TensorInfo, accepts: Accepts, alias_readonly: bool = False) -> str | None:
    """Return why a view would be refused, crash or break a promise, whatever its address."""
    if s.pending:
        return pending_reason(s.pending)
    if accepts.copies:
        return f"{accepts.library} copies whatever it imports"
    dtype = s.dtype_name
    if dtype in accepts.copied:
        return f"{accepts.library} takes {dtype} by copying it only"
    if s.readonly and not (accepts.readonly or alias_readonly):
        return f"the memory is read-only and {accepts.library} cannot mark it so"
    objection = layout_objection(s, accepts)
    return objection and f"{accepts.library} {objection}; the layout is {s.layout}"


def misalignment(s: TensorInfo, accepts: Accepts) -> str | None:
    """Return why the target would refuse the address of a view, or None."""
    wanted = wanted_alignment(s, accepts)
    if wanted > 1 and not (s.aligned_to(wanted) or s.empty):
        return (
            f"{accepts.library} wants data aligned to {wanted} bytes; "
            f"this is aligned to {s.alignment}"
        )
    return None


def wanted_alignment(s: TensorInfo, accepts: Accepts) -> int:
    """Return the number of bytes that the address of a view must be a multiple of."""
    wanted = accepts.alignment
    if s.dtype_name in accepts.aligned or not s.device.host:  # where misalignment is a fault
        itemsize = s.dtype.itemsize
        return max(wanted, itemsize & -itemsize)
    return wanted


UNLIMITED = 2**63 - 1  # `Accepts.largest` without a limit


def _too_large(s: TensorInfo, accepts: Accepts, copy: bool | None) -> str | None:
    """Return why the shape and strides exceed the target's integers, or None."""
    shape, itemsize = s.shape, s.dtype.itemsize

    def largest(strides: tuple[int, ...]) -> int:
        reach = (abs(k) * itemsize for e, k in zip(shape, strides, strict=True) if e > 1)
        return max(*shape, *reach, 0, 0)

    packed = largest(c_strides(shape)) <= accepts.largest
    if packed and (copy or largest(s.strides) <= accepts.largest):
        return None
    bits = accepts.largest.bit_length() + 1
    return (
        f"{accepts.library} stores extents and strides (bytes) in {bits} bits, too few for shape "
        f"{shape} with strides {tuple(k * itemsize for k in s.strides)}: convert it in parts"
        + (", or with copy=True" if packed else "")
    )


def _missing_dtype(name: str, accepts: Accepts) -> str:
    remedy = accepts.remedies.get(name) or accepts.remedies.get("")
    if not accepts.dtypes and remedy:  # it is not for the data type
        return f"{accepts.library} {remedy}"
    return f"{accepts.library} has no {name}" + (
        f": {remedy}" if remedy else ": pass another data type by dtype="
    )


def _place(
    here: Device, accepts: Accepts, wanted: Device | None, fetched: bool
) -> tuple[Device | None, str]:
    """Return the result's device and a note, or None and why the device is impossible.

    `fetched`: whether arrays can be copied from here to the host.
    """
    if wanted is None:
        if here.type in accepts.devices:
            if here.type == CPU.type and here.id >= accepts.cpus:
                return CPU, f"{here} is host memory"
            return here, ""
        if here.host and CPU.type in accepts.devices:
            return CPU, f"{here} is host memory"
        kinds = accepts.devices
        there = CPU if CPU.type in kinds or not kinds else Device(min(kinds))
        remedy = f"pass device='{there}' to ask for a copy to that device"
        if not (fetched or here.host):
            remedy = "copy it to the CPU with the library that made it"
        return None, f"the array is on {here}, which {accepts.library} cannot address: {remedy}"
    why = missing_device(accepts, wanted)
    return (None, why) if why else (wanted, "")


def missing_device(accepts: Accepts, wanted: Device) -> str | None:
    """Return why a library has no arrays on a device, or None if it may have them."""
    if wanted.type not in accepts.devices:
        known = ", ".join(sorted(str(Device(kind)) for kind in accepts.devices))
    elif wanted.type == CPU.type and wanted.id >= accepts.cpus:
        known = f"cpu to cpu:{accepts.cpus - 1}" if accepts.cpus > 1 else "cpu"
    else:
        return None
    return f"{accepts.library} has no arrays on {wanted}; it has them on {known}"


def check_present(library: str, wanted: Device, count: int) -> None:
    """Raise ConversionError if a library finds only `count` devices of a kind, not the wanted."""
    if wanted.id < count:
        return
    first = Device(wanted.type)
    if count:
        known = str(first) if count == 1 else f"{first} to {Device(wanted.type, count - 1)}"
        raise ConversionError(f"{library} finds no {wanted} here, only {known}")
    raise ConversionError(
        f"{library} finds no usable {str(first).partition(':')[0]} device here: it needs one and "
        "a driver for it; without one, keep the arrays on the CPU, in a library that computes there"
    )
