"""Every ordered pair of libraries over every case: nothing wrong, no crash, no needless error."""

from __future__ import annotations

import json

import pytest

from arraybridge.cli import arrays
from arraybridge.cli.libraries import present
from tests.matrix import cases, data, report
from tests.matrix import run as matrix
from tests.matrix.__main__ import command_line
from tests.matrix.__main__ import main as run_main
from tests.matrix.page import tables
from tests.support.unruly import UNRULY

LIGHT = ["numpy", "torch", "jax", "pyarrow", "tvm_ffi", "array_api_strict"]
HEAVY = ["tensorflow", "paddle", "warp", "mlx", "dpnp"]
RUNTIMES = ["onnxruntime", "openvino", "pillow", "cuda_core"]
BESIDE_RUNTIMES = ["numpy", "torch", "jax"]  # beside them; `make matrix` has all
# Cells that each source can express; fewer would mean that the matrix lost some of its arrays.
LIVE = {
    "numpy": 250,
    "torch": 200,
    "jax": 25,
    "pyarrow": 150,
    "tvm_ffi": 150,
    "array_api_strict": 200,
    "tensorflow": 20,
    "paddle": 120,
    "warp": 180,
    "mlx": 120,
    "pillow": 5,
    "cuda_core": 150,
    "onnxruntime": 80,
    "openvino": 140,
    "dpnp": 120,
}


def installed(names: list[str]) -> list[str]:
    return [name for name in names if present(name)]


def all_right(first: str, libraries: list[str], native: str | None) -> None:
    """One library to all others and back; a test for each, as none may last five minutes."""
    cells = matrix.run(libraries, cases.chosen(None), native=native, first=first)
    bad = matrix.failures(cells)
    told = "\n".join(
        f"{c.source} -> {c.target}, {c.case}: {c.verdict} {c.why}, own conversion {c.native}"
        for c in bad[:40]
    )
    assert not bad, f"{len(bad)} of {len(cells)} cells\n{told}"
    for other in libraries[libraries.index(first) + 1 :]:
        for way in ((first, other), (other, first)):
            live = sum(c[:2] == way and c.verdict != "n/a" for c in cells)
            assert live >= LIVE[way[0]], (*way, live)


def test_light_libraries() -> None:
    """A sample of what follows."""
    all_right("numpy", installed(LIGHT), None)


@pytest.mark.heavy
@pytest.mark.parametrize("first", LIGHT + HEAVY[:-1] + RUNTIMES)
def test_all_libraries(first: str) -> None:
    """`make matrix` asks the own importers in every case; here, where they may give a view."""
    names = [first, *BESIDE_RUNTIMES] if first in RUNTIMES else LIGHT + HEAVY
    libraries = installed(names)
    if first not in libraries:
        pytest.skip(f"no {first}")
    all_right(first, libraries, "native_without_view")


PLUGIN = f"""
from tests.matrix import libraries

class Native(libraries.NumPy):
    name, module = "unruly", "numpy"

libraries.NATIVES["unruly"] = (__name__, "Native")
{UNRULY}"""


@pytest.fixture(scope="module")
def unruly(tmp_path_factory):
    """Cells of a library that aborts, hangs and lies, by dtype."""
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "unruly_plugin.py").write_text(PLUGIN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARRAYBRIDGE_MATRIX_PLUGIN", "unruly_plugin")
        patch.syspath_prepend(folder)
        patch.setattr(matrix, "CELL_S", 5.0)
        names = [f"{kind} contiguous" for kind in "int8 int16 int32 int64 uint8 float64".split()]
        cells = matrix.run(["numpy", "unruly"], cases.chosen([*names, "contiguous"]))
    return {cell.case: cell for cell in cells if cell.target == "unruly"}, cells


@pytest.mark.parametrize(
    ("case", "verdict", "why"),
    [
        ("int8 contiguous", "CRASH", "SIGABRT"),
        ("int16 contiguous", "HANG", "no answer for 5 s"),
        ("int32 contiguous", "WRONG", "values [2, 3, 4]"),
        ("int64 contiguous", "WRONG", "explain says view, convert copied"),
        ("uint8 contiguous", "ERROR", "RuntimeError: not today"),
        ("float64 contiguous", "view", "takes it as it is"),
    ],
)
def test_matrix_outlives_what_it_measures(unruly, case, verdict, why) -> None:
    cell = unruly[0][case]
    assert cell.verdict == verdict, cell
    assert why in cell.why


def test_failures_are_reported(unruly, capsys) -> None:
    cells = unruly[1]
    assert {cell.case for cell in matrix.failures(cells)} == {
        f"{kind} contiguous" for kind in ("int8", "int16", "int32", "int64", "uint8")
    }
    assert "**1\N{NO-BREAK SPACE}CRASH**" in tables(
        data.ran(cells, ["numpy", "unruly"], 1.0, "matrix")
    )
    report.print_tables(cells, ["numpy", "unruly"], 1.0)
    out = capsys.readouterr().out
    assert "Failures" in out
    assert "SIGABRT" in out


def test_a_copy_where_the_own_function_gives_a_view_is_a_failure() -> None:
    cell = matrix.Cell("a", "b", "case", "group", "copy", native="view, where arraybridge copies")
    assert matrix.failures([cell]) == [cell]
    assert matrix.failures([cell._replace(native="view")]) == []


def test_cases_have_names_of_their_own() -> None:
    everything = cases.all_cases()
    assert len({case.name for case in everything}) == len(everything)
    groups = {case.group for case in everything}
    assert {"requires_grad", "conj", "neg", "big-endian", "structured", "32-d"} <= groups
    assert sum(case.group == "unaligned" for case in everything) == 63
    assert {case.dtype for case in everything} == set(arrays.DTYPES)


def test_it_writes_its_tables(tmp_path, capsys) -> None:
    done = run_main(
        [
            *("--libraries", "numpy,array_api_strict"),
            *("--cases", "contiguous,negative,read-only,structured"),
            *("--json", str(tmp_path / "cells.json"), "--docs", str(tmp_path)),
        ]
    )
    out = capsys.readouterr().out
    assert done == 0, out
    answer = json.loads((tmp_path / "cells.json").read_text())
    found = {(c["source"], c["target"], c["case"]): c for c in answer["cells"]}
    assert found["numpy", "array_api_strict", "negative"]["verdict"] == "view"
    assert found["numpy", "array_api_strict", "negative"]["native"] == "view"
    assert found["numpy", "array_api_strict", "structured"]["verdict"] == "refused"
    assert found["array_api_strict", "numpy", "structured"]["verdict"] == "n/a"
    assert found["numpy", "array_api_strict", "contiguous"]["ns"] > 0
    page = (tmp_path / "matrix.md").read_text()
    assert "| array_api_strict | 6 | 0 | 0 | 4 | " in page
    assert "0 failures" in page
    assert "0 failures" in out


def test_the_page_shows_the_command() -> None:
    words = ["--cases", "int*", "--docs", "docs"]
    command = "python -m tests.matrix --cases 'int*' --docs docs"
    assert command_line(words) == command
