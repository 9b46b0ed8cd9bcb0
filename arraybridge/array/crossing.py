"""Calls of an adapted function: conversion of its arguments and of its results."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from ..containers import items, leaves, mapped
from ..dispatch.execute import execute
from ..dispatch.form import Form, route_to
from ..dispatch.registry import KNOWN, UNKNOWN, library_named
from ..dlpack import Device, is_capsule
from ..exchange import convert, inspect, refusal, view_door
from ..protocols.foreign import no_array
from ..protocols.objects import as_source
from .followed import advise, cast, dtype_of, of_result
from .kinds import Kind, arrays_in, graphs_of, is_array, kind_of, place_of, record_of, unwrapped
from .outputs import Output, outputs
from .terms import Terms
from .written import Lent

_NOTHING = object()


def views(
    terms: Terms, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[Any], list[Any]] | None:
    """Convert positional arguments by doors: nothing else has to be remembered of such a call.

    Returns
    -------
    tuple
        The positional arguments as the function is to see them, and the arrays among them: the
        kind that was given, what was given, what is seen, its data type and its address. None where
        an argument is a container or anything else that takes a :class:`Crossing`.
    """
    home, library = terms.home or terms.find_home(), terms.library
    address = terms.address
    every: list[Any] = []
    pairs: list[Any] = []
    if terms.own is not None and args and terms.is_own(args[0]):
        every, args = [args[0]], args[1:]
    try:
        for x in kwargs.values():
            if KNOWN[type(x)].is_array is not False:
                return None
        for x in args:
            record = KNOWN[type(x)]
            kind = record.kind
            if kind is None:
                if record.is_array is not False:
                    return None
                every.append(x)
                continue
            seen, own, dtype, place = x, kind, None, None
            if kind.wrapped:
                seen = x._native
                record = KNOWN[type(seen)]
                own = record.kind
            if own != home:
                for pair in pairs:
                    if pair[1] is x:
                        seen, dtype, place = pair[2:]
                        break
                else:
                    door = record.doors[library]
                    if door is None or getattr(door, "copies", False):
                        return None
                    seen = door(seen)
                    if seen is None:
                        return None
                    dtype, place = seen.dtype, address and address(seen)
            pairs.append((kind, x, seen, dtype, place))
            every.append(seen)
    except Exception:  # of a door, or something that is not known yet
        return None
    return every, pairs


def given_back(terms: Terms, result: Any, pairs: list[Any]) -> Any:
    """Convert the result of a call with nothing but :func:`views`."""
    if terms.address is not None:
        for pair in pairs:
            if pair[4] is not None and terms.address(pair[2]) != pair[4]:
                return _crossed(terms, pairs).leave(result)
    for kind, given, seen, dtype, _ in pairs:
        if seen is result:
            native = given._native if kind.wrapped else given
            if (
                native is seen
                or (seen.dtype is dtype and _same_elements(native, seen))
                or _same_memory(native, seen)
            ):
                return given
    if not pairs:
        return result
    goal = pairs[0][0]
    try:
        record = KNOWN[type(result)]
        kind = record.kind
        if kind is goal or record.is_array is False:
            return result
        door = record.doors[goal.library]
        if kind is not UNKNOWN and not goal.wrapped and door is not None:
            found = door(result)
            if found is not None:
                return found
    except Exception:  # as above, and of the door
        pass
    return _crossed(terms, pairs).leave(result)


def _crossed(terms: Terms, pairs: list[Any]) -> Crossing:
    """Return the crossing of a call with nothing but :func:`views`."""
    crossing = Crossing(terms)
    crossing.goal = pairs[0][0]
    crossing.pairs = [pair[1:3] for pair in pairs]
    crossing.places = [(*pair[1:3], pair[4]) for pair in pairs if pair[4] is not None]
    return crossing


class Crossing:
    """The arrays of one call, as passed by the caller and as seen by the function."""

    __slots__ = (
        "arguments",
        "copies",
        "goal",
        "lent",
        "model",
        "outs",
        "pairs",
        "place",
        "places",
        "terms",
        "views",
    )

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.goal: Kind | None = None  # what the arrays of the result become, if anything
        self.place: Device | None = None  # where they go, if anywhere else
        self.pairs: list[tuple[Any, Any]] = []  # (given, seen)
        self.arguments = 0  # how many of the pairs are the call's own
        self.copies = 0
        self.lent: list[Lent] = []  # the copies among what is seen
        self.model: Any = None  # the argument whose kind the results become; None: the first
        self.outs: list[Output] = []
        self.places: list[tuple[Any, Any, int | None]] = []  # (given, view, its address)
        self.views = 0  # how many of the places are the call's own

    def enter(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Convert the arguments for the function."""
        terms = self.terms
        if terms.result not in ("caller", "function"):
            self.goal = Kind(library_named(terms.result).name, False)
        if terms.like is not None:
            self.model = next(iter(arrays_in(terms.like.of(args, kwargs))), _NOTHING)
        out = terms.out_of(args, kwargs)
        method = terms.own is not None and args and terms.is_own(args[0])
        seen = items(self._in, args[1:] if method else args, is_array)
        if method:
            seen.insert(0, args[0])
        if kwargs:
            kwargs = mapped(self._in, kwargs, is_array)
        self.arguments, self.copies, self.views = len(self.pairs), len(self.lent), len(self.places)
        if self.model is _NOTHING and self.pairs:
            raise TypeError(
                f"{terms.function} was adapted with result_like={terms.like.spelled!r}, and that "  # type: ignore[union-attr]
                "argument is not an array in this call, as another is"
            )
        if out is not None:
            self.outs = outputs(terms, out, self.pairs, self.lent)
        return seen, kwargs

    def send(self, value: Any) -> Any:
        """Convert a value that is sent to a generator; forget those sent before."""
        del self.pairs[self.arguments :], self.lent[self.copies :], self.places[self.views :]
        return mapped(self._in, value, is_array)

    def leave(self, result: Any) -> Any:
        """Convert a value that is returned or yielded for the caller."""
        for out in self.outs:
            out.check(self.terms)
        for lost in self._give_back(lambda: leaves(result, is_array)):
            name = self.terms.function
            lost.add_note(f"That was an argument of {name}, adapted by arraybridge.")
            raise lost
        return mapped(self._out, result, is_array)

    def fail(self, error: BaseException) -> None:
        """Finish a call that raised: what was written until then is given back."""
        for lost in self._give_back(list):
            if str(lost) != str(error):  # a generator may have had it before
                error.add_note(str(lost))

    def _give_back(self, results: Callable[[], list[Any]]) -> list[Exception]:
        """Write changes to copies back to the arguments; return why some cannot be written."""
        lost: list[Exception] = []
        self._replaced()
        for lent in self.lent:
            try:
                lent.give_back(results)
            except Exception as error:
                lost.append(error)
        return lost

    def _replaced(self) -> None:
        """Take a view to whose array the function gave other memory for a copy from now on."""
        for number, (given, seen, place) in enumerate(self.places):
            if place is not None and self.terms.address(seen) != place:
                self.places[number] = given, seen, None
                own = number < self.views
                self.lent.insert(0 if own else len(self.lent), Lent.replaced(given, seen))
                self.copies += own

    # What follows is on the path of every call: quick ways are spelled out.

    def _in(self, x: Any) -> Any:
        kind = record_of(type(x)).kind
        if kind is None and not is_array(x):
            return x
        for given, seen in self.pairs:
            if given is x:
                return seen
        terms = self.terms
        if kind is None and graphs_of(x) is not None:
            raise TypeError(
                f"{no_array(x)}, or have {terms.function} called on its blocks when they are "
                'computed: adapt(..., blockwise=True), signature="(i)->(i)" along whole axes, '
                "depth=1 with a margin"
            )
        try:
            native = x if kind is not None and not kind.wrapped else as_source(x)[0]
            if x is self.model or (self.model is None and not self.pairs):
                self._aim(x, native)
            home = terms.home or terms.find_home()
            if not terms.asks and home == (kind if native is x else record_of(type(native)).kind):
                seen = native  # as it is, gradients and tracers too
            else:
                seen = self._converted(x, native)
        except (BufferError, TypeError) as error:
            error.add_note(f"That was an argument of {terms.function}, adapted by arraybridge.")
            advise(terms, x, error)
            raise
        self.pairs.append((x, seen))
        return seen

    def _converted(self, given: Any, native: Any) -> Any:
        """Convert an argument to the function's library; remember a copy, which may be written."""
        terms = self.terms
        if not terms.options:
            door = view_door(type(native), terms.library)
            with suppress(Exception):  # the planned route says what is wrong
                seen = None if door is None else door(native)
                if seen is not None:
                    self._watch(given, seen)
                    return seen
        target = library_named(terms.library)
        array, source = as_source(native)
        held = source.held(array)
        route, info = route_to(held, source, target, **terms.options)
        if route.kind == "refuse":
            route = refusal(given, route)
        seen = execute(held, source, target, route, info)
        if seen is held:
            return array
        own = terms.copy is True or is_capsule(given)  # nobody else has what was in it
        if route.kind in ("kernel", "transfer") and not (own or target.accepts.immutable):
            again = partial(execute, array, source, target, route, info)
            self.lent.append(Lent(given, array, source, info, seen, again))
        elif route.kind == "view":
            self._watch(given, seen)
        return seen

    def _watch(self, given: Any, seen: Any) -> None:
        address = self.terms.address
        if address is not None:
            with suppress(RuntimeError):  # inside transformations tensors have no memory
                self.places.append((given, seen, address(seen)))

    def _aim(self, first: Any, native: Any) -> None:
        """Decide the kind of the result's arrays from the first argument that is an array."""
        terms = self.terms
        if terms.result == "caller":
            self.goal = kind_of(first, native)
            if terms.sends:
                self.place = place_of(native)

    def _out(self, x: Any) -> Any:
        record, goal, terms = record_of(type(x)), self.goal, self.terms
        kind, form = record.kind, terms.result_form
        if kind is None and not (is_array(x) and record.in_memory):
            return x  # a graph that the function made is what it wanted to give
        if form is not None and not _is_cast(form, x):
            form = None
        if goal is None:
            if form is None:
                return x
            goal = kind_of(x)
        elif form is None:
            given = self._argument(x)
            if given is not _NOTHING and (
                terms.result == "caller" or record_of(type(given)).kind == goal
            ):
                return given
        return _brought(terms, x, kind, goal, self.place, form)

    def _argument(self, x: Any) -> Any:
        """Return the argument that an array of a result is, as the caller passed it."""
        for lent in self.lent:
            if lent.is_argument(x):
                return lent.given
        for given, seen in self.pairs:
            if seen is x and _same_memory(given, seen):
                return given
        return _NOTHING


