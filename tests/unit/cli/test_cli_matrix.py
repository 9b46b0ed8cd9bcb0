"""The command line's `matrix`: its tables, and that it outlives what it measures."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.cli import Status, arrays, child, main, matrix
from tests.support.processes import ROOT, command, python
from tests.support.unruly import UNRULY


def test_matrix_writes_its_tables(tmp_path) -> None:
    done = command(
        *("matrix", "--libraries", "numpy,array_api_strict", "--json", "cells.json"),
        *("--cases", "contiguous,negative,readonly,structured,int?? permuted"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads((tmp_path / "cells.json").read_text())
    assert answer["versions"]["numpy"] == np.__version__
    found = {(c["source"], c["target"], c["case"]): c for c in answer["cells"]}
    assert found["numpy", "array_api_strict", "negative"]["verdict"] == "view"
    assert found["numpy", "array_api_strict", "int16 permuted"]["verdict"] == "view"
    assert found["numpy", "array_api_strict", "structured"]["verdict"] == "refused"
    assert found["array_api_strict", "numpy", "structured"]["verdict"] == "n/a"
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["from", "\\", "to", "numpy", "array_api_strict"] in lines
    assert ["numpy", "-", "6v", "1r"] in lines
    assert ["int16", "1v", "1v"] in lines
    assert "14 cells, 0 failures" in done.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--cases", "nothing like it"], "no case matches"),
        (["--libraries", "numpy"], "a pair needs two"),
        (["--libraries", "numpy,numpy"], "a pair needs two libraries, found numpy"),
        (["--libraries", "numpy,nosuch"], "no library 'nosuch'; arraybridge knows array_api_s"),
        (["--libraries", "numpy,dask"], "dask has no arrays in memory: leave it out"),
        (["--libraries", "numpy,cupy"], "cupy is not installed: pip install 'cupy-cuda12x'"),
        (["--jobs", "0"], "--jobs must be 1 or more, got 0"),
        (["--cases", "negativ"], "did you mean 'negative'? expected contiguous, permuted"),
        (["--jobs", "two"], "invalid int value: 'two'"),
        (["--json", "/dev/null/x.json"], "Not a directory: '/dev/null/x.json'"),
    ],
)
def test_matrix_refuses_before_it_runs(monkeypatch, capsys, args, message) -> None:
    there = matrix.present
    monkeypatch.setattr(matrix, "present", lambda name: name != "cupy" and there(name))
    monkeypatch.setattr(matrix, "pair", lambda *args: pytest.fail("it ran"))
    with pytest.raises(SystemExit) as ended:
        main(["matrix", *args])
    missing = "pip install" in message
    assert ended.value.code == (Status.MISSING if missing else Status.USAGE)
    said = " ".join(capsys.readouterr().err.split())
    assert message in said
    assert said.startswith("arraybridge matrix: ")


@pytest.fixture(scope="module")
def unruly(tmp_path_factory) -> dict[str, matrix.Cell]:
    """Cells of a library that aborts, hangs and lies, by dtype."""
    folder = tmp_path_factory.mktemp("unruly")
    (folder / "sitecustomize.py").write_text(UNRULY)
    kinds = "int8 int16 int32 int64 uint8 uint16 uint32 float64"
    names = [*(f"{kind} contiguous" for kind in kinds.split()), "readonly"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join((str(folder), str(ROOT))))
        patch.setattr(matrix, "CELL_S", 10.0)
        found = {cell.case: cell for cell in matrix.pair("numpy", "unruly", names)}
        patch.setattr(matrix, "MOST_CRASHES", 2)
        crashing = ["int8 contiguous", "uint16 contiguous", "float32 contiguous"]
        return found | {"too many": [*matrix.pair("numpy", "unruly", crashing)][-1]}


@pytest.mark.parametrize(
    ("case", "verdict", "why"),
    [
        ("int8 contiguous", "CRASH", "SIGABRT"),
        ("int16 contiguous", "HANG", "no answer for 10 s"),
        ("int32 contiguous", "WRONG", "the values differ"),
        ("int64 contiguous", "WRONG", "explain predicts view, convert does otherwise"),
        ("uint8 contiguous", "ERROR", "RuntimeError: not today"),
        ("uint16 contiguous", "CRASH", "exit code 0"),
        ("too many", "CRASH", "exit code 0"),  # of the one before; it was not tried
        ("uint32 contiguous", "WRONG", "copy=True shares memory"),
        ("readonly", "WRONG", "read-only memory became writable"),
        ("float64 contiguous", "view", "takes it as it is"),
    ],
)
def test_matrix_outlives_what_it_measures(unruly, case, verdict, why) -> None:
    assert unruly[case].verdict == verdict, unruly[case]
    assert why in unruly[case].why


def test_matrix_tells_failures(monkeypatch, capsys) -> None:
    bad = [matrix.Cell("numpy", "jax", "int8 contiguous", "CRASH", "crash: SIGABRT")]
    monkeypatch.setattr(matrix, "pair", lambda *args: bad)
    assert main(["matrix", "--libraries", "numpy,array_api_strict"]) == 1
    out = capsys.readouterr().out
    assert "CRASH: numpy -> jax, int8 contiguous: crash: SIGABRT" in " ".join(out.split())


def test_a_dtype_that_needs_another_package_is_no_failure() -> None:
    pytest.importorskip("array_api_strict")
    code = (
        "import sys; sys.modules['ml_dtypes'] = None\n"
        "from arraybridge.cli.matrix import check\n"
        "print([verdict for verdict, _ in check('numpy', 'array_api_strict', *sys.argv[1:])])"
    )
    said = python(code, "float32 contiguous", "bfloat16 contiguous")
    assert said == "['loaded', 'view', 'n/a']\n"


def test_a_library_that_does_not_load_fails_its_cells() -> None:
    cells = list(matrix.pair("numpy", "cupy", ["contiguous", "negative"]))
    if {cell.verdict for cell in cells} & {"transfer", "refused"}:
        pytest.skip("CuPy loads here")
    assert [cell.verdict for cell in cells] == ["ERROR", "ERROR"]
    assert "pip install 'cupy-cuda12x'" in cells[0].why


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("layout", arrays.LAYOUTS)
def test_arrays_have_the_layout_that_was_asked_for(library, layout) -> None:
    pytest.importorskip(library)
    case = arrays.Case("int16", (3, 4, 2), layout)
    if library == "torch" and layout.startswith("negative"):
        with pytest.raises(arrays.InexpressibleError, match="no negative strides"):
            arrays.build(library, case)
        return
    x = arrays.build(library, case)
    _, expected = arrays.laid_out(case)
    told = ab.inspect(x)
    assert told.shape == expected.shape == (3, 4, 2)
    assert tuple(2 * step for step in told.strides) == expected.strides
    assert told.pointer % 2 == (layout == "unaligned")
    assert np.array(ab.convert(x, "numpy")).tobytes() == expected.tobytes()


def test_every_case_of_the_matrix_is_an_array_of_some_library() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("ml_dtypes")
    made = set()
    for name, case in matrix.CASES.items():
        for library in ("numpy", "torch"):
            try:
                arrays.build(library, case)
            except arrays.InexpressibleError:
                continue
            made.add(name)
    assert made == matrix.CASES.keys()


def test_a_child_gives_back_what_it_yields() -> None:
    assert list(child.apart(60.0, yielding, "a", "b")) == ["a", "b"]
    with pytest.raises(ChildProcessError, match="error: ValueError: nothing to yield"):
        list(child.apart(60.0, yielding))


def yielding(*args: str):
    if not args:
        raise ValueError("nothing to yield")
    yield from args


def test_what_cannot_be_copied_as_it_is_is_no_failure() -> None:
    """Arrow has packed booleans: a view, and copy=True is refused."""
    pytest.importorskip("pyarrow")
    (cell,) = matrix.pair("pyarrow.Array", "pyarrow", ["bool contiguous"])
    assert (cell.verdict, cell.why) == ("view", "nothing to convert")
