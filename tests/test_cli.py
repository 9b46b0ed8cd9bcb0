"""The command line: every command run small, and a matrix that outlives what it measures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.cli import cases, main, matrix, report

pytest.importorskip("rich")
ROOT = Path(__file__).resolve().parents[1]

PLUGIN = """
import os, time
import numpy as np
from arraybridge.cli import native
from arraybridge.dispatch.registration import register_library
from arraybridge.libraries.numpy.exchange import NumPy

class Native(native.NumPy):
    name, module = "unruly", "numpy"

native.NATIVES["unruly"] = (__name__, "Native")

class Unruly(NumPy):
    name, doors = "unruly", {}
    def owns(self, array_type):
        return False
    def wrap(self, tensor, **how):
        result = super().wrap(tensor, **how)
        if result.dtype == np.int8:
            os.abort()
        if result.dtype == np.int16:
            time.sleep(600)
        if result.dtype == np.int32:
            return result + 1
        if result.dtype == np.int64:
            return result.copy()
        if result.dtype == np.uint8:
            raise RuntimeError("not today")
        return result

register_library(Unruly())
"""


def run(*args: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return subprocess.run(
        [sys.executable, "-m", "arraybridge", *args],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200", **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def explained(capsys, *args: str) -> dict:
    status = main(["explain", *args, "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert status == (answer["route"]["kind"] == "refuse")
    return answer


def test_explain_says_view(capsys) -> None:
    answer = explained(capsys, "--from", "numpy", "--to", "array_api_strict")
    assert answer["route"]["kind"] == "view"
    assert answer["route"]["nbytes"] == 0
    assert answer["array"]["shape"] == [3, 4]


def test_explain_says_kernel_and_how_much(capsys) -> None:
    pytest.importorskip("torch")
    args = ("--from", "numpy", "--to", "torch", "--shape", "5,7", "--layout", "negative")
    answer = explained(capsys, *args, "--dtype", "float64")
    assert answer["array"]["strides"] == [-7, -1]
    assert answer["route"]["kind"] == "kernel"
    assert answer["route"]["nbytes"] == 5 * 7 * 8
    assert "negative" in answer["route"]["why"]
    assert explained(capsys, *args, "--copy", "false")["route"]["kind"] == "refuse"


def test_explain_prints_for_people(capsys) -> None:
    pytest.importorskip("torch")
    args = ["--from", "torch", "--to", "numpy", "--state", "requires_grad"]
    assert main(["explain", *args]) == 1
    out = capsys.readouterr().out
    assert "refuse" in out
    assert "detach" in out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--from", "numpy", "--to", "nothing"], "no library 'nothing'"),
        (["--from", "numpy", "--to", "pytorch"], "did you mean 'torch'?"),
        (["--from", "numpy", "--to", "cupy"], "pip install 'cupy-cuda12x'"),
        (["--from", "cupy", "--to", "numpy"], "pip install 'cupy-cuda12x'"),
        (["--from", "numpy", "--to", "numpy", "--device", "foo"], "unknown device 'foo'"),
        (["--from", "numpy", "--to", "numpy", "--shape", "3,x"], "'3,x' is no shape"),
        (["--from", "numpy", "--to", "numpy", "--shape", "", "--layout", "negative"], "more dim"),
        (["--from", "array_api_strict", "--to", "numpy", "--dtype", "float16"], "no such array"),
    ],
)
def test_explain_tells_what_is_wrong(monkeypatch, capsys, args, message) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.delitem(sys.modules, "arraybridge.libraries.cupy.exchange", raising=False)
    with pytest.raises(SystemExit) as ended:
        main(["explain", *args])
    assert ended.value.code == 2
    said = " ".join(capsys.readouterr().err.split())
    assert message in said
    assert said.startswith("usage: python -m arraybridge explain")


def test_info_knows_versions_and_what_is_missing(tmp_path) -> None:
    done = run("info", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    numpy = answer["libraries"]["numpy"]
    assert numpy["version"] == answer["versions"]["numpy"] == np.__version__
    assert numpy["accepts"]["strides"] == "any"
    assert "float32" in numpy["accepts"]["dtypes"]
    states = {name: record["state"] for name, record in answer["libraries"].items()}
    for name, state in states.items():
        assert (state == "not installed") is not matrix.present(name), (name, state)


def test_info_outlives_a_crashing_import(tmp_path) -> None:
    (tmp_path / "tvm_ffi.py").write_text("import os; os.abort()")
    path = os.pathsep.join((str(tmp_path), str(ROOT)))
    done = run("info", cwd=tmp_path, PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    (line,) = (line for line in done.stdout.splitlines() if "tvm_ffi" in line)
    assert "crashes on import" in line  # and by what, if need be on a line of its own
    assert "6)" in done.stdout


def test_matrix_writes_its_tables(tmp_path) -> None:
    done = run(
        *("matrix", "--libraries", "numpy,array_api_strict"),
        *("--cases", "contiguous,negative,read-only,structured"),
        *("--json", "cells.json", "--markdown", "page.md"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads((tmp_path / "cells.json").read_text())
    found = {(c["source"], c["target"], c["case"]): c for c in answer["cells"]}
    assert found["numpy", "array_api_strict", "negative"]["verdict"] == "view"
    assert found["numpy", "array_api_strict", "negative"]["native"] == "view"
    assert found["numpy", "array_api_strict", "structured"]["verdict"] == "refused"
    assert found["array_api_strict", "numpy", "structured"]["verdict"] == "n/a"
    assert found["numpy", "array_api_strict", "contiguous"]["ns"] > 0
    page = (tmp_path / "page.md").read_text()
    assert "| numpy | - | 6 v 4 r |" in page
    assert "0 failures" in page
    assert "0 failures" in done.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--cases", "nothing like it"], "no case matches"),
        (["--libraries", "numpy"], "a pair needs two"),
        (["--libraries", "numpy,numpy"], "a pair needs two libraries, found numpy"),
        (["--libraries", "numpy,nosuch"], "no library 'nosuch'; arraybridge knows array_api_s"),
        (
            ["--libraries", "numpy,cupy"],
            "cupy is not installed: pip install 'cupy-cuda12x' (installed: numpy",
        ),
        (["--jobs", "0"], "'0' is no number of jobs"),
        (["--jobs", "two"], "'two' is no number of jobs"),
        (["--json", "/nonexistent/x.json"], "cannot be written: no folder /nonexistent"),
        (["--markdown", "/"], "/ is a folder"),
    ],
)
def test_matrix_refuses_before_it_runs(monkeypatch, capsys, args, message) -> None:
    there = matrix.importable
    monkeypatch.setattr(matrix, "importable", lambda name: name != "cupy" and there(name))
    monkeypatch.setattr(matrix, "run", lambda *args, **how: pytest.fail("it ran"))
    with pytest.raises(SystemExit) as ended:
        main(["matrix", *args])
    assert ended.value.code == 2
    said = " ".join(capsys.readouterr().err.split())
    assert message in said
    assert said.startswith("usage: python -m arraybridge matrix")


@pytest.fixture(scope="module")
def unruly(tmp_path_factory):
    """Cells of a library that aborts, hangs and lies, by dtype."""
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "unruly_plugin.py").write_text(PLUGIN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARRAYBRIDGE_MATRIX_PLUGIN", "unruly_plugin")
        patch.setenv("PYTHONPATH", str(folder))
        patch.setattr(matrix, "NEXT_EVENT_S", 5.0)
        names = [f"{kind} contiguous" for kind in "int8 int16 int32 int64 uint8 float64".split()]
        cells = matrix.run(["numpy", "unruly"], cases.chosen([*names, "contiguous"]))
    return {cell.case: cell for cell in cells if cell.target == "unruly"}, cells


@pytest.mark.parametrize(
    ("case", "verdict", "why"),
    [
        ("int8 contiguous", "CRASH", "SIGABRT"),
        ("int16 contiguous", "HANG", "nothing for 5 s"),
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


def test_failures_are_told(unruly, capsys) -> None:
    cells = unruly[1]
    assert {cell.case for cell in matrix.failures(cells)} == {
        f"{kind} contiguous" for kind in ("int8", "int16", "int32", "int64", "uint8")
    }
    page = report.markdown(cells, ["numpy", "unruly"], 1.0, "matrix")
    assert "1 **CRASH**" in page or "**1 CRASH**" in page
    report.print_tables(cells, ["numpy", "unruly"], 1.0)
    out = capsys.readouterr().out
    assert "Failures" in out
    assert "SIGABRT" in out


def test_a_copy_where_the_own_door_gives_a_view_is_a_failure() -> None:
    cell = matrix.Cell("a", "b", "case", "group", "copy", native="view, where arraybridge copies")
    assert matrix.failures([cell]) == [cell]
    assert matrix.failures([cell._replace(native="view")]) == []


def test_cases_have_names_of_their_own() -> None:
    everything = cases.all_cases()
    assert len({case.name for case in everything}) == len(everything)
    groups = {case.group for case in everything}
    assert {"requires_grad", "conj", "neg", "big-endian", "structured", "32-d"} <= groups
    assert sum(case.group == "unaligned" for case in everything) == 63
    assert {case.dtype for case in everything} == set(cases.DTYPES)


def test_demo(tmp_path) -> None:
    for name in ("torch", "jax", "sklearn", "PIL"):
        pytest.importorskip(name)
    from PIL import Image

    from arraybridge.cli.demo import photograph, sharpen

    done = run("demo", "--out", "here.png", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for word in ("view", "copy", "refused", "torch -> jax", "here.png"):
        assert word in done.stdout
    picture = np.asarray(Image.open(tmp_path / "here.png"))
    pixels = photograph()
    height, width, _ = pixels.shape
    assert picture.shape == (height, 2 * width, 3)
    np.testing.assert_array_equal(picture[:, :width], pixels)
    # Sharpened: another picture, of the same brightness, with more detail.
    sharp, plain = picture[:, width:].astype(float), pixels.astype(float)
    assert abs(sharp.mean() - plain.mean()) < 2
    assert np.abs(np.diff(sharp, axis=1)).mean() > 1.3 * np.abs(np.diff(plain, axis=1)).mean()
    floats = np.moveaxis(pixels / 255, 2, 0)
    again = np.moveaxis(sharpen(floats), 0, 2) * 255  # in float64
    assert np.abs(again - sharp).max() <= 0.51


@pytest.fixture
def without_rich(tmp_path):
    """Run the command line where rich cannot be imported."""
    (tmp_path / "rich.py").write_text("raise ModuleNotFoundError('no rich here', name='rich')")
    path = os.pathsep.join((str(tmp_path), str(ROOT)))
    return lambda *args: run(*args, cwd=tmp_path, PYTHONPATH=path)


@pytest.mark.parametrize(
    "args",
    [
        ("info",),
        ("explain", "--from", "numpy", "--to", "numpy"),
        ("matrix", "--list"),
        ("matrix", "--libraries", "numpy,array_api_strict", "--cases", "contiguous"),
        ("demo",),
    ],
)
def test_without_rich_it_says_what_to_install(without_rich, args) -> None:
    done = without_rich(*args)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "the command line prints with rich: pip install rich\n"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--help",), "warmup"),
        (("matrix", "--help"), "--libraries"),
        (("--version",), f"arraybridge {ab.__version__}"),
        (("explain", "--from", "numpy", "--to", "numpy", "--json"), '"kind": "view"'),
        (("warmup", "--item-sizes", "16"), "kernels in"),
    ],
)
def test_what_needs_no_rich(without_rich, args, said) -> None:
    done = without_rich(*args)
    assert (done.returncode, done.stderr) == (0, "")
    assert said in done.stdout


def test_info_tells_numba_cuda_from_numba(monkeypatch) -> None:
    """They are two distributions under one import name, and the record is of the second."""
    known = {"numba-cuda": "0.30.4", "numba": "0.68.1"}
    monkeypatch.setattr("importlib.metadata.packages_distributions", lambda: {"numba": ["numba"]})
    monkeypatch.setattr("importlib.metadata.version", lambda name: known[name])
    assert matrix.versions(["numba"])["numba"] == "0.30.4"
    assert matrix.version_of("numba") == "0.68.1"

    def gone(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", gone)
    monkeypatch.setattr(matrix, "importable", lambda module: True)
    assert "numba" not in matrix.versions(["numba"])
    assert not matrix.present("numba")
    assert matrix.present("torch")
