"""Programs of other projects, run unchanged on Arrays: the calls of programs.md."""

from __future__ import annotations

import json
import re
from functools import cache

import numpy as np
import pytest

from tests.support import programs
from tests.support.optional import needs
from tests.support.processes import ROOT, run_python
from tests.support.programs import CAUSES, LIBRARIES, PAGE

PROGRAMS = {f"{p.module}.{p.call}": p for p in programs.programs()}
#: Words of each cause -> what the runner reports.
FAILURES = {
    "writes through a slice": "other values",
    "requires writable memory": "buffer source array is read-only",
    "real roots as floats": "complex128 .* in place of float64",
    "the method `x.sum()`": "no attribute 'sum'",
    "`numpy.zeros_like(y)`": r"takes arraybridge Arrays, got numpy\.ndarray",
    "method `x.view(float)`": "no attribute 'view'",
    "`numpy.hstack`": r"Multiple namespaces|'dtype' must be torch\.dtype",
    "attribute `x.flat`": "no attribute 'flat'",
    "for NumPy alone": r"native ndarray of numpy|'dtype' must be torch\.dtype",
}


@cache
def report(library: str, client: str) -> dict[str, str]:
    """What is wrong with each program on a library, asked once in a process of its own."""
    words = ("-m", "tests.support.programs", library, client)
    process = run_python(*words, cwd=ROOT, env=programs.ENVIRONMENT)
    assert process.returncode == 0, process.stderr[-4000:]
    return json.loads(process.stdout)


@pytest.mark.parametrize(
    ("library", "name"),
    [
        pytest.param(
            library,
            name,
            id=f"{library}: {name}",
            marks=[needs(library), *[pytest.mark.heavy] * (library == "jax")],
        )
        for library in LIBRARIES
        for name in PROGRAMS
    ],
)
def test_program(library, name):
    program = PROGRAMS[name]
    # JAX compiles them long: a process for each client, within the limit of a test.
    wrong = report(library, program.client if library == "jax" else "")[name]
    cause = program.fails.get(library)
    if cause is None:
        assert wrong == ""
    else:
        assert wrong, "it runs now: take the failure off the page"
        assert any(re.search(told, wrong) for words, told in FAILURES.items() if words in cause)


def test_the_page_counts_its_tables_and_has_the_arguments():
    names = {"array-api-compat": "array_api_compat", "array-api-extra": "array_api_extra"}
    names |= {"SciPy": "scipy", "scikit-learn": "sklearn", "all": ""}
    for client, module in names.items():
        found = [p for p in PROGRAMS.values() if module in ("", p.client)]
        counts = [sum(library not in p.fails for p in found) for library in LIBRARIES]
        told = re.search(rf"^\| {client} \| [^|]*\| (.*) \|$", PAGE, re.MULTILINE)
        assert [int(n) for n in told[1].split(" | ")] == [len(found), *counts]
    for name, x in programs.data().items():
        assert f"\n| `{name}` | {x.dtype} | {x.shape} |\n" in PAGE
    assert set(CAUSES.values()) == {cause for p in PROGRAMS.values() for cause in p.fails.values()}


X = np.arange(3.0)


@pytest.mark.parametrize(
    ("expected", "got", "found"),
    [
        (X, X + 1e-12, None),
        (X, X + 1e-6, "other values"),
        (X, X.astype("f4"), "float32"),
        (X, X[:2], r"\(2,\)"),
        (X, X.tolist(), r"result\[0\], result\[1\]"),
        (X, np.float64(1), "a float64 in place of a ndarray"),
        ((1, 0.5, "a"), [1, 0.5 + 1e-12, "a"], None),
        ((1, 0.5), (1, 0.6), "in place of"),
        (1, True, "in place of"),
        ((1, 2), (1,), r"result\[1\]"),
    ],
)
def test_what_the_runner_calls_a_difference(expected, got, found):
    wrong = programs.difference(expected, got, np.ndarray)
    assert re.search(found, wrong) if found else wrong == ""
