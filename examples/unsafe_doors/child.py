"""The process that runs cases: it forks for each, so that what one does is over with it.

Reads jobs from the standard input, one JSON object a line, and answers each with one.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import tempfile
import warnings
from importlib import import_module
from typing import Any

#: Warnings of the libraries that are about their installation.
BESIDE = ("No ccache found", "Could not find the nvJitLink")


def run(code: str, timeout: int) -> dict[str, Any]:
    """Run code in a fork of this process, and tell what came of it."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as events:
        child = os.fork()
        if not child:
            _inside(code, timeout, out.fileno(), events.fileno())
        _, status = os.waitpid(child, 0)
        out.seek(0)
        events.seek(0)
        told: dict[str, Any] = {
            "out": out.read().rstrip(),
            "error": "",
            "warnings": [],
            "routes": [],
        }
        for line in events:
            kind, text = json.loads(line)
            if kind == "error":
                told[kind] = text
            else:
                told[kind].append(text)
        killed = os.WIFSIGNALED(status)
        told["signal"] = signal.Signals(os.WTERMSIG(status)).name if killed else ""
        return told


def _inside(code: str, timeout: int, out: int, events: int) -> None:
    """The child: never returns."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(timeout)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream, target in ((0, nowhere), (1, out), (2, nowhere)):
        os.dup2(target, stream)

    def tell(kind: str, text: object) -> None:
        os.write(events, (json.dumps([kind, text]) + "\n").encode())

    def warned(message: Warning | str, category: type[Warning], *_: object) -> None:
        if category.__name__ not in told and not str(message).startswith(BESIDE):
            told.add(category.__name__)
            tell("warnings", category.__name__)

    told: set[str] = {"DeprecationWarning", "PendingDeprecationWarning", "ResourceWarning"}
    warnings.simplefilter("always")
    warnings.showwarning = warned  # type: ignore[assignment]
    names: dict[str, Any] = {"__name__": "__main__"}
    if "ab." in code:
        import arraybridge

        names["ab"] = _Watched(arraybridge, lambda *route: tell("routes", route))
    try:
        exec(compile(code, "case", "exec"), names)
    except Exception as error:
        tell("error", f"{type(error).__name__}: {error}")
    sys.stdout.flush()
    os._exit(0)


class _Watched:
    """arraybridge, each `convert` of which is explained first."""

    def __init__(self, module: Any, tell: Any) -> None:
        self.module, self.tell = module, tell

    def convert(self, x: Any, to: str) -> Any:
        try:
            route = self.module.explain(x, to)
            self.tell(route.kind, str(route.why))
        except self.module.ConversionError:  # a query, which to look at would run
            pass
        return self.module.convert(x, to)


def main() -> None:
    """Answer jobs until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print while they are imported is no answer
    for line in sys.stdin:
        job = json.loads(line)
        for name in job.get("load", ()):
            import_module(name)
        if "code" in job:
            answers.write(json.dumps(run(job["code"], job["timeout"])) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
