"""The audits that are on, and what each does about a route.

They are the process's: every thread and every task is seen by all of them, as the copies of a pool
of threads belong to whoever filled it.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from typing import Any, Literal, get_args

from ..dispatch.records import ConversionError, Route
from ..meant import closest
from ..named import NamedTuple
from .callers import Caller, caller
from .log import MOST, AuditLog, Record

__all__ = ["Audit", "CopyForbiddenError", "CopyWarning", "Noted", "on", "put_back", "seen", "taken"]

Copies = Literal["log", "warn", "forbid"]


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

    __module__ = "arraybridge.auditing"  # as tracebacks print it, and as users import it


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


class _Here(threading.local):
    """What a thread has noted.

    Attributes
    ----------
    count : int
        How many routes.
    made : int
        The ``id`` of what the last of them made, where it will be seen again.
    exporting, watching : bool
        Whether an export, or a call of a library's own function, was noted and is going on.
    """

    count = 0
    made = 0
    exporting = watching = False


here = _Here()
_on: tuple[Audit, ...] = ()
_lock = threading.RLock()


class Noted(NamedTuple):
    """A route that may be taken: see `seen`."""

    route: Route
    dtype: str
    shape: tuple[int, ...]
    caller: Caller
    call: str


class Audit:
    """What :func:`arraybridge.audit` returns.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np
    >>> audit = ab.audit(copies="warn", most=100)
    >>> audit.copies, audit.libraries
    ('warn', False)
    >>> with audit as log:
    ...     view = ab.convert(np.zeros(3), "torch")
    >>> audit.log is log, len(log)
    (True, 1)
    """

    def __init__(
        self,
        copies: Copies,
        libraries: bool,
        most: int,
        start: Callable[[bool], None],
        stop: Callable[[bool], None],
    ) -> None:
        if copies not in get_args(Copies):
            known = ", ".join(map(repr, get_args(Copies)))
            guess = closest(copies, get_args(Copies))
            hint = f": did you mean {guess!r}?" if guess else ";"
            raise ValueError(f"copies is {copies!r}{hint} expected one of {known}")
        if type(most) is not int or most < 0:
            raise ValueError(
                f"most is {most!r}; expected how many records are kept, such as {MOST}"
            )
        self.copies = copies
        self.libraries = bool(libraries)
        self.log = AuditLog(most)
        self._start, self._stop = start, stop

    def __enter__(self) -> AuditLog:
        global _on
        with _lock:
            if self in _on:
                raise RuntimeError("this audit is on already: call arraybridge.audit() again")
            self._start(self.libraries)
            _on = (*_on, self)
        return self.log

    def __exit__(self, *error: object) -> None:
        global _on
        with _lock:
            if self in _on:
                _on = tuple(audit for audit in _on if audit is not self)
                self._stop(self.libraries)


def _after_fork_in_child() -> None:
    """Make the locks anew: another thread of the parent may have held them."""
    global _lock
    _lock = threading.RLock()
    for audit in _on:
        audit.log.unlock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def on() -> bool:
    """Whether an audit is on."""
    return bool(_on)


def seen(route: Route, dtype: object, shape: tuple[int, ...], call: str = "") -> Noted:
    """Note a route that is about to be taken: forbid it, or warn, where an audit says so.

    Raises
    ------
    CopyForbiddenError
    """
    at = caller()
    noted = Noted(route, str(dtype), tuple(shape), at, call or at.call)
    if route.kind in ("kernel", "transfer"):
        for audit in _on:
            if audit.copies == "forbid":
                raise CopyForbiddenError(_forbidden(noted), route)
        if any(audit.copies == "warn" for audit in _on):
            _warn(noted)
    return noted


def taken(noted: Noted, result: object = None) -> None:
    """Log a route that was taken."""
    route, at = noted.route, noted.caller
    here.count += 1
    here.made = 0 if result is None else id(result)
    record = Record(
        noted.call, route.source, route.target, route.kind, route.nbytes, route.why, route.kernel,
        noted.dtype, noted.shape, str(route.device), at.file, at.line, at.function,
        threading.current_thread().name,
    )  # fmt: skip
    for audit in _on:
        audit.log.add(record)


def untold() -> None:
    """Count a call that may have copied."""
    for audit in _on:
        audit.log.untold += 1


def _said(noted: Noted) -> str:
    route = noted.route
    by = f" by {route.kernel}" if route.kernel else ""
    return (
        f"{noted.call} copies {route.nbytes:,} bytes{by}, {route.source} -> {route.target} on "
        f"{route.device}: {route.why}"
    )


def _forbidden(noted: Noted) -> str:
    remedy = "make the copy outside the audit, or leave copies='forbid' out"
    if noted.route.kind == "kernel" and "copy=False asks" not in noted.route.why:
        remedy = f"give it an array that {noted.route.target} can view, {remedy}"
    return f"{_said(noted)}; arraybridge.audit(copies='forbid') is on: {remedy}"


def _warn(noted: Noted) -> None:
    at = noted.caller
    registry: dict[Any, Any] = at.names.setdefault("__warningregistry__", {})
    module = at.names.get("__name__") or "<unknown>"
    warnings.warn_explicit(_said(noted), CopyWarning, at.file, at.line, module, registry)


def put_back(replaced: list[tuple[Any, str, Any]]) -> None:
    """Undo replacements, the last first: (owner, name, its own or None where it is inherited)."""
    while replaced:
        owner, name, own = replaced.pop()
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)
