"""``audit``: every route that arrays take, from where, and what was copied on the way."""

from __future__ import annotations

from typing import Literal, get_args

from ..meant import closest
from . import audits, functions
from .audits import CopyForbiddenError, CopyWarning
from .log import MOST, AuditLog, Record, Sums

__all__ = ["Audit", "AuditLog", "CopyForbiddenError", "CopyWarning", "Record", "Sums", "audit"]

Copies = Literal["log", "warn", "forbid"]


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

    def __init__(self, copies: Copies, libraries: bool, most: int) -> None:
        if copies not in get_args(Copies):
            known = ", ".join(map(repr, get_args(Copies)))
            guess = closest(copies, get_args(Copies))
            hint = f": did you mean {guess!r}?" if guess else ";"
            raise ValueError(f"copies is {copies!r}{hint} expected one of {known}")
        if type(most) is not int or most < 0:
            expected = f"expected how many records are kept, such as {MOST}"
            raise ValueError(f"most is {most!r}; {expected}")
        self.copies = copies
        self.libraries = bool(libraries)
        self.log = AuditLog(most)

    def __enter__(self) -> AuditLog:
        with audits.exclusive():
            if self in audits.those_on():
                raise RuntimeError("this audit is on already: call arraybridge.audit() again")
            _turn_on((*audits.those_on(), self))
        return self.log

    def __exit__(self, *error: object) -> None:
        with audits.exclusive():
            _turn_on(tuple(audit for audit in audits.those_on() if audit is not self))


def _turn_on(every: tuple[Audit, ...]) -> None:
    audits.turn_on(every)
    functions.watch(any(audit.libraries for audit in every))


def audit(*, copies: Copies = "log", libraries: bool = False, most: int = MOST) -> Audit:
    """Log every route that arrays take inside a ``with`` statement, and the line that asked for it.

    Conversions (``convert``, ``adapt``, ``unify``, ``from_dlpack``, ``asarray``, what a namespace
    borrows), copies (``contiguous``, ``copyto``) and exports of Arrays to other libraries are seen.
    Results are those that there would be without it; calls take longer, as every one is planned.
    Once no audit is on, calls cost what they did before.

    Parameters
    ----------
    copies : {"log", "warn", "forbid"}, default "log"
        ``"warn"``: copies give a :class:`~arraybridge.auditing.CopyWarning` at the caller's line as
        well. ``"forbid"``: the first one, also where it was asked for, raises
        :class:`~arraybridge.auditing.CopyForbiddenError`, before memory is copied.
    libraries : bool, default False
        Watch the libraries' own functions, too, where programs call them: ``numpy.asarray``,
        ``torch.Tensor.cpu``, ``jax.numpy.asarray``, ... (`Library.watched`). Whether one of them
        copied is known afterwards, so that is when it is forbidden.
    most : int, default 10000
        How many records are kept. The sums are of all routes.

    Returns
    -------
    context manager
        Gives an :class:`~arraybridge.auditing.AuditLog`: ``print(log)`` prints a table,
        ``log.places()`` sums by file and line, ``log.to_json()`` is for programs, and iterating
        over it gives :class:`~arraybridge.auditing.Record` after record.

    Raises
    ------
    ValueError
        For another ``copies`` or ``most``.

    Notes
    -----
    An audit is the process's: what other threads and tasks do meanwhile is logged too, with the
    name of the thread, and forbidden too. Audits may be nested and end in any order; each logs
    everything while it is on, and a copy that one of them forbids is forbidden.

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
