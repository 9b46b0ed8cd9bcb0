"""The table of conversions: array type -> request -> signature -> conversion.

Every conversion takes one path: look up the entry of the type and the request, compute the array's
signature, look up the conversion. A signature that is new to an entry is planned once;
:func:`arraybridge.explain` uses the same entries. The table is part of `registry.RECORDS`, and
`registry.forget` clears it.

Audits observe routes. While there are observers no entry has a fast path, so that every conversion
is planned and observers are notified. Code that adds or removes one calls `registry.forget`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import dlpack
from ..dlpack import CPU, Device
from ..native.lookup import run_of, view_of, with_modes
from .library import Library
from .planner import Plan, plan
from .records import Accepts, ConversionError, Route, TensorInfo, first_line
from .registry import RECORDS, library_of_type
from .request import Request
from .signature import USUAL_ALIGNMENT, Finer, exact_key, of_exact_key

if TYPE_CHECKING:
    from ..dlpack import ManagedTensor

_PLAIN = Request()
MOST = 256  # keys of an entry, and entries of a type


class Event(NamedTuple):
    """A route that is about to be taken."""

    route: Route
    info: TensorInfo  # the array's
    call: str = ""  # the function called; "" for the one by which the program called arraybridge


#: Each is called with an `Event`, and may raise an exception to refuse the route.
OBSERVERS: list[Callable[[Event], object]] = []


def notify(route: Route, info: TensorInfo, call: str = "") -> None:
    """Notify all observers of a route that is about to be taken, unless it is a refusal."""
    if route.kind != "refuse":
        if route.kind == "view" and info.copied:
            why = "the producer exports a copy"
            route = route._replace(kind="kernel", why=why, nbytes=info.nbytes)
        event = Event(route, info, call)
        for observe in [*OBSERVERS]:
            observe(event)


def notify_copy(
    why: str, info: TensorInfo, target: str = "", by: object = None, call: str = ""
) -> None:
    """Notify all observers of a copy on an array's device that is no conversion."""
    name = info.library
    notify(Route("kernel", why, info.nbytes, name, target or name, info.device, by), info, call)


def notify_view(why: str, info: TensorInfo, call: str = "") -> None:
    """Notify all observers that an array is taken as it is."""
    name = info.library
    notify(Route("view", why, 0, name, name, info.device), info, call)


def _one_key(x: Any) -> None:
    """Return the key of arrays for which only the type matters."""


class Entry:
    """The conversions of one array type by one request.

    `run` converts an array. `view` returns the view that an edge makes, or None.
    """

    __slots__ = (
        "_accepts",
        "_convert",
        "_edges",
        "_plans",
        "_same",
        "_signature",
        "_varies",
        "request",
        "run",
        "runs",
        "sign",
        "source",
        "target",
        "view",
        "views",
    )

    def __init__(self, kind: type, source: Library, target: Library, request: Request) -> None:
        self.source, self.target, self.request = source, target, request
        self._edges = source.has_edges(kind)
        self._same = source is target or issubclass(kind, target.forms)
        self._varies = not isinstance(getattr(type(target), "accepts", None), Accepts)
        self._accepts: dict[int, Accepts] = {}
        self._plans: dict[Hashable, tuple[Plan, object]] = {}
        self._signature = source.signature if self._edges else None
        self._convert = self.convert  # one object, which `run` recognises
        self.views: dict[Hashable, Callable[[Any], Any]] = {}
        self.sign: Callable[[Any], Hashable] = _one_key
        self.runs: dict[Hashable, Callable[[Any], Any]] = {None: self._convert}
        if self._signature is not None and not OBSERVERS:  # `execute` notifies them
            self.sign = self._signature
            if self._varies or target.modes is not None:
                self.sign = self._with_accepts
                if target.modes is not None and not self._varies:
                    self.sign = with_modes(self._signature, target.modes)
        final = ConversionError, MemoryError  # trying again would not help
        self.run = run_of(self.sign, self.runs, self.new, self._convert, final)
        self.view = view_of(self.sign, self.runs, self.views, self.new)

    def _with_accepts(self, x: Any) -> Hashable:
        """Return a key with all else that decides: modes, and what the target accepts now."""
        target, signature = self.target, self._signature
        assert signature is not None
        modes = None if target.modes is None else target.modes()
        accepts = target.accepts
        number = id(accepts)
        if self._accepts.get(number) is not accepts:  # kept alive, so that its id is not reused
            if len(self._accepts) >= MOST:
                self._accepts.clear()
                self.runs.clear()
                self.views.clear()
            self._accepts[number] = accepts
        coarse, pointer, aligned = signature(x), self.source.pointer, False
        if accepts.alignment > USUAL_ALIGNMENT and pointer is not None and coarse is not None:
            aligned = not pointer(x) % accepts.alignment
        return coarse, modes, number, aligned

    def _plan(self, s: TensorInfo, edges: bool = True) -> Plan:
        return plan(
            s, self.source, self.target, self.request, edges=self._edges and edges, same=self._same
        )

    def new(self, key: Any) -> Callable[[Any], Any]:
        """Return the conversion of arrays with a new key, and remember it."""
        run: Callable[[Any], Any] = self._convert
        alone = self.sign is self._signature
        coarse, modes = (key, None) if alone or key is None else key[:2]
        if coarse is not None:  # else the exact signature is needed
            try:
                s = self.source.decode(coarse)
                if not alone and key[-1] is True:
                    s = s.aligned(self.target.accepts.alignment)
                found = self._plan(s, not modes)
            except Finer:
                pass
            else:
                run = found.edge or run
                if found.kind == "view" and found.edge is not None:
                    self.views[key] = found.edge
        if len(self.runs) >= MOST:
            self.runs.clear()
            self.views.clear()
        self.runs[key] = run
        return run

    def copies(self, x: Any) -> bool:
        """Whether an array's coarse signature shows that an edge copies it, so nothing is refused.

        Otherwise it is a view, or `planned` decides.
        """
        key = self.sign(x)
        run = self.runs.get(key) or self.new(key)
        return run is not self._convert and key not in self.views

    def convert(self, x: Any) -> Any:
        """Convert an array by its exact signature."""
        alias = self.source.alias(x)
        found, info = self.planned(alias)
        result = execute(alias, found, info)
        return x if result is alias else result

    def planned(self, x: Any) -> tuple[Plan, TensorInfo]:
        """Return an array's plan and description."""
        source, accepts = self.source, self.target.accepts
        info = source.describe(x)
        if (
            accepts.immutable
            and info.readonly
            and not (self.request.share or info.legacy)
            and source.may_change(x)
        ):
            info = info._replace(legacy=True)
        # The libraries' own functions are reliable for arrays with a coarse signature.
        usual = self._signature is None or self._signature(x) is not None
        modes = self.target.modes is not None and self.target.modes()
        key = usual, modes, id(accepts), exact_key(info, max(64, accepts.alignment))
        known = self._plans.get(key)
        if known is not None and known[1] is accepts:
            return known[0], info
        found = self._plan(of_exact_key(info.library, key[3]), usual and not modes)
        # Routes that depend on a driver or a device are planned each time.
        if info.device.host and (found.device is None or found.device.type == CPU.type):
            if len(self._plans) >= MOST:
                self._plans.clear()
            self._plans[key] = found, accepts
        return found, info


