"""Programs that nobody here wrote, run unchanged on Arrays; docs/programs.md lists them."""

from __future__ import annotations

import json
import re
from functools import cache

import numpy as np
import pytest

from tests.support.optional import needs
from tests.support.processes import ROOT, run_python
from tests.support.programs import run
from tests.support.programs.page import page
from tests.support.programs.record import LIBRARIES
from tests.support.programs.table import TABLE

PROGRAMS = {f"{module}.{p.call}": p for module, programs in TABLE.items() for p in programs}


@cache
def report(library: str, *options: str) -> dict[str, str]:
    """What is wrong with each program on a library, asked once in a process of its own."""
    words = ("-m", "tests.support.programs.run", library, *options)
    process = run_python(*words, cwd=ROOT, env=run.ENVIRONMENT)
    assert process.returncode == 0, process.stderr[-4000:]
    return json.loads(process.stdout)


def cases():
    """Every program on every library; JAX compiles them long, each for itself."""
    for library in LIBRARIES:
        marks = [needs(library)] + [pytest.mark.heavy] * (library == "jax")
        for name, program in PROGRAMS.items():
            slow = program.slow and library == "jax"
            yield pytest.param(library, name, slow, id=f"{library}: {name}", marks=marks)


@pytest.mark.parametrize(("library", "name", "slow"), list(cases()))
def test_program(library, name, slow):
    options = ["--without-slow"] if library == "jax" else []
    if slow:  # a process for each client, each within the limit of a test
        options = ["--only-slow", "--client", name.partition(".")[0]]
    wrong = report(library, *options)[name]
    failure = PROGRAMS[name].fails.get(library)
    if failure is None:
        assert wrong == ""
    else:
        assert wrong, "it runs now: take the failure out of the table"
        assert re.search(failure.match, wrong)


def test_enough():
    """At least forty functions on each library, of each of the three clients some."""
    for library in LIBRARIES:
        works = {n.partition("(")[0] for n, p in PROGRAMS.items() if library not in p.fails}
        assert len(works) >= 40
        clients = {name.partition(".")[0] for name in works}
        assert clients >= {"scipy", "sklearn", "array_api_extra"}


def test_page():
    """docs/programs.md is what the table says; the versions may be others than the page's."""
    there = (ROOT / "docs" / "programs.md").read_text()
    versions = re.compile(r"^(\| [\w-]+ \|) [\d.]+\w* \|", re.MULTILINE)
    assert versions.sub(r"\1", there) == versions.sub(r"\1", page()), (
        "print it anew: python -m tests.support.programs.page > docs/programs.md"
    )


class TestDifference:
    """What the runner calls a difference."""

    x = np.arange(3.0)

    @pytest.mark.parametrize(
        ("got", "found"),
        [
            (x + 1e-12, ""),
            (x + 1e-6, "other values"),
            (x.astype("f4"), "float32"),
            (x[:2], r"\(2,\)"),
            (x.tolist(), r"result\[0\], result\[1\]"),
            (np.float64(1), "a float64 in place of a ndarray"),
        ],
    )
    def test_arrays(self, got, found):
        wrong = run.difference(self.x, got, np.ndarray)
        assert re.search(found, wrong) if found else wrong == ""

    def test_scalars_and_structure(self):
        assert run.difference((1, 0.5, "a"), [1, 0.5 + 1e-12, "a"], np.ndarray) == ""
        assert "in place of" in run.difference((1, 0.5), (1, 0.6), np.ndarray)
        assert "in place of" in run.difference(1, True, np.ndarray)
        assert "result[1]" in run.difference((1, 2), (1,), np.ndarray)
