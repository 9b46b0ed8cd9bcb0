"""The log of an audit: its records, their sums by place, and how both are printed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..core.records import PRINTED, route_text

#: The most records that a log keeps, and the most different lines of its table.
MOST = 10_000

_SHOWN = 40  # lines of a printed table
_WHY, _PLACE = 60, 48  # characters of the widest columns


class Record(NamedTuple):
    """One route that was taken.

    Attributes
    ----------
    call : str
        The call, such as ``"convert"``, ``"adapt(f)"``, ``"__dlpack__"`` or ``"numpy.asarray"``.
    source, target : str
        The names of the libraries.
    kind : {"view", "kernel", "transfer"}
        As in :func:`arraybridge.explain`. ``"kernel"`` is any copy on one device.
    nbytes : int
        The number of bytes that were copied; 0 for a view.
    why : str
        The reason for the route.
    kernel : str or None
        The name of what made the copy.
    dtype : str
        The data type of the array.
    shape : tuple of int
        The shape of the array.
    device : str
        The device of the result.
    file, line, function : str, int, str
        The caller: the first frame outside arraybridge and the array libraries.
    thread : str
        The name of the thread.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np
    >>> with ab.audit() as log:
    ...     y = ab.convert(np.zeros((2, 3))[::-1], "torch")
    >>> record = log.records[0]
    >>> record.call, record.source, record.target, record.kind, record.copied
    ('convert', 'numpy', 'torch', 'kernel', True)
    >>> record.nbytes, record.dtype, record.shape, record.why
    (48, 'float64', (2, 3), 'torch takes no negative strides; the layout is negative')
    >>> record.place == f"{record.file}:{record.line}"
    True
    """

    call: str
    source: str
    target: str
    kind: str
    nbytes: int
    why: str
    kernel: str | None
    dtype: str
    shape: tuple[int, ...]
    device: str
    file: str
    line: int
    function: str
    thread: str

    @property
    def copied(self) -> bool:
        """Whether memory was copied."""
        return self.kind != "view"

    @property
    def place(self) -> str:
        """``file:line``."""
        return f"{self.file}:{self.line}"

    def __str__(self) -> str:
        return f"{self.place}: {self.call}: {route_text(self)}"


class Sums(NamedTuple):
    """The sums of a place: number of ``calls``, number of ``copies``, and ``nbytes`` copied.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np
    >>> with ab.audit() as log:
    ...     views = [ab.convert(np.zeros(4), "torch") for _ in range(3)]
    ...     copy = ab.convert(np.zeros(4)[::-1], "torch")
    >>> calls, copies, nbytes = log.total
    >>> calls, copies, nbytes
    (4, 1, 32)
    """

    calls: int
    copies: int
    nbytes: int

    def plus(self, record: Record) -> Sums:
        """Return the sums with one more record."""
        calls, copies, nbytes = self
        return Sums(calls + 1, copies + record.copied, nbytes + record.nbytes)


_NOTHING = Sums(0, 0, 0)


_HEAD = ("bytes", "copies", "calls", "route", "call", "why", "where")


class AuditLog:
    """The routes taken during an audit; iterate over it for its records.

    Attributes
    ----------
    records : list of Record
        The first ``most`` routes, in order.
    dropped : int
        The number of routes without a record. The sums include them.
    total : Sums
        The sums over all routes.
    unchecked : int
        The number of calls of the libraries' own functions that may or may not have copied.

    Examples
    --------
    >>> import json
    >>> import arraybridge as ab
    >>> import numpy as np
    >>> with ab.audit() as log:
    ...     for x in (np.zeros(4), np.zeros((2, 3)).T, np.zeros(3)[::-1]):
    ...         y = ab.convert(x, "torch")
    >>> log.summary()
    '3 routes, 1 copy of 24 bytes'
    >>> log.total
    Sums(calls=3, copies=1, nbytes=24)
    >>> [sums.nbytes for sums in log.places().values()]
    [24]
    >>> json.loads(log.to_json())["copies"]
    1
    >>> rows, more = log.rows()
    >>> rows[0][:4]
    ('24', '1', '1', 'numpy -> torch: copied')
    """

    def __init__(self, most: int = MOST) -> None:
        self.records: list[Record] = []
        self.dropped = 0
        self.unchecked = 0
        self.total = _NOTHING
        self._most = most
        self._lines: dict[tuple[Any, ...], Sums] = {}

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"records": [*self.records], "_lines": {**self._lines}}

    def add(self, record: Record) -> None:
        """Count a route, and keep its record if there is room. Not thread-safe."""
        self.total = self.total.plus(record)
        if len(self.records) < self._most:
            self.records.append(record)
        else:
            self.dropped += 1
        line = (
            record.file, record.line, record.call, record.source, record.target, record.kind,
            record.why,
        )  # fmt: skip
        if line not in self._lines and len(self._lines) >= MOST:
            line = _ELSEWHERE  # generated code may have any number of places
        self._lines[line] = self._lines.get(line, _NOTHING).plus(record)

    def places(self) -> dict[str, Sums]:
        """Return the sums by ``file:line``, ordered by bytes, then copies, then calls."""
        found: dict[str, Sums] = {}
        for line, sums in [*self._lines.items()]:
            place = f"{line[0]}:{line[1]}"
            before = found.get(place, _NOTHING)
            found[place] = Sums(*(a + b for a, b in zip(before, sums, strict=True)))
        return dict(sorted(found.items(), key=_weight))

    def to_json(self, *, indent: int | None = None) -> str:
        """Return totals, sums by place, and records as JSON."""
        return json.dumps(
            {
                **self.total._asdict(),
                "dropped": self.dropped,
                "unchecked": self.unchecked,
                "places": {place: sums._asdict() for place, sums in self.places().items()},
                "records": [record._asdict() for record in [*self.records]],
            },
            indent=indent,
        )

    def __iter__(self) -> Iterator[Record]:
        return iter([*self.records])

    def __len__(self) -> int:
        return self.total.calls

    def __bool__(self) -> bool:
        return True  # even without records

    def __repr__(self) -> str:
        return f"<AuditLog: {self.summary()}>"

    def summary(self) -> str:
        """Return one line with the number of routes, copies and bytes."""
        calls, copies, nbytes = self.total
        copied = f"{_counted(copies, 'copy', 'copies')} of {nbytes:,} bytes"
        text = f"{_counted(calls, 'route', 'routes')}, {copied}"
        if self.dropped:
            text += f"; the last {self.dropped:,} are only in the sums"
        if self.unchecked:
            text += f"; {_counted(self.unchecked, 'call', 'calls')} could not be checked"
        return text

    def __str__(self) -> str:
        rows, more = self.rows()
        if not rows:
            return self.summary()
        rows = [_HEAD, *rows]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        text = [
            "  ".join(
                cell.rjust(width) if i < 3 else cell.ljust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        return "\n".join([*text, *more, self.summary()])

    def rows(self) -> tuple[list[tuple[str, ...]], list[str]]:
        """Return the rows of the printed table, and a line that counts omitted rows, if any."""
        lines = sorted([*self._lines.items()], key=_weight)
        left = len(lines) - _SHOWN
        more = [f"... and {left:,} more"] if left > 0 else []
        return [_row(line, sums) for line, sums in lines[:_SHOWN]], more


_ELSEWHERE: tuple[Any, ...] = ("elsewhere", 0, "...", "...", "...", "...", "too many places")


def _weight(entry: tuple[Any, Sums]) -> tuple[Any, ...]:
    calls, copies, nbytes = entry[1]
    return -nbytes, -copies, -calls, entry[0]


def _row(line: tuple[Any, ...], sums: Sums) -> tuple[str, ...]:
    file, at, call, source, target, kind, why = line
    return (
        f"{sums.nbytes:,}",
        f"{sums.copies:,}",
        f"{sums.calls:,}",
        f"{source} -> {target}: {PRINTED.get(kind, kind)}",
        _short(call, 32),
        _short(why, _WHY),
        _short(f"{file}:{at}", _PLACE, end=True),
    )


def _short(text: str, width: int, *, end: bool = False) -> str:
    """Cut a text to a width, at its end or (`end`) at its beginning."""
    text = " ".join(text.split())
    if len(text) <= width:
        return text
    return "..." + text[3 - width :] if end else text[: width - 3] + "..."


def _counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
