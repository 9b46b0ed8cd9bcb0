"""What a part finds, a line of JSON at a time: a part that crashes or hangs loses nothing but its last item."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

DEVICE_LOST = 3  # exit status: the device answers no more in this process, and would in another


class Record:
    """A file of rows of one part.

    A row has "name", and "began", "values" (a dictionary) or "failed" (what was raised). An item that
    began, and neither has values nor failed, was the last thing that a process did.
    """

    def __init__(self, path: Path, seconds: float = 3600.0) -> None:
        self.path = path
        self.ends = time.monotonic() + seconds
        self.begun = {row["name"] for row in rows(path)}
        if path.exists() and not path.read_bytes().endswith(b"\n"):
            self._append("\n")  # of a process that died in the middle of a line

    def write(self, **row: Any) -> None:
        self._append(json.dumps(row, default=str) + "\n")

    def _append(self, text: str) -> None:
        with self.path.open("a") as file:
            file.write(text)

    def left(self) -> float:
        """Seconds."""
        return self.ends - time.monotonic()

    def begin(self, name: str) -> bool:
        """Whether to do an item: not where an earlier process began it."""
        if name in self.begun:
            return False
        self.begun.add(name)
        self.write(name=name, began=True)
        return True

    def attempt(
        self, name: str, function: Callable[..., Any], *arguments: Any, needs: float = 0.0
    ) -> None:
        """Write what a function returns: a dictionary, or several of them, or None.

        What it raises is written, and ends the process where the device answers no more. An item that
        ``needs`` more seconds than are left is cut, and said to be.
        """
        if name in self.begun:
            return
        if self.left() < needs:
            self.write(name=name, failed="cut: no time was left for it")
            return
        self.begin(name)
        try:
            found = function(*arguments)
        except Exception as error:  # a failure is a result too
            self.fail(name, error)
            leave_if_lost()
            return
        for values in _several(found):
            self.write(name=name, values=values)

    def fail(self, name: str, error: BaseException) -> None:
        """Write what was raised, with the lines of this repository that it came through."""
        here = str(Path(__file__).resolve().parents[2])
        frames = [
            f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(here)
        ]
        where = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames[-4:]))
        said = f"{type(error).__name__}: {error}".strip()
        self.write(name=name, failed=f"{said[:600]} ({where})")
        print(f"{name}: {said}\n{traceback.format_exc()}", file=sys.stderr, flush=True)


def _several(found: Any) -> Iterable[dict[str, Any]]:
    if found is None:
        return []
    return [found] if isinstance(found, dict) else found


def leave_if_lost() -> None:
    """End this process where an error of the device stays (an illegal address, say): the next one goes on."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    try:
        torch.cuda.synchronize()
    except Exception as error:
        print(f"the device is lost to this process: {error}", file=sys.stderr, flush=True)
        os._exit(DEVICE_LOST)


def rows(path: Path) -> list[dict[str, Any]]:
    """The rows so far; a last line that is not whole is left out."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found
