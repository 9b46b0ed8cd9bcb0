"""Run the cases of cases.md: python -m examples.unsafe_conversions [--json] [name ...].

Each runs in a fork of this process, which has imported its libraries, so that no case affects the next.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).with_name("cases.md")
SECONDS = 120  # after which a case is killed; the import of TensorFlow is the slowest
RUNS = 20  # of a case that does not go wrong in every run


class Case(NamedTuple):
    """A few lines of code, the conversions in it, and what it must print.

    Attributes
    ----------
    name : str
    own : list of str
        The libraries' own conversions, as expressions. The code has the first.
    ours : str
        The expression with arraybridge that replaces them.
    right : str
        What the code must print; of an error, how its text begins.
    every : bool
        Whether it goes wrong in every run.
    code : str
    """

    name: str
    own: list[str]
    ours: str
    right: str
    every: bool
    code: str

    @property
    def needs(self) -> list[str]:
        """The modules that the code imports."""
        found = re.findall(r"^import ([\w.]+)", self.code, re.MULTILINE)
        return [name for name in found if name.partition(".")[0] not in sys.stdlib_module_names]

    def outcome(self, way: str) -> tuple[str, str]:
        """Run it with one of the conversions: "right", "wrong", "error" or "crash", and its output."""
        for _ in range(1 if self.every or way == self.ours else RUNS):
            found = _forked(self.code.replace(self.own[0], way))
            kind, text = found
            if text == self.right or (kind == "error" and text.startswith(self.right)):
                found = "right", text
            if found[0] != "right":
                break
        return found


def cases() -> dict[str, Case]:
    """Return the cases of the page, by name."""
    found = {}
    for part in PAGE.read_text().split("\n## ")[1:]:
        name, _, text = part.partition("\n")
        listed = re.findall(r"^- (\w+): `(.*)`$", text, re.MULTILINE)
        own = [value for key, value in listed if key == "own"]
        (ours,) = (value for key, value in listed if key == "ours")
        (right,) = (value.replace("\\n", "\n") for key, value in listed if key == "right")
        code = text.partition("```python\n")[2].partition("```")[0]
        found[name] = Case(name, own, ours, right, "\n- not in every run\n" not in text, code)
    return found


def _forked(code: str) -> tuple[str, str]:
    """Run code in a fork: "wrong" if it ends, "error" or "crash"; and its output or error."""
    with tempfile.TemporaryFile("w+") as out:
        child = os.fork()
        if not child:
            _inside(code, out.fileno())
        _, status = os.waitpid(child, 0)
        out.seek(0)
        text = out.read().rstrip()
    if os.WIFSIGNALED(status):
        return "crash", f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
    return ("error" if os.WEXITSTATUS(status) else "wrong"), text


def _inside(code: str, out: int) -> None:
    signal.alarm(SECONDS)
    os.dup2(out, 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    status = 0
    try:
        exec(compile(f"import arraybridge as ab\n{code}", "case", "exec"), {})
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
        status = 1
    sys.stdout.flush()
    os._exit(status)


def main() -> None:
    """Print what each conversion of each case does."""
    known = cases()
    parser = argparse.ArgumentParser(prog="python -m examples.unsafe_conversions")
    parser.add_argument("names", nargs="*", metavar="case", help=f"of {', '.join(known)}")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each conversion")
    options = parser.parse_args()
    for case in [known[name] for name in options.names] or known.values():
        if not all(find_spec(name.partition(".")[0]) for name in case.needs):
            continue
        for name in ("arraybridge", *case.needs):
            import_module(name)
        for way in (*case.own, case.ours):
            kind, text = case.outcome(way)
            if options.json:
                print(json.dumps([case.name, way, kind, text]), flush=True)
            else:
                print(f"{case.name}: {way}: {kind}\n    {text}", flush=True)


if __name__ == "__main__":
    main()
