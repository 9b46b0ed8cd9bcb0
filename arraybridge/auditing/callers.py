"""Who called: the first frame outside arraybridge and the array libraries."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from ..dispatch.registry import packages
from ..named import NamedTuple

_OURS = __name__.partition(".")[0]

#: The name of frames of ours that have the file, the line and the globals of a caller.
IN_ITS_PLACE = "<arraybridge>"

# What runs other code: nobody's place.
_MACHINERY = ("array_api_compat", "asyncio", "concurrent", "contextlib", "functools", "threading")


class Caller(NamedTuple):
    """A place in a program, and what it called; no frame, which would keep its arrays alive."""

    call: str
    file: str
    line: int
    function: str
    names: dict[str, Any]  # the globals of its module


def package_of(frame: FrameType) -> str:
    """Return the top-level package whose code a frame runs."""
    if frame.f_code.co_name == IN_ITS_PLACE:
        return _OURS
    name = frame.f_globals.get("__name__")
    return name.partition(".")[0] if isinstance(name, str) else ""


def beyond(trace: TracebackType | None, *called: Callable[..., Any]) -> TracebackType | None:
    """Return a traceback without the frames of functions, which it begins with, one in the other.

    A bare ``raise`` adds no frame again.
    """
    for function in called:
        if trace is not None and trace.tb_frame.f_code is getattr(function, "__code__", None):
            trace = trace.tb_next
    return trace


def caller() -> Caller:
    """Find the frame that called arraybridge, and name the function of ours that it called.

    Array libraries' frames are passed over: ``torch.from_dlpack(array)`` is where the program says
    so. So are those of asyncio and of pools of threads. Where there are no others, it is the first
    frame that is not ours.
    """
    skipped = {_OURS, *_MACHINERY, *packages()}
    frame: FrameType | None = sys._getframe(1)
    outside = ours = None
    while frame is not None:
        package = package_of(frame)
        if package == _OURS:
            ours = frame
        elif outside is None:
            outside = frame
        if package not in skipped:
            return _at(frame, ours)
        frame = frame.f_back
    if outside is None:  # Python itself calls, at its end
        return Caller(_named(ours), "<python>", 0, "", {})
    return _at(outside, ours)


def _at(frame: FrameType, ours: FrameType | None) -> Caller:
    code = frame.f_code
    names = frame.f_globals
    return Caller(_named(ours), code.co_filename, frame.f_lineno or 0, code.co_qualname, names)


def _named(frame: FrameType | None) -> str:
    if frame is None:
        return ""
    name = frame.f_code.co_name
    if name == "adapted":
        terms = frame.f_locals.get("terms")
        return f"adapt({terms.function})" if terms is not None else "adapt"
    module = str(frame.f_globals.get("__name__", ""))
    if module.startswith(f"{_OURS}.auditing."):  # in the place of what was called
        name = str(frame.f_locals.get("call", name))
    return name