def _is_cast(form: Form, x: Any) -> bool:
    """Whether an array of a result has another data type than is asked for."""
    given = dtype_of(x)
    return form.wanted(given) != given


def _brought(
    terms: Terms, x: Any, kind: Kind | None, goal: Kind, place: Device | None, form: Form | None
) -> Any:
    """Convert an array of a result to the caller's kind."""
    try:
        if form is not None:
            native = unwrapped(x)
            library = record_of(type(native)).library
            theirs = None if library is None else library.differentiation()
            if theirs is not None and theirs.follows(native):
                x = cast(form, theirs, terms.function, "result_dtype", native)
                kind, form = record_of(type(x)).kind, None
        if terms.options or goal.wrapped or form is not None:
            copy = False if terms.copy is False else None
            return goal.brought(x, device=place, copy=copy, form=form)
        return x if kind == goal else convert(x, goal.library)
    except BufferError as error:
        raise of_result(terms, error, x) from None


def _same_memory(given: Any, seen: Any) -> bool:
    """Whether the function saw the caller's own array: not a copy, nor a consumed capsule."""
    native = unwrapped(given)
    if native is seen:
        return True
    if is_capsule(given):
        return False
    a, b = inspect(native), inspect(seen)
    if (a.shape, a.dtype, a.pending) != (b.shape, b.dtype, b.pending):
        return False
    return not a.size or (
        (a.pointer, a.strides) == (b.pointer, b.strides)
        and (a.device == b.device or (a.device.host and b.device.host))
    )


def _same_elements(native: Any, seen: Any) -> bool:
    """Whether two arrays of one data type are known to be the same memory, undescribed."""
    try:
        memory = KNOWN[type(native)].library.memory(native)  # type: ignore[union-attr]
        other = KNOWN[type(seen)].library.memory(seen)  # type: ignore[union-attr]
    except Exception:  # inside transformations tensors have no memory
        return False
    return memory == other and bool(memory and memory[0])
