"""Quick ways through ``convert``, made once for each type of array and each set of keywords.

A way is a function of the array alone: it gives the result that the plan would give, or None where
the plan must decide. It is made of what libraries offer: the target's door, and the source's own
copy of small arrays (`Library.fresh`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from ..dlpack import CPU, Device
from .kernel import own_copies_serve
from .library import Library
from .plan import wanted_alignment
from .records import Accepts
from .route import route_between

__all__ = ["Way", "ways_between"]

Way = Callable[[Any], Any]
_MOST = 256  # patterns that a way remembers


def ways_between(
    source: Library,
    target: Library,
    door: Way | None,
    device: Device | None = None,
    copy: bool | None = None,
    alias_readonly: bool = False,
) -> tuple[Way, ...]:
    """Return what to try before the plan, in this order; `door` is that of the array's type."""
    if device is not None and (
        device != CPU or not (getattr(door, "on_host", False) or _on_cpu_alone(source, target))
    ):
        return ()
    alias = getattr(door, "aliasing", None) if alias_readonly else None
    if getattr(door, "copies", False):
        usual = device is None and copy is not False and not alias_readonly
        if alias is not None and not copy:
            return (alias,)
        return (door,) if door is not None and usual else ()
    if alias is not None and door is not None and not copy:
        return (door, alias)
    if copy is False:
        return () if door is None else (door,)
    if door is None and source is not target:
        return ()
    quick = own_copies_serve() and type(source).fresh is not Library.fresh
    if copy:
        if quick:
            return (_after(source.fresh, getattr(door, "of_fresh", door)),)
        if door is None or not own_copies_serve():
            return ()
        return (_after(door, target.fresh),)
    if door is None:
        return ()
    accepts = target.accepts
    if (
        not quick
        or accepts.immutable
        # What `Library.pattern` does not tell.
        or accepts.strides == "compact"
        or accepts.largest != Accepts._field_defaults["largest"]
    ):
        return (door,)
    return door, _deciding(source, target, door, accepts, alias_readonly)


def _on_cpu_alone(source: Library, target: Library) -> bool:
    """Whether ``device="cpu"`` changes nothing: one of the two knows no other device."""
    accepts = target.accepts
    return source.on_cpu_alone or (accepts.devices == {CPU.type} and accepts.cpus == 1)


def _after(first: Way, then: Way | None) -> Way:
    if then is None:
        return first

    def both(x: Any) -> Any:
        made = first(x)
        return None if made is None else then(made)

    return both


def _deciding(
    source: Library, target: Library, door: Way, accepts: Accepts, alias_readonly: bool
) -> Way:
    """Return the way of arrays that the door declined: a small copy, where the plan is one.

    The plan is asked once for each pattern. What the address decides is not remembered.
    """
    pattern, fresh, take = source.pattern, source.fresh, getattr(door, "of_fresh", door)
    decided: dict[Hashable, bool] = {}

    def copies(x: Any, key: Hashable) -> bool:
        route, info = route_between(x, source, target, alias_readonly=alias_readonly)
        wanted = wanted_alignment(info, accepts)
        if route.kind not in ("view", "kernel") or (
            wanted > 1 and (route.kind == "view" or info.pointer % wanted)
        ):
            return False
        if len(decided) >= _MOST:
            decided.clear()
        decided[key] = route.kind == "kernel"
        return decided[key]

    def small(x: Any) -> Any:
        key = pattern(x)
        if key is None or target.accepts is not accepts:
            return None
        try:
            copied = decided[key]
        except KeyError:
            copied = copies(x, key)
        made = fresh(x) if copied else None
        return None if made is None else take(made)

    return small
