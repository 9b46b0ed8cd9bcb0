"""Observers of the routes that arrays take: audits, while one is on.

While there are observers no table has a fast path, so that every conversion is planned and comes
to where they are notified. Code that adds or removes one calls `registry.forget`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .records import Route, TensorInfo


class Event(NamedTuple):
    """A route that is about to be taken."""

    route: Route
    info: TensorInfo  # what takes it
    call: str = ""  # what is called; "" for the function by which the program called arraybridge


#: Each is called with an `Event`; an exception that it raises refuses the route.
OBSERVERS: list[Callable[[Event], object]] = []


def notify(route: Route, info: TensorInfo, call: str = "") -> None:
    """Notify all observers of a route that is about to be taken, unless it is a refusal."""
    if route.kind != "refuse":
        if route.kind == "view" and info.copied:
            why = "the producer says that what it exports is a copy"
            route = route._replace(kind="kernel", why=why, nbytes=info.nbytes)
        event = Event(route, info, call)
        for observe in [*OBSERVERS]:
            observe(event)


def notify_copy(
    why: str, info: TensorInfo, target: str = "", by: object = None, call: str = ""
) -> None:
    """Notify all observers of a copy that is no conversion, on the device of an array."""
    name = info.library
    notify(Route("kernel", why, info.nbytes, name, target or name, info.device, by), info, call)


def notify_view(why: str, info: TensorInfo, call: str = "") -> None:
    """Notify all observers that an array is taken as it is."""
    name = info.library
    notify(Route("view", why, 0, name, name, info.device), info, call)
