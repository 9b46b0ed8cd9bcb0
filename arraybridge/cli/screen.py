"""Exit statuses, tables and progress bars, drawn by rich on a terminal if it is installed.

rich is optional: it brings four packages to a program that may never run a command, and only adds
colors and better progress bars. Files and pipes get plain text in either case, so that output
does not depend on the installed packages.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from textwrap import wrap
from typing import Any, TextIO


class Status(IntEnum):
    """The exit statuses; ``audit`` returns that of the program it runs."""

    FINE = 0
    REFUSED = 1
    USAGE = 2
    MISSING = 3
    INTERRUPTED = 130  # 128 + the number of the signal, as in a shell
    CLOSED_PIPE = 141


#: Columns without a terminal and without ``COLUMNS``.
WIDE = 120
GAP = "  "
STYLES = {"view": "green", "copied": "yellow", "transfer": "cyan", "refused": "red"}

Row = Sequence[str]


def width() -> int:
    """Columns: from ``COLUMNS``, the terminal, or `WIDE`."""
    return max(shutil.get_terminal_size((WIDE, 24)).columns, 20)


def room(stream: TextIO) -> int | None:
    """Columns of a stream; None if it is no terminal and ``COLUMNS`` is not set."""
    if os.environ.get("COLUMNS"):
        return width()
    if not stream.isatty():
        return None
    return max(os.get_terminal_size(stream.fileno()).columns or WIDE, 20)  # 0: unknown


def table(rows: Iterable[Row], header: Row = ()) -> str:
    """Lay out rows in columns; fold cells if the screen is too narrow."""
    cells = [list(map(str, row)) for row in rows]
    rich = _rich() if _colored(sys.stdout) else None
    return _rich_table(rich, cells, header) if rich else _plain_table(cells, header)


def counts(rows: Sequence[Row], header: Row) -> str:
    """Lay out a table of many narrow columns, in several parts if they do not fit."""
    sizes = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    first, room = sizes[0], width()
    parts, begin = [], 1
    while begin < len(sizes):
        end, taken = begin + 1, first + len(GAP) + sizes[begin]
        while end < len(sizes) and taken + len(GAP) + sizes[end] <= room:
            taken, end = taken + len(GAP) + sizes[end], end + 1
        some = [[row[0], *row[begin:end]] for row in (header, *rows)]
        parts.append(table(some[1:], some[0]))
        begin = end
    return "\n\n".join(parts)


def fold(text: str, columns: int | None = None) -> str:
    """Fold a sentence to the screen's width, and indent all lines but the first."""
    lines = wrap(
        text,
        columns or width(),
        subsequent_indent=GAP,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines)


@contextmanager
def progress(total: int | None, what: str) -> Iterator[Callable[[str], None]]:
    """Show a bar on standard error while the block runs, if that is a terminal.

    Yields the function to call after each of ``total`` steps (None: unknown) with the name of
    that step; any thread may call it.
    """
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    bar = _rich_bar if _rich() and _capable() else _plain_bar
    with bar(total, what) as advance:
        yield advance


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Show a message on standard error while the block runs, if that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    line = what[: width() - 1]
    print(line, end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        print(f"\r{' ' * len(line)}\r", end="", file=sys.stderr, flush=True)


def size(nbytes: int) -> str:
    """Format a number of bytes: ``3.1 MB``."""
    amount, unit = float(nbytes), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{nbytes} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"


def _plain_table(cells: list[list[str]], header: Row) -> str:
    rows = [[*header], *cells] if header else cells
    if not rows:
        return ""
    sizes = _fitted([max(map(len, column)) for column in zip(*rows, strict=True)])
    lines = []
    for row in rows:
        folded = [
            wrap(cell, size, break_on_hyphens=False) or [""]
            for cell, size in zip(row, sizes, strict=True)
        ]
        for at in range(max(map(len, folded))):
            parts = [
                (part[at] if at < len(part) else "").ljust(size)
                for part, size in zip(folded, sizes, strict=True)
            ]
            lines.append(GAP.join(parts).rstrip())
        if header and row is rows[0]:
            lines.append(GAP.join("-" * size for size in sizes))
    return "\n".join(lines)


def _fitted(sizes: list[int]) -> list[int]:
    """Narrow the widest columns until the rows fit the screen."""
    over = sum(sizes) + len(GAP) * (len(sizes) - 1) - width()
    while over > 0 and max(sizes) > 8:
        widest = sizes.index(max(sizes))
        second = max([size for size in sizes if size < sizes[widest]], default=8)
        taken = min(over, max(sizes[widest] - max(second, 8), 1))
        sizes[widest] -= taken
        over -= taken
    return sizes


def _colored(stream: TextIO) -> bool:
    """Whether to print escape codes; see https://no-color.org and https://force-color.org."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return stream.isatty() and _capable()


def _capable() -> bool:
    return os.environ.get("TERM", "dumb") != "dumb" and not os.environ.get("NO_COLOR")


def _rich() -> Any:
    """Import rich if it is installed; else return None."""
    try:
        import rich.console
        import rich.progress
        import rich.table
        import rich.text
    except ImportError:
        return None
    return rich


def _rich_table(rich: Any, cells: list[list[str]], header: Row) -> str:
    made = rich.table.Table(
        box=None,
        show_header=bool(header),
        header_style="bold",
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    columns = len(header) or max(map(len, cells), default=0)
    for at in range(columns):
        made.add_column(header[at] if header else "", overflow="fold", style=None if at else "bold")
    for row in cells:
        made.add_row(*(rich.text.Text(cell, style=_style(cell)) for cell in row))
    # To a string first: a closed pipe then raises its error in the usual place.
    console = rich.console.Console(
        file=io.StringIO(), width=width(), force_terminal=True, highlight=False
    )
    console.print(made)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def _style(cell: str) -> str:
    first = cell.replace(":", " ").replace(",", " ").split(" ")[0]
    return STYLES.get(first, "")


@contextmanager
def _rich_bar(total: int | None, what: str) -> Iterator[Callable[[str], None]]:
    from rich import progress as bars
    from rich.console import Console

    columns = (
        bars.TextColumn("{task.description}", markup=False),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(),
    )
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, advance=1, description=done)


@contextmanager
def _plain_bar(total: int | None, what: str) -> Iterator[Callable[[str], None]]:
    count, lock = 0, threading.Lock()

    def show(done: str) -> None:
        room = width() - 1
        of = "" if total is None else f" of {total}"
        line = f"{count}{of}  {done}"[:room]
        print(f"\r{line:{room}}", end="", file=sys.stderr, flush=True)

    def advance(done: str) -> None:
        nonlocal count
        with lock:
            count += 1
            show(done)

    show(what)
    try:
        yield advance
    finally:
        print(f"\r{' ' * (width() - 1)}\r", end="", file=sys.stderr, flush=True)
