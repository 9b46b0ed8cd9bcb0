"""The look-ups of the core's table, in C where there is the extension: `lookup.c` is the same.

They are what every call goes through, and nothing in them decides: what runs for a signature is
what the planner has said of it before.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import update_wrapper
from typing import Any, TypeVar

from . import C

F = TypeVar("F", bound=Callable[..., Any])


def run_of(
    sign: Callable[[Any], Hashable],
    runs: dict[Hashable, Callable[[Any], Any]],
    new: Callable[[Any], Callable[[Any], Any]],
    convert: Callable[[Any], Any],
    final: tuple[type[Exception], ...],
) -> Callable[[Any], Any]:
    """Return what converts the arrays of one entry of the table.

    `sign` gives the key of an array: the coarse signature, and what of the target's state decides;
    None where nothing is looked at, or all is. `runs` has by the key what converts the arrays that
    have it, a function of the array; `new` adds a key, and returns what runs. `convert` always
    knows what to do: it is called where that function gives None, or raises an exception that is
    not `final`.
    """

    def run(x: Any) -> Any:
        key = sign(x)
        known = runs.get(key) or new(key)
        try:
            made = known(x)
        except Exception as error:
            if known is convert or isinstance(error, final):
                raise
            # Another thread has changed the array meanwhile, or its description says what is wrong.
            made = None
        return convert(x) if made is None else made

    return run


def view_of(
    sign: Callable[[Any], Hashable],
    runs: dict[Hashable, Callable[[Any], Any]],
    views: dict[Hashable, Callable[[Any], Any]],
    new: Callable[[Any], Callable[[Any], Any]],
) -> Callable[[Any], Any]:
    """Return what makes the views that edges are; None for an array that is converted otherwise.

    `views` has those of `runs` that are views.
    """

    def view(x: Any) -> Any:
        key = sign(x)
        edge = views.get(key)
        if edge is None and key not in runs:
            new(key)
            edge = views.get(key)
        try:
            return None if edge is None else edge(x)
        except Exception:  # `convert` says what is wrong
            return None

    return view


def itself(x: Any) -> Any:
    """Return an array that is what it is converted to."""
    return x


def with_modes(
    signature: Callable[[Any], Hashable], modes: Callable[[], Hashable]
) -> Callable[[Any], Hashable]:
    """Return the signature of arrays together with the modes of a target."""

    def signature_and_modes(x: Any) -> Hashable:
        return signature(x), modes()

    return signature_and_modes


def or_else(
    function: Callable[[Any], Any], error: type[Exception], other: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    """Return what calls a function of an array, and another one where the first raises `error`."""

    def tried(x: Any) -> Any:
        try:
            return function(x)
        except error:
            return other(x)

    return tried


def then(first: Callable[[Any], Any], second: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return what calls one function after another, unless the first gives None."""

    def both(x: Any) -> Any:
        made = first(x)
        return None if made is None else second(made)

    return both


if C is not None:
    run_of, view_of, with_modes = C.run_of, C.view_of, C.with_modes
    or_else = C.or_else


def front(
    known: dict[type, Any],
    observers: list[Any],
    key: object = None,
    keywords: Sequence[tuple[str | None, Any]] = (),
    devices: frozenset[type] = frozenset(),
) -> Callable[[F], F]:
    """Put the look-up of entries before a function of an array, which adds those that are new.

    `known` has the records of types; while there are `observers`, nothing is looked up here. An
    entry is found by `key`, if the function takes an array alone; else by its second argument, or
    by that and `keywords`, which are the parts of such a key with their defaults (None is the name
    of what is no keyword). Keys hold only `devices` of these types.
    """
    if C is None:
        return lambda function: function

    def decorate(function: F) -> F:
        names, defaults = zip(*keywords, strict=True) if keywords else ((), ())
        made = C.front(function, known, observers, key, names, defaults, devices)
        whole: Any = update_wrapper(made, function)
        return whole  # type: ignore[no-any-return]

    return decorate
