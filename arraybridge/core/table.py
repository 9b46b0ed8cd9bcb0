"""The table of conversions: array type -> request -> {signature: the function that converts}.

Every conversion takes one path: look up the entry of the type and the request, compute the array's
signature, look up the function. A new signature is planned once; :func:`arraybridge.explain` makes
the same plan. The table is part of `registry.RECORDS`. `registry.forget` drops it whenever
something that decides has changed: a library, a kernel, a driver, an observer. An entry is stored
in the record that was current before the entry was made, so a `forget` in between drops it too.

Audits observe routes. While there are observers, every conversion is planned and observers are
notified. Code that adds or removes one calls `registry.forget`.
"""

from collections.abc import Callable, Hashable
from functools import partial, update_wrapper
from typing import Any, NoReturn, TypeVar

from ..dlpack import CPU, DataTypeCode, Device
from ..native import C
from .library import Library, described_with_booleans, exported, itself, or_else, relabelled
from .planner import UNLIMITED, plan, unavailable
from .records import USUAL_ALIGNMENT, ConversionError, Route, TensorInfo, described_key, first_line
from .registry import RECORDS, library_of_type, remembered
from .request import Request

F = TypeVar("F", bound=Callable[..., Any])
MOST = 256  # signatures of an entry, and entries of a type
_PLAIN = Request()
#: Errors by which libraries refuse an array.
_REFUSALS = (BufferError, NotImplementedError, RuntimeError, TypeError, ValueError)


#: Each is called with a route that is about to be taken, and may raise an exception to refuse it.
OBSERVERS: list[Callable[[Route], object]] = []


def notify(route: Route, info: TensorInfo) -> None:
    """Notify all observers of a route that is about to be taken, unless it is a refusal."""
    if route.kind != "refuse":
        if route.kind == "view" and info.copied:
            why = "the producer exports a copy"
            route = route._replace(kind="copy", why=why, nbytes=info.nbytes)
        for observe in [*OBSERVERS]:
            observe(route)


def notify_copy(why: str, info: TensorInfo, target: str = "") -> None:
    """Notify all observers of a copy on an array's device that is no conversion."""
    name = info.library
    notify(Route("copy", why, info.nbytes, name, target or name, info.device), info)


def notify_view(why: str, info: TensorInfo) -> None:
    """Notify all observers that an array is taken as it is."""
    name = info.library
    notify(Route("view", why, 0, name, name, info.device), info)


