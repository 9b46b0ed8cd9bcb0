"""The process that runs cases: it forks for each, so that no case affects the next.

It reads jobs from the standard input, one JSON object per line, and answers each with one.
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
    """Run code in a fork of this process, and return its output, errors, warnings and routes."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as events:
        child = os.fork()
        if not child:
            _inside(code, timeout, out.fileno(), events.fileno())
        _, status = os.waitpid(child, 0)
        out.seek(0)
        events.seek(0)
        result: dict[str, Any] = {
            "out": out.read().rstrip(),
            "error": "",
            "warnings": [],
            "routes": [],
        }
        for line in events:
            kind, text = json.loads(line)
            if kind == "error":
                result[kind] = text
            else:
                result[kind].append(text)
        killed = os.WIFSIGNALED(status)
        result["signal"] = signal.Signals(os.WTERMSIG(status)).name if killed else ""
        return result


def _inside(code: str, timeout: int, out: int, events: int) -> None:
    """Run code in the child, and exit."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(timeout)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream, target in ((0, nowhere), (1, out), (2, nowhere)):
        os.dup2(target, stream)

    def report(kind: str, text: object) -> None:
        os.write(events, (json.dumps([kind, text]) + "\n").encode())

    def warned(message: Warning | str, category: type[Warning], *_: object) -> None:
        if category.__name__ not in reported and not str(message).startswith(BESIDE):
            reported.add(category.__name__)
            report("warnings", category.__name__)

    reported: set[str] = {"DeprecationWarning", "PendingDeprecationWarning", "ResourceWarning"}
    warnings.simplefilter("always")
    warnings.showwarning = warned  # type: ignore[assignment]
    names: dict[str, Any] = {"__name__": "__main__"}
    if "ab." in code:
        import arraybridge

        names["ab"] = _Watched(arraybridge, lambda *route: report("routes", route))
    try:
        exec(compile(code, "case", "exec"), names)
    except Exception as error:
        report("error", f"{type(error).__name__}: {error}")
    sys.stdout.flush()
    os._exit(0)


class _Watched:
    """arraybridge, each `convert` of which is explained first."""

    def __init__(self, module: Any, report: Any) -> None:
        self.module, self.report = module, report

    def convert(self, x: Any, to: str) -> Any:
        try:
            route = self.module.explain(x, to)
            self.report(route.kind, str(route.why))
        except self.module.ConversionError:  # a query, which only its conversion runs
            pass
        return self.module.convert(x, to)


def main() -> None:
    """Answer jobs until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of imports is no answer
    for line in sys.stdin:
        job = json.loads(line)
        for name in job.get("load", ()):
            import_module(name)
        if "code" in job:
            answers.write(json.dumps(run(job["code"], job["timeout"])) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
