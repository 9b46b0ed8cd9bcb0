"""docs/matrix.md: the page, its charts and its lines of code are those of the committed run."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from itertools import permutations

import pytest

import arraybridge as ab
from tests.matrix import cases, data, lines, page
from tests.matrix.__main__ import main
from tests.matrix.libraries import InexpressibleError, Native, native
from tests.matrix.run import Cell
from tests.support.processes import ROOT

DOCS = ROOT / "docs"
KINDS = {"view": "view", "copy": "kernel", "transfer": "transfer"}


@pytest.fixture(scope="module")
def run() -> data.Run:
    return data.load(DOCS)


def test_page_and_charts_are_of_the_data(tmp_path) -> None:
    """After a change to their looks: ``python -m tests.matrix --docs docs --again``."""
    (tmp_path / "_static").mkdir()
    shutil.copy(DOCS / "_static" / "matrix_data.js", tmp_path / "_static")
    assert main(["--docs", str(tmp_path), "--again"]) == 0
    made = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*.*"))
    assert [path.name for path in made] == [
        *("matrix_data.js", "matrix.md", "latency_by_pair.svg", "own_functions.svg")
    ]
    for path in made:
        assert (DOCS / path).read_text() == (tmp_path / path).read_text(), path


def test_data_is_small_and_of_all_libraries(run) -> None:
    assert (DOCS / "_static" / "matrix_data.js").stat().st_size < 600_000
    assert {"onnxruntime", "openvino", "pillow", "cuda_core"} <= set(run.libraries)
    pairs = {(cell.source, cell.target) for cell in run.cells}
    assert pairs == set(permutations(run.libraries, 2))
    assert {cell.case for cell in run.cells} == {case.name for case in cases.all_cases()}
    assert not any(cell.verdict.isupper() for cell in run.cells)


def test_results_have_the_tables_of_the_data(run) -> None:
    assert page.RESULTS.read_text() == page.tables(run)


def test_the_page_counts_the_cells_of_the_data(run) -> None:
    rows = [line.split(" | ") for line in (DOCS / "matrix.md").read_text().splitlines()]
    row = next(row for row in rows if row[0] == "| torch")
    found = Counter(cell.verdict for cell in run.cells if cell.target == "torch")
    shown = [int(number.replace(",", "")) for number in row[1:5]]
    assert shown == [found[kind] for kind in ("view", "copy", "transfer", "refused")]


def alike(run: data.Run, source: str, target: str) -> Iterator[Cell]:
    """One cell for each line of code that the page has for a pair, and each reason for it."""
    seen = set()
    for cell in run.cells:
        key = (cell.verdict, cell.why, cell.code, cell.gives, cell.instead)
        if (cell.source, cell.target) == (source, target) and cell.code and key not in seen:
            seen.add(key)
            yield cell


@pytest.fixture
def wide_jax() -> Iterator[None]:
    """JAX with 64-bit types, as in the matrix."""
    import jax

    before = jax.config.read("jax_enable_x64")
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.mark.parametrize("target", ["numpy", "torch", "jax", "pyarrow"])
@pytest.mark.parametrize("source", ["numpy", "torch", "jax", "pyarrow"])
def test_lines_do_what_the_page_says(source, target, run, wide_jax) -> None:
    built: dict[str, Native] = {name: native(name) for name in (source, target)}
    by_name = {case.name: case for case in cases.all_cases()}
    for cell in alike(run, source, target):
        if cell.group == "x64 off":
            continue
        x = built[source].build(by_name[cell.case])
        if target == "jax" and (ab.inspect(x).alignment < 64) != ("aligned" in cell.why):
            continue  # the allocator has put it elsewhere than in the matrix
        if cell.verdict == "refused":
            assert ab.explain(x, target).kind == "refuse", cell
            with pytest.raises(ab.ConversionError):
                ab.convert(x, target)
        kind, result = lines.run(cell.code, x, ab)
        assert kind == (cell.gives or KINDS[cell.verdict]), cell
        assert ab.inspect(result).library == target, cell
        if cell.verdict != "refused":
            assert ab.explain(x, target).nbytes == cell.nbytes, cell
        if cell.instead:
            assert lines.run(cell.instead, x, ab)[0] == "view", cell


def test_a_case_is_told_in_numpys_terms() -> None:
    told = {case.name: data.told(case) for case in cases.all_cases()}
    assert told["float16 negative"] == "empty((3, 4))[::-1, ::-1]"
    assert told["float32 at +1 bytes"] == "empty((3, 4)), 1 byte after a multiple of 64"
    assert told["read-only stepped"] == "empty((6, 8))[::2, ::2], read-only"
    assert told["32-d permuted"] == "32 dimensions, permuted"


def test_a_line_is_the_first_that_works() -> None:
    numpy = native("numpy")
    by_name = {case.name: case for case in cases.all_cases()}
    for name, code in (
        ("masked", 'ab.convert(x.filled(0), "array_api_strict")'),
        ("datetime", 'ab.convert(x.view("int64"), "array_api_strict")'),
        ("float16 contiguous", 'ab.convert(x, "array_api_strict", dtype="float32")'),
    ):
        x = numpy.build(by_name[name])
        with pytest.raises(ab.ConversionError) as refused:
            ab.convert(x, "array_api_strict")
        line = lines.mended(ab, x, by_name[name], "array_api_strict", str(refused.value))
        assert line.code == code
    with pytest.raises(InexpressibleError):
        numpy.build(by_name["requires_grad"])


@pytest.mark.parametrize(
    ("case", "to", "code"),
    [
        ("read-only float32", "torch", 'ab.convert(x, "torch", alias_readonly=True)'),
        ("contiguous", "jax", 'ab.convert(x, "jax", copy=False)'),
        ("negative", "torch", ""),
    ],
)
def test_a_view_where_the_plain_call_copies(case, to, code) -> None:
    pytest.importorskip(to)
    x = native("numpy").build(*cases.chosen([case]))
    assert ab.explain(x, to).kind == "kernel"
    assert lines.view_instead(ab, x, to) == code
