"""The results of the parts, in one file of JSON lines: a part that dies loses at most one item.

A row has "part" and "name", and "began", "values" (a dictionary) or "failed" (what was raised). An
item that began, and neither has values nor failed, was the last thing that a process did. The last
row of a part has "ended" in place of a name: its seconds, and the notes of `parts.run`.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

DEVICE_LOST = 3  # exit status: the device no longer answers in this process, but would in another


class Outcome(NamedTuple):
    """The outcome of a part."""

    rows: list[dict[str, Any]]
    seconds: float = 0.0
    notes: tuple[str, ...] = ("came to no end: the call was stopped",)


class Record:
    """The rows of one part, written as they come."""

    def __init__(self, path: Path, part: str, seconds: float = 3600.0) -> None:
        self.path = path
        self.part = part
        self.ends = time.monotonic() + seconds
        self.begun = {row.get("name") for row in rows(path, part)}

    def write(self, **row: Any) -> None:
        append(self.path, part=self.part, **row)

    def left(self) -> float:
        """Seconds."""
        return self.ends - time.monotonic()

    def begin(self, name: str) -> bool:
        """Whether to do an item: not if an earlier process began it."""
        if name in self.begun:
            return False
        self.begun.add(name)
        self.write(name=name, began=True)
        return True

    def attempt(
        self, name: str, function: Callable[..., Any], *arguments: Any, needs: float = 0.0
    ) -> None:
        """Write what a function returns: a dictionary, or several, each as it is yielded, or None.

        An exception is recorded, and ends the process if the device no longer answers; earlier rows
        stay. An item that ``needs`` more seconds than are left is skipped, and recorded as such.
        """
        if name in self.begun:
            return
        if self.left() < needs:
            self.write(name=name, failed="cut: no time was left for it")
            return
        self.begin(name)
        try:
            for values in _several(function(*arguments)):
                self.write(name=name, values=values)
        except Exception as error:  # a failure is a result too
            self.fail(name, error)
            leave_if_lost()

    def fail(self, name: str, error: BaseException) -> None:
        """Write the exception, with the lines of this repository in its traceback."""
        here = str(Path(__file__).resolve().parents[2])
        frames = [
            f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(here)
        ]
        where = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames[-4:]))
        said = f"{type(error).__name__}: {error}".strip()
        self.write(name=name, failed=f"{said[:1600]} ({where})")
        print(f"{name}: {said}\n{traceback.format_exc()}", file=sys.stderr, flush=True)


def _several(found: Any) -> Iterable[dict[str, Any]]:
    if found is None:
        return []
    return [found] if isinstance(found, dict) else found


def leave_if_lost() -> None:
    """End this process after a lasting device error, such as an illegal address: the next one goes on."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return
    try:
        torch.cuda.synchronize()
    except Exception as error:
        print(f"the device is lost to this process: {error}", file=sys.stderr, flush=True)
        os._exit(DEVICE_LOST)


def append(path: Path, **row: Any) -> None:
    """Add a row, on its own line even if a process died in the middle of one."""
    with path.open("a+b") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
        torn = file.read(1) not in (b"", b"\n")
        file.write(b"\n" * torn + json.dumps(row, default=str).encode() + b"\n")


def rows(path: Path, part: str | None = None) -> list[dict[str, Any]]:
    """The rows so far, of one part or of all; an incomplete line is left out."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if part is None or row["part"] == part:
            found.append(row)
    return found


def drop(path: Path, part: str) -> None:
    """Remove the rows of a part, which is measured again."""
    kept = [row for row in rows(path) if row["part"] != part]
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text("".join(json.dumps(row) + "\n" for row in kept))
    unfinished.replace(path)


def outcomes(path: Path) -> dict[str, Outcome]:
    """The outcome of each part that has rows."""
    found: dict[str, Outcome] = {}
    for row in rows(path):
        before = found.setdefault(row["part"], Outcome([]))
        if "ended" in row:
            found[row["part"]] = before._replace(**row["ended"])
        else:
            before.rows.append(row)
    return found