class Entry:
    """The conversions of one array type by one request.

    `run` converts an array, and notifies observers; `convert` does so without notifying them.
    `runs` has the function for each key of `sign`, and of a state of the target. `view` converts as
    `run` does if that is a view; otherwise it returns None. `views` has its functions.
    """

    __slots__ = (
        "_routes", "_same", "_state", "convert", "describe", "request", "run", "runs", "sign",
        "source", "target", "view", "views",
    )  # fmt: skip

    def __init__(self, kind: type, source: Library, target: Library, request: Request) -> None:
        self.source, self.target, self.request = source, target, request
        self._same = source is target or issubclass(kind, target.accepts.results)
        self.runs: dict[Hashable, Callable[[Any], Any]] = {}
        self._routes: dict[Hashable, Route] = {}
        self.sign = _signer(source, target, request)
        self.describe: Callable[[Any], TensorInfo] = source.describe
        if target.accepts.canonical_booleans and source is not target:
            self.sign = _with_booleans(self.sign, source)
            self.describe = partial(described_with_booleans, source)
        self._state = target.routing.state
        self.convert = run_of(self.sign, self._state, self.runs, self.new, self.failed)
        self.run: Callable[[Any], Any] = self._observed if OBSERVERS else self.convert
        self.views: dict[Hashable, Callable[[Any], Any]] = {}
        viewed = run_of(self.sign, self._state, self.views, self._new_view, self.failed)
        self.view: Callable[[Any], Any] = self._observed_view if OBSERVERS else viewed

    def plan(self, x: Any) -> Route:
        """Plan the conversion of an array, which `alias` returned."""
        source, target, request = self.source, self.target, self.request
        info = self.describe(x)
        if target.accepts.immutable:
            info = info._replace(legacy=source.may_change(x))
        # All that the planner reads: the shape tells the bytes, a layout is in words.
        key = self.sign(x), self._state and self._state(), info[3:5], info.refused, not info.data
        route = self._routes.get(key)
        if route is None:
            edges = source.routing.plain(x)
            route = plan(info, source, target, request, edges=edges, same=self._same)
            route.run = self._function(route, info)
            remembered(self._routes, key, route)
        return route.about(info)

    def new(self, x: Any, key: Hashable) -> Callable[[Any], Any]:
        """Return the conversion of arrays with a new key, and remember it.

        ConversionError if they are refused.
        """
        route = self.plan(self.source.alias(x))
        if route.kind == "refuse":
            raise ConversionError(route.why, route)
        assert route.run is not None
        return remembered(self.runs, key, route.run)

    def _new_view(self, x: Any, key: Hashable) -> Callable[[Any], Any]:
        """Return the conversion of arrays with a new key if it is a view, and remember it."""
        route = self.plan(self.source.alias(x))
        return remembered(self.views, key, (route.kind == "view" and route.run) or nothing)

    def failed(self, x: Any, error: Exception) -> NoReturn:
        """Raise the best error for a conversion that failed.

        Another thread may have changed the array meanwhile, so that it is refused now.
        """
        if isinstance(error, MemoryError):
            raise error
        route = self.plan(self.source.alias(x))
        if route.kind == "refuse":
            raise ConversionError(route.why, route) from error
        told = isinstance(error, ConversionError) or not isinstance(error, _REFUSALS)
        if route.edge is not None and not told:
            why = f"{self.target.name} could not take the array: {first_line(error)}"
            raise ConversionError(why) from error
        raise error

    def _observed(self, x: Any) -> Any:
        """Convert an array, and notify the observers first."""
        route = self.plan(self.source.alias(x))
        try:
            return run_plan(x, route)
        except Exception as error:
            self.failed(x, error)

    def _observed_view(self, x: Any) -> Any:
        """Return a view of an array, and notify the observers first; None if there is none."""
        is_view = self.plan(self.source.alias(x)).kind == "view"
        return self._observed(x) if is_view else None

    def _function(self, route: Route, info: TensorInfo) -> Callable[[Any], Any]:
        """Return the conversion by a route, for all arrays of the signature."""
        source, target, edge, place = self.source, self.target, route.edge, route.device
        if edge is not None and route.copier is None:
            return edge
        if route.kind == "view" and self._same and place == info.device:
            return itself
        alias, describe, copier, kind = source.alias, self.describe, route.copier, route.kind
        checked = unavailable(info) is None

        def convert(x: Any) -> Any:
            x = alias(x)
            info = describe(x)
            why = unavailable(info) if checked else None
            if why is not None:
                raise ConversionError(why)
            if kind == "view":
                return _wrapped(x, source, target, info, place)
            return self._finished(copier.copy(x, info), info, kind, place)

        return convert if edge is None else or_else(edge, convert)

    def _finished(self, made: Any, info: TensorInfo, kind: str, place: Device) -> Any:
        """Return a copy as an array of the target."""
        target = self.target
        by = library_of_type(type(made)) or self.source  # `resolve` may return a core tensor
        if by is target or isinstance(made, target.accepts.results):
            return made
        if kind == "copy" and not (info.device.host or info.pending):
            # A view, even if the target copies all: it would be given copies again and again.
            return _wrapped(made, by, target, by.describe(made), place)
        # An intermediate array, to which nothing else refers.
        return entry_of(type(made), by, target, Request(device=place, share=True)).convert(made)


def nothing(x: Any) -> None:
    """Return None: the view of an array that must be copied."""


