"""Run cases, each in a process of its own, and classify their results."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .case import Case

__all__ = ["Outcome", "Runner", "installed"]

#: Seconds after which a case is killed; the import of TensorFlow is the slowest.
TIMEOUT = 120


@dataclass(frozen=True)
class Outcome:
    """The result of a case.

    Attributes
    ----------
    text : str
        The output, or the error, or the signal that killed the process.
    killed : bool
    failed : bool
        Whether it ended with an error.
    warned : tuple of str
        The classes of the warnings.
    route : tuple of str
        `kind` and `why` of arraybridge's route, if it was called.
    """

    text: str
    killed: bool
    failed: bool
    warned: tuple[str, ...] = ()
    route: tuple[str, ...] = ()

    def kind(self, case: Case) -> str:
        """Classify it: one of `KINDS`, ``"right"``, or ``"error"``."""
        if self.killed:
            return "crash"
        if self.text == case.right or (self.failed and self.text.startswith(case.right)):
            return "right"
        return "error" if self.failed else case.kind


class Runner:
    """A process that forks for every case.

    Parameters
    ----------
    load : iterable of str, optional
        Modules to import once, before the first case; by default every case imports its own.
    """

    def __init__(self, load: Iterable[str] = ()) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.child"],
            cwd=Path(__file__).resolve().parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._ask({"load": list(load)})

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def _ask(self, job: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()

    def run(self, code: str) -> Outcome:
        """Run code, and wait for its end."""
        self._ask({"code": code, "timeout": TIMEOUT})
        assert self._process.stdout is not None
        answer = json.loads(self._process.stdout.readline())
        killed, error = answer["signal"], answer["error"]
        return Outcome(
            f"killed by {killed}" if killed else error or answer["out"],
            bool(killed),
            bool(error),
            tuple(answer["warnings"]),
            tuple(answer["routes"][0]) if answer["routes"] else (),
        )


def installed(case: Case) -> bool:
    """Return whether the libraries of a case are installed, without importing them."""
    return all(find_spec(name.partition(".")[0]) is not None for name in case.needs)
