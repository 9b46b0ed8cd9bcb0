"""``audit``: count the routes that arraybridge takes, by the line of the program that asked."""

import os
import sys
import threading
import warnings
from types import FrameType
from typing import Any, Literal, NamedTuple, Self, get_args

from .core.records import Route
from .core.registry import forget, packages
from .core.table import OBSERVERS

__all__ = ["CopyForbiddenError", "CopyWarning", "Record", "audit"]

Copies = Literal["log", "warn", "forbid"]
_OURS = __name__.partition(".")[0]


class CopyForbiddenError(AssertionError):
    """A copy inside ``arraybridge.audit(copies="forbid")``; nothing was copied.

    It is no ConversionError, so that nothing tries another way after it.

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
    ...         ab.contiguous(np.zeros((2, 3)).T)
    ...     except ab.auditing.CopyForbiddenError as error:
    ...         print(error.route.nbytes)
    48
    """

    def __init__(self, message: str, route: Route) -> None:
        super().__init__(message, route)
        self.route = route

    def __str__(self) -> str:
        return str(self.args[0])


class CopyWarning(UserWarning):
    """A copy inside ``arraybridge.audit(copies="warn")``.

    Examples
    --------
    >>> import warnings
    >>> from arraybridge.auditing import CopyWarning
    >>> warnings.simplefilter("ignore", CopyWarning)
    """


class Record(NamedTuple):
    """What one line did by one route.

    Attributes
    ----------
    file, line : str, int
        The caller: the first frame outside arraybridge, the array libraries and the modules of
        Python itself.
    route : Route
        The route of the first call, as from :func:`arraybridge.explain`.
    calls : int
        How often the line took it.
    nbytes : int
        The number of bytes that these calls copied; 0 for views.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np
    >>> with ab.audit() as log:
    ...     rows = [ab.contiguous(np.zeros((2, 3)).T) for _ in range(4)]
    >>> log.records[0].copied, log.records[0].calls, log.records[0].nbytes
    (True, 4, 192)
    """

    file: str
    line: int
    route: Route
    calls: int
    nbytes: int

    @property
    def copied(self) -> bool:
        """Whether memory was copied."""
        return self.route.kind != "view"

    def __str__(self) -> str:
        what = f"{self.nbytes:,} bytes copied" if self.copied else "view"
        route = f"{self.route.source} -> {self.route.target}"
        return f"{self.file}:{self.line}: {self.calls:,} x {route}, {what}: {self.route.why}"


class audit:
    """Count the routes that arraybridge takes in a ``with`` statement, by the caller's line.

    It sees conversions (``convert``, ``adapt``, ``unify``, ``from_dlpack``, ``asarray``, namespace
    functions), copies (``contiguous``, ``copyto``), and exports of Arrays to other libraries. It
    does not see what libraries copy by their own functions. Results do not change.

    Parameters
    ----------
    copies : {"log", "warn", "forbid"}, default "log"
        ``"warn"``: a copy also issues a :class:`~arraybridge.auditing.CopyWarning` at the caller's
        line. ``"forbid"``: the first copy, even if requested, raises
        :class:`~arraybridge.auditing.CopyForbiddenError` before memory is copied. ValueError for
        anything else.

    Notes
    -----
    An audit covers the process: it also counts, and forbids, copies by other threads and tasks.
    Audits may be nested and end in any order.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np, torch
    >>> x = np.zeros((2, 3))
    >>> with ab.audit() as log:
    ...     views = [ab.convert(x, "torch") for _ in range(3)]
    ...     copy = ab.convert(x[::-1], "torch")
    >>> log.copies, log.nbytes
    (1, 48)
    >>> [(record.copied, record.calls, record.nbytes) for record in log.records]
    [(True, 1, 48), (False, 3, 0)]
    >>> with ab.audit(copies="forbid"):
    ...     copy = ab.convert(x[::-1], "torch")
    Traceback (most recent call last):
        ...
    arraybridge.auditing.CopyForbiddenError: copies='forbid', but numpy -> torch on cpu: ...
    """

    def __init__(self, *, copies: Copies = "log") -> None:
        if copies not in get_args(Copies):
            expected = ", ".join(map(repr, get_args(Copies)))
            raise ValueError(f"copies is {copies!r}; expected one of {expected}")
        self._copies = copies
        self._records: dict[tuple[object, ...], Record] = {}

    def __enter__(self) -> Self:
        with _lock:
            if self._observe in OBSERVERS:
                raise RuntimeError("this audit is already on: call arraybridge.audit() for another")
            # First those that may refuse a route, so that the others do not log it.
            OBSERVERS.insert(len(OBSERVERS) if self._copies == "log" else 0, self._observe)
            forget()  # conversions that do not notify observers
        return self

    def __exit__(self, *error: object) -> None:
        with _lock:
            if self._observe in OBSERVERS:
                OBSERVERS.remove(self._observe)
            forget()

    def _observe(self, route: Route) -> None:
        """Count a route that is about to be taken; refuse it or warn if it copies."""
        frame = _caller()
        file, line = (frame.f_code.co_filename, frame.f_lineno) if frame else ("<python>", 0)
        if route.kind != "view" and self._copies != "log":
            if self._copies == "forbid":
                remedy = "pass what can be viewed, or copy outside arraybridge.audit"
                raise CopyForbiddenError(f"copies='forbid', but {route}: {remedy}", route)
            names: dict[str, Any] = frame.f_globals if frame else {}
            registry = names.setdefault("__warningregistry__", {})
            module = names.get("__name__") or "<unknown>"
            warnings.warn_explicit(str(route), CopyWarning, file, line, module, registry)
        key = file, line, route.source, route.target, route.kind, route.why
        with _lock:
            first = self._records.get(key) or Record(file, line, route, 0, 0)
            calls, nbytes = first.calls + 1, first.nbytes + route.nbytes
            self._records[key] = first._replace(calls=calls, nbytes=nbytes)

    @property
    def records(self) -> list[Record]:
        """What each line did by each route; first what copied most."""
        return sorted(
            [*self._records.values()], key=lambda x: (-x.nbytes, -x.copied, -x.calls, *x[:2])
        )

    @property
    def copies(self) -> int:
        """The number of routes that copied."""
        return sum(record.calls for record in self.records if record.copied)

    @property
    def nbytes(self) -> int:
        """The number of bytes that were copied."""
        return sum(record.nbytes for record in self.records)

    def __repr__(self) -> str:
        return f"<audit: {self.copies:,} copies of {self.nbytes:,} bytes>"

    def __str__(self) -> str:
        return "\n".join([*map(str, self.records), repr(self)])


def _caller() -> FrameType | None:
    """Return the first frame outside arraybridge, the array libraries and Python's own modules.

    If there is none, the first that is not ours; None if Python itself called, at its end.
    """
    frame: FrameType | None = sys._getframe(2)
    skipped, outside = packages() | sys.stdlib_module_names, None
    while frame is not None:
        name = frame.f_globals.get("__name__")
        package = name.partition(".")[0] if isinstance(name, str) else ""
        if package != _OURS:
            if package not in skipped:
                return frame
            outside = outside or frame
        frame = frame.f_back
    return outside


_lock = threading.RLock()  # finalizers may convert arrays


def _after_fork_in_child() -> None:
    """Replace the lock: another thread of the parent may have held it."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