def _signer(source: Library, target: Library, request: Request) -> Callable[[Any], Hashable]:
    """Return the key of arrays: the signature, and all else that decides for a request."""
    accepts, routing = target.accepts, source.routing
    sign: Callable[[Any], Hashable] = source.signature
    most = max(64, accepts.alignment)

    def described(x: Any) -> Hashable:
        return described_key(source.describe(x), most)

    if (
        (request.cast is not None and request.cast.order is not None)
        or accepts.largest < UNLIMITED
        or accepts.per_array is not None
        or ((accepts.strides == "c" or request.contiguous) and not routing.strided)
    ):
        sign = routing.exact or described
    wanted = max(accepts.alignment, USUAL_ALIGNMENT if accepts.aligned else 1)
    if wanted > routing.aligned and source is not target:
        sign = described
    if accepts.immutable and not request.share and request.copy is None:
        first, may_change = sign, source.may_change
        sign = lambda x: (first(x), may_change(x))  # noqa: E731
    return sign


def _with_booleans(sign: Callable[[Any], Hashable], source: Library) -> Callable[[Any], Hashable]:
    """Return the key of arrays, for booleans with whether their bytes are other than 0 and 1."""
    booleans: dict[Hashable, bool] = {}

    def key_of(x: Any) -> Hashable:
        key = sign(x)
        known = booleans.get(key)
        if known is None:
            known = source.describe(x).dtype.code == DataTypeCode.BOOL
            remembered(booleans, key, known)
        return (key, described_with_booleans(source, x).pending) if known else key

    return key_of


def run_of(
    sign: Callable[[Any], Hashable],
    state: Callable[[], Hashable] | None,
    runs: dict[Hashable, Callable[[Any], Any]],
    new: Callable[[Any, Hashable], Callable[[Any], Any]],
    failed: Callable[[Any, Exception], NoReturn],
) -> Callable[[Any], Any]:
    """Return the function that converts the arrays of an entry: sign, look up, run.

    The key also has the `state`, unless that is false, as it usually is.
    """

    def run(x: Any) -> Any:
        key, now = sign(x), state and state()
        key = (key, now) if now else key
        known = runs.get(key) or new(x, key)
        try:
            return known(x)
        except Exception as error:
            failed(x, error)

    return run


def front(
    known: dict[type, Any],
    key: object = None,
    entry_of_call: Callable[..., Any] | None = None,
    plain: frozenset[type] = frozenset(),
) -> Callable[[F], F]:
    """Put a look-up in C before a function of an array, which makes the entries of the table.

    `known` has the records of types. The key of an entry is `key`, if the function takes only an
    array, or else the second argument with the keywords, if all are of `plain` types.
    `entry_of_call` takes them after the array's type, and returns the entry of a call.
    """
    if C is None:
        return lambda function: function

    def decorate(function: F) -> F:
        made: F = C.front(function, known, key, entry_of_call, plain)
        update_wrapper(made, function)
        return made

    return decorate


if C is not None:
    run_of = C.run_of


def entry_of(kind: type, source: Library, target: Library, request: Request) -> Entry:
    """Return the entry of an array type of `source` and a request."""
    entries = RECORDS[kind].entries
    key = source, target, request
    entry: Entry | None = entries.get(key)
    if entry is None:
        entry = remembered(entries, key, Entry(kind, source, target, request))
    return entry


def plan_for(x: Any, source: Library, target: Library, request: Request = _PLAIN) -> Route:
    """Return the route of an array, which `alias` returned."""
    return entry_of(type(x), source, target, request).plan(x)


def run_plan(x: Any, route: Route) -> Any:
    """Convert an array by its route, and notify observers."""
    assert route.info is not None
    if OBSERVERS:
        notify(route, route.info)
    if route.kind == "refuse":
        raise ConversionError(route.why, route)
    assert route.run is not None
    return route.run(x)


def _wrapped(x: Any, source: Library, target: Library, info: TensorInfo, place: Device) -> Any:
    """Return a view in the target."""
    here = info.device
    stream = None if here.type == CPU.type else target.devices.current_stream(here)
    tensor = exported(source, x, info, stream)
    if tensor.device != place:
        tensor = relabelled(tensor, place)
    return target.wrap(tensor)
