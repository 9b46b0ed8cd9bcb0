"""The audits that are on, what they do with a route, and which line of the program caused it.

Audits apply to the whole process: they see every thread and task, as thread pools copy on behalf of
others.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.records import ConversionError
from ..core.registry import forget, packages
from ..core.table import OBSERVERS, Event
from .log import Record

if TYPE_CHECKING:
    from . import Audit


class CopyForbiddenError(ConversionError):
    """A copy inside ``arraybridge.audit(copies="forbid")``; nothing was copied.

    Attributes
    ----------
    route : Route
        The route that was not taken.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np
    >>> with ab.audit(copies="forbid"):
    ...     try:
    ...         ab.convert(np.zeros((2, 3))[::-1], "torch")
    ...     except ab.ConversionError as error:
    ...         print(type(error).__name__, error.route.kind, error.route.nbytes)
    CopyForbiddenError kernel 48
    """

    __module__ = "arraybridge.auditing"  # the public name, which tracebacks print


class CopyWarning(UserWarning):
    """A copy inside ``arraybridge.audit(copies="warn")``.

    Examples
    --------
    >>> import warnings
    >>> import arraybridge as ab
    >>> from arraybridge.auditing import CopyWarning
    >>> import numpy as np
    >>> with warnings.catch_warnings(record=True) as caught, ab.audit(copies="warn"):
    ...     warnings.simplefilter("always", CopyWarning)
    ...     copy = ab.convert(np.zeros((2, 3))[::-1], "torch")
    >>> print(caught[0].message)
    convert copies 48 bytes by numpy's own copy, numpy -> torch on cpu: torch takes no
        negative strides; the layout is negative
    """

    __module__ = "arraybridge.auditing"


_on: tuple[Audit, ...] = ()
_lock, _adding = threading.RLock(), threading.Lock()


def exclusive() -> threading.RLock:
    """Return the lock for turning audits on or off."""
    return _lock


def turn_on(audits: tuple[Audit, ...]) -> None:
    """Replace the audits that are on; the caller must hold the lock."""
    global _on
    before, _on = _on, audits
    if bool(audits) != bool(before):
        OBSERVERS[:] = [_observe] if audits else []
        forget()  # fast paths that skip the observers


def those_on() -> tuple[Audit, ...]:
    """Return the audits that are on."""
    return _on


def _after_fork_in_child() -> None:
    """Replace the locks: another thread of the parent may have held them."""
    global _lock, _adding
    _lock, _adding = threading.RLock(), threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


class _Thread(threading.local):
    """The number of routes logged for a thread, and whether it is in a watched function."""

    count = 0
    watching = False


thread = _Thread()


def _observe(event: Event) -> None:
    """Log a route; raise or warn if an audit requires it."""
    at, (route, info, call) = caller(), event
    if call == "from_dlpack" != at.call:  # an Array that another function makes internally
        return
    record = Record(
        call or at.call, route.source, route.target, route.kind, route.nbytes, route.why,
        route.kernel, info.dtype_name, tuple(info.shape), str(route.device), at.file, at.line,
        at.function, threading.current_thread().name,
    )  # fmt: skip
    audits = _on
    if record.copied:
        if any(audit.copies == "forbid" for audit in audits):
            raise CopyForbiddenError(_forbidden(record), route)
        if any(audit.copies == "warn" for audit in audits):
            registry: dict[Any, Any] = at.names.setdefault("__warningregistry__", {})
            module = at.names.get("__name__") or "<unknown>"
            warnings.warn_explicit(
                _message(record), CopyWarning, at.file, at.line, module, registry
            )
    thread.count += 1
    with _adding:
        for audit in audits:
            audit.log.add(record)


def count_unchecked() -> None:
    """Count a call of which it is unknown whether it copied."""
    for audit in _on:
        audit.log.unchecked += 1


def _message(record: Record) -> str:
    by = f" by {record.kernel}" if record.kernel else ""
    return (
        f"{record.call} copies {record.nbytes:,} bytes{by}, {record.source} -> {record.target} on "
        f"{record.device}: {record.why}"
    )


def _forbidden(record: Record) -> str:
    remedy = "make the copy outside the audit, or omit copies='forbid'"
    if record.kind == "kernel" and "copy=False asks" not in record.why:
        remedy = f"pass an array that {record.target} can view, {remedy}"
    return f"{_message(record)}; arraybridge.audit(copies='forbid') is on: {remedy}"


OURS = __name__.partition(".")[0]

#: The name of our frames that have the file, line and globals of a caller.
IN_ITS_PLACE = "<arraybridge>"

# Packages that run code of others, and so are not a caller's place.
_MACHINERY = ("array_api_compat", "asyncio", "concurrent", "contextlib", "functools", "threading")


class Caller(NamedTuple):
    """A place in a program, and what it called. A frame would keep its arrays alive."""

    call: str
    file: str
    line: int
    function: str
    names: dict[str, Any]  # the globals of its module


def package_of(frame: FrameType) -> str:
    """Return the top-level package whose code a frame runs."""
    if frame.f_code.co_name == IN_ITS_PLACE:
        return OURS
    name = frame.f_globals.get("__name__")
    return name.partition(".")[0] if isinstance(name, str) else ""


def caller() -> Caller:
    """Find the frame that called arraybridge, and the name of the function that it called.

    Frames of array libraries are skipped, so that the place of ``torch.from_dlpack(array)`` is the
    program's line; so are those of asyncio and thread pools. If no others are left, it is the first
    frame that is not ours.
    """
    skipped = {OURS, *_MACHINERY, *packages()}
    frame: FrameType | None = sys._getframe(1)
    found = outside = ours = None
    while frame is not None and found is None:
        package = package_of(frame)
        if package == OURS:
            ours = frame
        elif outside is None:
            outside = frame
        if package not in skipped:
            found = frame
        frame = frame.f_back
    found = found or outside
    if found is None:  # called by Python itself, at its end
        return Caller(_named(ours), "<python>", 0, "", {})
    code = found.f_code
    line = found.f_lineno or 0
    return Caller(_named(ours), code.co_filename, line, code.co_qualname, found.f_globals)


def _named(frame: FrameType | None) -> str:
    """Return the name of the function that a program called, from our outermost frame."""
    if frame is None:
        return ""
    name, known, module = frame.f_code.co_name, frame.f_locals, frame.f_globals.get("__name__", "")
    if name == "adapted":
        options = known.get("options")
        return f"adapt({options.function})" if options is not None else "adapt"
    if module.startswith(f"{OURS}.auditing."):  # a stand-in for a watched function
        return str(known.get("call", name))
    if module.startswith(f"{OURS}.xp.") and "own" in known:  # a wrapper of a library's function
        return str(getattr(known["own"], "__name__", name))
    # Our only functions that native code calls, by a callback or from C.
    called_natively = module.startswith(f"{OURS}.native.") or name == "struct_of"
    return "__dlpack_c_exchange_api__" if called_natively else name
