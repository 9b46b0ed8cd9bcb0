"""The look-ups of the core's table, for installations without the extension's `lookup.c`.

Every call goes through them, and they decide nothing: the planner has decided before what runs for
a signature.
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
    """Return the function that converts the arrays of one entry of the table.

    `sign` returns an array's key: the coarse signature, and the target's state that decides. It is
    None if nothing needs to be read, or everything. `runs` has the function for each key; `new`
    adds a key and returns its function. `convert` handles every array: it is called if that
    function returns None, or raises an exception that is not `final`.
    """

    def run(x: Any) -> Any:
        key = sign(x)
        known = runs.get(key) or new(key)
        try:
            made = known(x)
        except Exception as error:
            if known is convert or isinstance(error, final):
                raise
            # Another thread has changed the array, or its description has a better error.
            made = None
        return convert(x) if made is None else made

    return run


def view_of(
    sign: Callable[[Any], Hashable],
    runs: dict[Hashable, Callable[[Any], Any]],
    views: dict[Hashable, Callable[[Any], Any]],
    new: Callable[[Any], Callable[[Any], Any]],
) -> Callable[[Any], Any]:
    """Return the function that makes the views of edges; it returns None for any other array.

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
        except Exception:  # `convert` raises a better error
            return None

    return view


def itself(x: Any) -> Any:
    """Return an array unchanged."""
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
    """Return a function that calls another one if the first raises `error`."""

    def tried(x: Any) -> Any:
        try:
            return function(x)
        except error:
            return other(x)

    return tried


def then(first: Callable[[Any], Any], second: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the composition of two functions, unless the first returns None."""

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
    """Put the look-up of entries before a function of an array, which adds new ones.

    `known` has the records of types; while there are `observers`, nothing is looked up here. An
    entry is found by `key`, if the function takes only an array; otherwise by its second argument,
    or by that and `keywords`, the parts of such a key with their defaults (None names a part that
    is no keyword). Keys only hold `devices` of these types.
    """
    if C is None:
        return lambda function: function

    def decorate(function: F) -> F:
        names, defaults = zip(*keywords, strict=True) if keywords else ((), ())
        made = C.front(function, known, observers, key, names, defaults, devices)
        whole: Any = update_wrapper(made, function)
        return whole  # type: ignore[no-any-return]

    return decorate
