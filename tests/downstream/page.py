"""tests/downstream/results.md, made from the outcomes of the tests."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from datetime import date
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from ..conformance import commit
from .causes import AS_STRICT, EXCUSED, cause_of
from .suites import SUITES

ROOT = Path(__file__).resolve().parents[2]
PAGE = Path(__file__).with_name("results.md")

INTRODUCTION = """\
# Other projects' own tests

SciPy, array-api-extra, scikit-learn and xarray test themselves on several array libraries, and
their wheels contain those tests. Here they run on `arraybridge.xp.<library>` as one more library:
pytest plugins add it to their lists of libraries, and none of their code is in this repository.

The reference is array-api-strict: a test that fails there as well requires more than the standard.
Tests that a project skips or excuses for a library by its name run here, with
[three exceptions](#exceptions-by-name). JAX's x64 is on, and PyTorch's default dtype is float64.

    make downstream
    make downstream SUITES="scipy xarray" LIBRARIES="numpy torch jax" WRITE=1

The command exits with 1 if a test fails here, passes on the reference, and has no cause in
[causes.py](causes.py). [Compatibility](../../docs/compatibility.md) has the counts.
"""


class Result(NamedTuple):
    """The outcome of each test: its name -> (outcome, message)."""

    tests: dict[str, tuple[str, str]]
    minutes: float

    def counts(self) -> Counter[str]:
        return Counter(outcome for outcome, _ in self.tests.values())

    def failed(self, reference: Result, there: str) -> dict[str, str]:
        """What fails here and is ``there`` on the reference: the test's name -> the message."""
        missing = ("", "")
        return {
            name: message
            for name, (outcome, message) in self.tests.items()
            if outcome == "failed" and reference.tests.get(name, missing)[0] == there
        }


def page(found: dict[str, dict[str, Result]]) -> tuple[str, list[str]]:
    """The page, and the tests whose cause is not known.

    Parameters
    ----------
    found : dict
        From a suite to a namespace to its result, the reference's included.
    """
    table = [
        "| tests of | on | passed | skipped | failed | passing on the reference |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    by_cause: dict[str, list[tuple[str, str]]] = defaultdict(list)
    skipped_there: Counter[str] = Counter()
    unknown = []
    for name, results in found.items():
        reference = results[SUITES[name].reference]
        for namespace, result in results.items():
            counts, ours = result.counts(), result.failed(reference, "passed")
            skipped = counts["skipped"] + counts["xfailed"]
            last = "" if result is reference else len(ours)
            table.append(
                f"| {name} {version(SUITES[name].project)} | `{namespace}` | {counts['passed']} "
                f"| {skipped} | {counts['failed']} | {last} |"
            )
            library = namespace.rpartition(".")[2]
            skipped_there.update(
                f"{name}, {library}: {_line(message)}"
                for message in result.failed(reference, "skipped").values()
            )
            for test, message in ours.items():
                cause = cause_of(name, test, message)
                if cause is None:
                    unknown.append(test)
                    cause = f"Not known: {_line(message)}"
                by_cause[cause].append((test, library))
    lines = [
        INTRODUCTION,
        *table,
        "",
        f"Commit {commit(ROOT)[:7]}, {_versions()}; {date.today()}.",
        "",
    ]
    lines += ["## Tests that fail here and pass on the reference", ""]
    for cause, tests in by_cause.items():
        lines += [f"{cause}", "", *_grouped(tests), ""]
    if not by_cause:
        lines += ["Nothing.", ""]
    lines += ["## Tests that fail here and are skipped on the reference", ""]
    lines += [
        "The errors, with the number of tests that end in them: mostly methods and functions that",
        "the standard lacks, for which the projects skip array-api-strict by its name.",
        "",
        *(f"- {count}: {message}" for message, count in skipped_there.most_common()),
        "",
    ]
    lines += ["## Exceptions by name", ""]
    lines += [
        "Tests that treat an Array like array-api-strict, which they recognize by its name:",
        "",
    ]
    lines += [f"- `{test}`: {reason}." for test, reason in AS_STRICT.items()]
    lines += ["", "A test that is skipped, as it is for array-api-strict:", ""]
    lines += [f"- `{test}`: {reason}." for test, reason in EXCUSED.items()]
    return "\n".join(lines) + "\n", unknown


def _grouped(tests: list[tuple[str, str]]) -> list[str]:
    """A list of tests, in which those of one function are one item."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for test, library in tests:
        found[test.partition("[")[0]][library].append(test)
    lines = []
    for function, where in found.items():
        if all(len(names) == 1 for names in where.values()):
            lines += [f"- `{names[0]}` on {library}" for library, names in where.items()]
        else:
            counts = ", ".join(f"{len(names)} on {library}" for library, names in where.items())
            lines.append(f"- `{function}`: {counts}")
    return lines


def _line(message: str) -> str:
    """A message's first line that says something, as code."""
    said = [line for line in message.splitlines() if line.strip(": ") not in ("", "AssertionError")]
    return f"`{said[0][:150]}`" if said else "no message"


def _versions() -> str:
    names = ("numpy", "torch", "jax", "array-api-strict")
    names = tuple(name for name in names if find_spec(name.replace("-", "_")))
    return f"Python {sys.version.split()[0]}, {', '.join(f'{n} {version(n)}' for n in names)}"