def entry_of(kind: type, source: Library, target: Library, request: Request) -> Entry:
    """Return the entry of an array type of `source` and a request."""
    entries = RECORDS[kind].entries
    key = source, target, request
    entry = entries.get(key)
    if entry is None:
        if len(entries) >= MOST:
            entries.clear()
        entry = entries[key] = Entry(kind, source, target, request)
    return entry


def routed(
    x: Any, source: Library, target: Library, request: Request = _PLAIN
) -> tuple[Plan, TensorInfo]:
    """Return the plan and description of an array, which `alias` returned."""
    return entry_of(type(x), source, target, request).planned(x)


def execute(x: Any, found: Plan, info: TensorInfo) -> Any:
    """Convert an array by its plan; its memory must not be replaced meanwhile."""
    if OBSERVERS:
        notify(found.route(info), info)
    return _executed(x, found, info)


def _executed(x: Any, found: Plan, info: TensorInfo) -> Any:
    source, target, place = found.source, found.target, found.device or info.device
    if found.kind == "refuse":
        raise ConversionError(found.reason(info), found.route(info))
    if found.edge is not None:
        try:
            made = found.edge(x)
        except (BufferError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
            if isinstance(error, ConversionError):
                raise
            if found.copier is None:
                raise ConversionError(
                    f"{target.name} could not take the array: {first_line(error)}"
                ) from error
            made = None  # the copier raises a better error
        if made is not None:
            return made
    if found.kind == "view":
        if place == info.device and (source is target or isinstance(x, target.forms)):
            return x
        return _wrapped(x, source, target, info, place)
    fresh = found.copier.copy(x, source, target, info, place)
    made_by = library_of_type(type(fresh)) or source  # `resolve` may return a core tensor
    if made_by is target or isinstance(fresh, target.forms):
        return fresh
    if found.kind == "kernel" and not (info.device.host or info.pending):
        # A view, even if the target copies all: it would be given copies again and again.
        return _wrapped(fresh, made_by, target, made_by.describe(fresh), place)
    # An intermediate array, to which nothing else refers.
    onward = Request(device=place, share=True)
    return _executed(fresh, *routed(fresh, made_by, target, onward))


def _wrapped(x: Any, source: Library, target: Library, info: TensorInfo, place: Device) -> Any:
    """Return a view in the target."""
    here = info.device
    stream = None if here.type == CPU.type else target.current_stream(here)
    tensor = source.export_described(x, info, stream)
    if tensor.device != place:
        tensor = relabelled(tensor, place)
    return target.wrap(tensor)


def relabelled(tensor: ManagedTensor, device: Device) -> ManagedTensor:
    """Return a view of host memory labelled as another device; leave the caller's ``tensor``."""
    return dlpack.ManagedTensor.adopt(
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
