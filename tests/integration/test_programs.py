"""Programs of other projects, run unchanged on Arrays: the calls of programs.md."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.optional import needs
from tests.support.processes import ROOT, run_python
from tests.support.programs import ENVIRONMENT, LIBRARIES, PAGE, programs

CLIENTS = {"array_api_compat": "array-api-compat", "array_api_extra": "array-api-extra"}
CLIENTS |= {"scipy": "SciPy", "sklearn": "scikit-learn"}


@pytest.mark.parametrize(
    ("library", "client"),
    [
        pytest.param(
            library, client, marks=[needs(library), *[pytest.mark.heavy] * (library == "jax")]
        )
        for library in LIBRARIES
        for client in CLIENTS
    ],
)
def test_programs(library, client):
    words = ("-m", "tests.support.programs", library, client)
    wrong = json.loads(run_python(*words, cwd=ROOT, env=ENVIRONMENT, check=True).stdout)
    fails = {f"{p.module}.{p.call}" for p in programs() if library in p.fails}
    assert {name: why for name, why in wrong.items() if bool(why) != (name in fails)} == {}


def test_the_page_counts_its_tables():
    for module, name in CLIENTS.items():
        found = [p for p in programs() if p.client == module]
        counts = [sum(library not in p.fails for p in found) for library in LIBRARIES]
        told = re.search(rf"^\| {name} \| [^|]*\| (.*) \|$", PAGE, re.MULTILINE)
        assert [int(n) for n in told[1].split(" | ")] == [len(found), *counts]
