"""``audit``: log every route that arrays take, the calling line, and what was copied."""

from __future__ import annotations

from typing import Literal, get_args

from ..suggest import closest
from . import audits, functions
from .audits import CopyForbiddenError, CopyWarning
from .log import MOST, AuditLog, Record, Sums

__all__ = ["Audit", "AuditLog", "CopyForbiddenError", "CopyWarning", "Record", "Sums", "audit"]

Copies = Literal["log", "warn", "forbid"]


class Audit:
    """The result of :func:`arraybridge.audit`: a context manager.

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

    def __init__(self, copies: Copies, libraries: bool, most: int) -> None:
        if copies not in get_args(Copies):
            known = ", ".join(map(repr, get_args(Copies)))
            guess = closest(copies, get_args(Copies))
            hint = f": did you mean {guess!r}?" if guess else ";"
            raise ValueError(f"copies is {copies!r}{hint} expected one of {known}")
        if type(most) is not int or most < 0:
            expected = f"expected the number of records to keep, such as {MOST}"
            raise ValueError(f"most is {most!r}; {expected}")
        self.copies = copies
        self.libraries = bool(libraries)
        self.log = AuditLog(most)

    def __enter__(self) -> AuditLog:
        with audits.exclusive():
            if self in audits.those_on():
                raise RuntimeError("this audit is already on: call arraybridge.audit() for another")
            _turn_on((*audits.those_on(), self))
        return self.log

    def __exit__(self, *error: object) -> None:
        with audits.exclusive():
            _turn_on(tuple(audit for audit in audits.those_on() if audit is not self))


def _turn_on(every: tuple[Audit, ...]) -> None:
    audits.turn_on(every)
    functions.watch(any(audit.libraries for audit in every))


def audit(*, copies: Copies = "log", libraries: bool = False, most: int = MOST) -> Audit:
    """Log every route that arrays take in a ``with`` statement, with the line that caused it.

    The log has conversions (``convert``, ``adapt``, ``unify``, ``from_dlpack``, ``asarray``,
    namespace functions), copies (``contiguous``, ``copyto``), and exports of Arrays to other
    libraries. Results do not change. Calls take longer inside the statement, but not after it.

    Parameters
    ----------
    copies : {"log", "warn", "forbid"}, default "log"
        ``"warn"``: a copy also issues a :class:`~arraybridge.auditing.CopyWarning` at the caller's
        line. ``"forbid"``: the first copy, even if requested, raises
        :class:`~arraybridge.auditing.CopyForbiddenError` before memory is copied.
    libraries : bool, default False
        Also watch the libraries' own functions, such as ``numpy.asarray``, ``torch.Tensor.cpu`` and
        ``jax.numpy.asarray`` (see `Library.watched`). Whether such a function copied is known only
        after its call, so a forbidden copy raises then.
    most : int, default 10000
        The largest number of records in the log. Sums include all routes.

    Returns
    -------
    context manager
        It returns an :class:`~arraybridge.auditing.AuditLog`: ``print(log)`` prints a table,
        ``log.places()`` returns sums by file and line, ``log.to_json()`` returns JSON, and
        iteration yields each :class:`~arraybridge.auditing.Record`.

    Raises
    ------
    ValueError
        If ``copies`` or ``most`` is invalid.

    Notes
    -----
    An audit covers the process: it also logs, and forbids, copies by other threads and tasks, with
    the name of the thread. Audits may be nested and end in any order. Each logs all routes while it
    is active.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np, torch
    >>> x = np.zeros((2, 3))
    >>> with ab.audit() as log:
    ...     view = ab.convert(x, "torch")
    ...     copy = ab.convert(x[::-1], "torch")
    >>> for record in log:
    ...     print(record.kind, record.nbytes, record.why)
    view 0 torch takes it as it is
    kernel 48 torch takes no negative strides; the layout is negative
    >>> with ab.audit(copies="forbid"):
    ...     ab.convert(x[::-1], "torch")
    Traceback (most recent call last):
        ...
    arraybridge.auditing.CopyForbiddenError: convert copies 48 bytes by numpy's own copy,
        numpy -> torch on cpu: torch takes no negative strides; the layout is negative; ...
    """
    return Audit(copies, libraries, most)
