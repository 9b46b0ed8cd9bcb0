"""The ways through `convert`: planned, the first call of a process, a later one; and `explain`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import arraybridge as ab
from arraybridge.dispatch.registry import forget, library_named

__all__ = ["KINDS", "check", "outcome"]

KINDS = {"view": "view", "kernel": "copy", "transfer": "copy", "refuse": "refuse"}


def outcome(convert: Callable[[], Any], pointer: int | None) -> tuple:
    """What came of a conversion of an array at `pointer`: how it lies, and what may be done to it.

    Any other error than a ConversionError goes on: it is no answer.
    """
    try:
        result = convert()
    except ab.ConversionError:
        return ("refuse",)
    info = ab.inspect(result)
    told = (type(result), info.shape, info.dtype, info.device)
    if not info.size:
        return ("empty", *told)
    shared = pointer is not None and info.pointer == pointer
    # Steps over axes of one element are never made.
    steps = [s for n, s in zip(info.shape, info.strides, strict=True) if n > 1] if shared else None
    return ("view" if shared else "copy", *told, info.readonly, steps)


@contextmanager
def no_doors(to: str) -> Iterator[None]:
    """Only the planned route, as a library without doors has it."""
    library = library_named(to)
    doors, library.doors = library.doors, {}
    forget()
    try:
        yield
    finally:
        library.doors = doors
        forget()


def check(x: Any, to: str, warm: Any = None) -> str:
    """Hold the first call, later ones and the planned route against `explain`; what they did.

    Parameters
    ----------
    warm : array, optional
        A plain array of the library of `x`, converted between the first call and the later ones.
    """
    try:
        route = ab.explain(x, to)
        kind, pointer = KINDS[route.kind], ab.inspect(x).pointer
    except ab.ConversionError:  # it cannot even be described
        kind, pointer = "refuse", None
    with no_doors(to):
        planned = outcome(lambda: ab.convert(x, to), pointer)
        insisted = outcome(lambda: ab.convert(x, to, copy=False), pointer)
    first = outcome(lambda: ab.convert(x, to), pointer)
    if warm is not None:
        ab.convert(warm, to)
    later = [outcome(lambda: ab.convert(x, to), pointer) for _ in range(2)]
    assert first == planned
    assert later == [first, first]
    assert outcome(lambda: ab.convert(x, to, copy=False), pointer) == insisted
    assert first[0] == kind or (first[0] == "empty" and kind != "refuse")
    return first[0]
