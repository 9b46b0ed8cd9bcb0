"""The benchmarks run, and compare calls that give the same. No time is asserted."""

from __future__ import annotations

import numpy as np
import pytest

import arraybridge as ab

from .support.optional import needs

pytestmark = needs("torch", "jax", "tvm_ffi", "array_api_compat", "array_api_strict")


def items(x: object) -> np.ndarray:
    return np.asarray(ab.convert(x, "numpy", alias_readonly=True))


@pytest.fixture(scope="module")
def operands():
    from benchmarks.calls import Operands

    return Operands()


TITLES = (
    "Doors",
    "Planned views",
    "Ever-new shapes",
    "Small copies",
    "Arrays given to libraries",
    "Namespaces, adapt and unify",
)


@pytest.mark.parametrize("title", TITLES)
def test_calls_beside_their_peers(title, operands):
    """Ours gives the peer's elements, wherever both give an array."""
    from benchmarks.calls import SECTIONS

    (cases,) = (cases for name, _, cases in SECTIONS if name == title)
    compared = 0
    for case in cases(operands):
        ours, peer = case.ours(), case.peer()
        if hasattr(ours, "__dlpack__") and hasattr(peer, "__dlpack__"):
            np.testing.assert_array_equal(items(ours), items(peer), err_msg=case.what)
            compared += 1
    assert compared or title.startswith("Namespaces")


def test_every_section_of_calls_is_tested():
    from benchmarks.calls import SECTIONS

    assert tuple(title for title, _, _ in SECTIONS) == TITLES


def test_the_table_of_calls(operands):
    from benchmarks.calls import doors, report
    from benchmarks.goals import measure

    text = report({"Doors": measure(doors(operands), quick=True)})
    assert "goals kept" in text
    assert text.count("\n| ") == 2 + len(list(doors(operands)))


@pytest.mark.parametrize(
    ("ratio", "least", "most", "ns", "told"),
    [
        (1.0, 900.0, 1.0, None, "kept"),
        (1.1, 900.0, 1.0, None, "**missed**"),
        (9.0, 900.0, None, 1000.0, "kept"),
        (0.5, 1100.0, 1.0, 1000.0, "**missed**"),
        (9.0, 900.0, None, None, ""),
    ],
)
def test_verdicts(ratio, least, most, ns, told):
    from benchmarks.goals import Case, Found, table
    from benchmarks.timing import Pair

    case = Case("call", lambda: None, "peer", lambda: None, most, ns)
    row = table([Found(case, Pair(1000.0, 1000.0 / ratio, ratio, least))], "what")[-1]
    assert row.rstrip("|").rpartition("|")[2].strip() == told


def test_a_section_is_replaced_and_the_others_stay(tmp_path):
    from benchmarks.results import write

    path = tmp_path / "RESULTS.md"
    for text, heading in [("old", "a"), ("other", "b"), ("new", "a")]:
        write(text, heading, path)
    assert path.read_text() == "# Results\n\n## a\n\nnew\n\n## b\n\nother\n"
