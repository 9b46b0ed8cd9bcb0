"""The benchmarks run, and compare calls that give the same. No time is asserted."""

from __future__ import annotations

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.tree import leaves
from tests.support.optional import needs

pytestmark = needs("torch", "jax", "tvm_ffi", "array_api_compat", "array_api_strict")


def items(x: object) -> np.ndarray:
    return np.asarray(ab.convert(x, "numpy", alias_readonly=True))


@pytest.fixture(scope="module")
def operands():
    from benchmarks.calls import Operands

    return Operands()


def test_calls_beside_their_peers(operands):
    """Ours gives the peer's elements, wherever both give an array."""
    from benchmarks.calls import SECTIONS

    for title, _, cases in SECTIONS:
        compared = 0
        for case in cases(operands):
            ours, peer = leaves(case.ours()), leaves(case.peer())
            for path in ours.keys() & peer.keys():
                x, y = ours[path], peer[path]
                if hasattr(x, "__dlpack__") and hasattr(y, "__dlpack__"):
                    np.testing.assert_array_equal(items(x), items(y), err_msg=case.what)
                    compared += 1
        assert compared or title.startswith("Namespaces")


def test_the_table_of_calls(operands):
    from benchmarks.calls import plain, report
    from benchmarks.goals import measure

    text = report({"Fast paths": measure(plain(operands), quick=True)})
    assert "goals kept" in text
    assert text.count("\n| ") == 2 + len(list(plain(operands)))


@pytest.mark.parametrize(
    ("ratio", "least", "most", "ns", "told"),
    [
        (1.0, 900.0, 1.0, None, "kept"),
        (1.1, 900.0, 1.0, None, "**missed** (ratio)"),
        (9.0, 900.0, None, 1000.0, "kept"),
        (0.5, 1100.0, 1.0, 1000.0, "**missed** (ns)"),
        (1.5, 1100.0, 1.0, 1000.0, "**missed** (ratio, ns)"),
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
    text = path.read_text()
    assert text.startswith("# Results\n")
    assert text.endswith("\n\n## a\n\nnew\n\n## b\n\nother\n")
    write("last", "c", path, order=("c", "b"))
    assert path.read_text().endswith("\n\n## c\n\nlast\n\n## b\n\nother\n")
    assert "## a" not in path.read_text()


SHOWN = """# Results

## contiguous: `python -m benchmarks.contiguous`

head

| layout | limit | ours | NumPy | PyTorch | TensorFlow |
| --- | ---: | ---: | ---: | ---: | ---: |
| a | 10.0 | 9.0 | 0.5 | 1.0 |  |
| b & c | 10.0 | 30.0 | 0.5 | 1.0 | 4.0 |

## copy_sizes: `python -m benchmarks.copy_sizes`

### 4 KB to 4 MB

| layout | compared with | 4 KB | 1024 KB |
| --- | --- | ---: | ---: |
| a | NumPy | **0.90** | 4.00 |
| a | PyTorch | 1.20 | 400.00 |
"""


def test_tables_are_read_back():
    from benchmarks.results import heading, sections, tables

    found = sections(SHOWN)
    assert list(found) == [heading("contiguous"), heading("copy_sizes")]
    (rows,) = tables(found[heading("contiguous")]).values()
    names = ("layout", "limit", "ours", "NumPy", "PyTorch", "TensorFlow")
    assert rows[0] == dict(zip(names, ("a", "10.0", "9.0", "0.5", "1.0", ""), strict=True))
    assert list(tables(found[heading("copy_sizes")])) == ["4 KB to 4 MB"]


def test_charts_are_drawn_of_what_is_there(tmp_path):
    from xml.etree import ElementTree

    from benchmarks.chart import draw_all

    (tmp_path / "RESULTS.md").write_text(SHOWN)
    draw_all(tmp_path, tmp_path / "RESULTS.md")
    assert sorted(path.name for path in tmp_path.glob("*.svg")) == ["contiguous.svg", "sizes.svg"]
    for path in tmp_path.glob("*.svg"):
        root = ElementTree.parse(path).getroot()
        _, _, width, height = map(float, root.get("viewBox").split())
        for node in root.iter():
            for name, most in (("x", width), ("x2", width), ("y", height), ("cy", height)):
                assert 0 <= float(node.get(name, 0)) <= most


def test_the_figures_in_docs_are_of_the_results(tmp_path):
    """Whoever writes RESULTS.md fills the pages: ``python -m benchmarks.page``."""
    from benchmarks.page import DOCS, PAGES, PLACE, filled
    from benchmarks.results import RESULTS

    for name in PAGES:
        text = (DOCS / name).read_text()
        assert PLACE.search(text), name
        assert filled(text, RESULTS.read_text()) == text, name


SMALL = ("transpose, odd sizes", "inner slice", "rows flipped")


@pytest.fixture
def small_layouts():
    from tests.support.small_layouts import small_layouts as small

    return [layout for layout in small() if layout.name in SMALL]


def test_copies_into_a_buffer(small_layouts):
    from benchmarks.contest import measure, summary, table

    rows = measure(small_layouts, 1)
    assert {"limit", "ours", "numpy", "torch"} <= set(rows[0].seconds)
    assert len(table(rows)) == 2 + len(SMALL)
    assert "of the limit" in "\n".join(summary(rows))


def test_allocated_copies(small_layouts):
    from benchmarks.allocated import fresh, fresh_verdict, loop_verdict
    from benchmarks.contest import measure

    dropped = measure(small_layouts, 1, allocate=True)
    assert "Goal" in loop_verdict(dropped)
    kept = fresh(small_layouts, 1)
    assert all("malloc" in row.seconds for row in kept)
    assert "times as fast" in fresh_verdict(kept)


@pytest.mark.parametrize("number", range(5))
def test_threads(number):
    from benchmarks.threads import CASES, MOST, rates

    case, _ = list(CASES.values())[number]
    found = rates(case, 1, 0.1)  # else a busy machine may end no call in time
    assert all(found[who, count] > 0 for who in ("ours", "peer") for count in (1, MOST))


def test_copy_sizes():
    from benchmarks.copy_sizes import LEAST, MEAN, SIZES, VIEWS, shown, times

    for name in VIEWS:
        assert times(name, SIZES[0], "NumPy", quick=True) > 0
    assert times("columns flipped", SIZES[0], "PyTorch", quick=True) is None
    assert [shown(None), shown(0.5), shown(2.0)] == ["", "**0.50**", "2.00"]
    assert (LEAST, MEAN) == (0.9, 1.5)


def test_the_steps_of_a_call_end_in_the_whole():
    from benchmarks.breakdown import least, report, steps

    for of in steps().values():
        assert len(least(of, 1, 1e-5)) == len(of)
    assert report(quick=True).count("\n| ") == 2 + sum(map(len, steps().values()))


def test_every_section_of_the_results_is_a_module():
    from importlib.util import find_spec

    from benchmarks.__main__ import SECTIONS

    assert all(find_spec(f"benchmarks.{name}") for name in SECTIONS)


def test_the_page_of_what_is_worth_it_shows_each_measured_call():
    from benchmarks.worth import PAGE, PLACE, cases, report

    shown = PLACE.search(PAGE.read_text()).group()
    for case in cases(8):
        np.testing.assert_array_equal(items(case.ours()), items(case.peer()))
        assert f"`{case.peer_name}`" in shown
    assert report(side=8, rounds=1).count("\n| ") == shown.count("\n| ")
