"""The command line: what `explain` and `info` print; the matrix is in `test_cli_matrix`."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.cli import Status, info, libraries, main
from arraybridge.core.registry import library_named
from tests.support.optional import installed, needs
from tests.support.processes import ROOT, command


def explained(capsys, *args: str) -> dict:
    status = main(["explain", *args, "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert status == (answer["route"]["kind"] == "refuse")
    return answer


def test_explain_says_view(capsys) -> None:
    answer = explained(capsys, "--from", "numpy", "--to", "array_api_strict")
    assert answer["route"]["kind"] == "view"
    assert answer["route"]["nbytes"] == 0
    names = ("library", "dtype", "shape", "strides", "device", "layout", "readonly", "nbytes")
    expected = ("numpy", "float32", [3, 4], [4, 1], "cpu", "c", False, 48)
    assert tuple(answer["array"][name] for name in names) == expected
    assert answer["route"]["device"] == "cpu"


@pytest.mark.parametrize(
    "args",
    [
        ("numpy", "array_api_strict"),
        ("numpy", "--to", "array_api_strict"),
        ("--from", "numpy", "array_api_strict"),
        ("--copy", "true", "--to", "array_api_strict", "numpy"),
    ],
)
def test_explain_takes_the_libraries_in_order(capsys, args) -> None:
    route = explained(capsys, *args)["route"]
    assert (route["source"], route["target"]) == ("numpy", "array_api_strict")


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
    assert "refused: torch -> numpy on cpu" in out
    assert "detach" in out


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ("numpy numpy --state readonly", "elements, read-only call"),
        ("torch numpy --state conj", "pending: conj call"),
        ("numpy torch --state readonly --alias-readonly", "route view: numpy"),
        (
            "numpy numpy --device cpu --copy true --alias-readonly",
            "call arraybridge.convert(x, 'numpy', device='cpu', copy=True, alias_readonly=True)",
        ),
    ],
)
def test_explain_says_what_it_was_asked(capsys, args, said) -> None:
    pytest.importorskip("torch")
    main(["explain", "--dtype", "complex64", *args.split()])
    assert said in " ".join(capsys.readouterr().out.split())


@needs("jax")
def test_explain_has_the_data_type_that_was_asked_for(tmp_path) -> None:
    done = command("explain", "jax", "numpy", "--dtype", "float64", cwd=tmp_path)
    assert "jax float64 (3, 4)" in " ".join(done.stdout.split()), done.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["numpy"], "name two libraries, such as: explain numpy torch"),
        (["numpy", "numpy", "numpy"], "name two libraries"),
        (["numpy", "numpy", "--from", "numpy"], "name two libraries"),
        (["--from", "numpy", "--to", "nothing"], "no library 'nothing'; arraybridge knows array_"),
        (["--from", "numpy", "--to", "numpy", "--dtype", "flot32"], "did you mean 'float32'? exp"),
        (["--from", "numpy", "--to", "numpy", "--layout", "negativ"], "did you mean 'negative'?"),
        (["--from", "numpy", "--to", "pytorch"], "did you mean 'torch'?"),
        (["--from", "numpy", "--to", "numpy", "--device", "foo"], "unknown device 'foo'"),
        (["--from", "numpy", "--to", "numpy", "--shape", "3,x"], "argument --shape: expected int"),
        (["--from", "numpy", "--to", "numpy", "--shape", "", "--layout", "negative"], "more dim"),
        (["--from", "torch", "--to", "numpy", "--layout", "negative"], "takes no negative strides"),
        (["--from", "torch", "--to", "numpy", "--state", "masked"], "only numpy has this state"),
        (["--from", "array_api_strict", "--to", "numpy", "--dtype", "float16"], "no such array"),
        (["torch", "numpy", "--state", "requires_grad", "--dtype", "int8"], "floating point"),
        (["numpy", "numpy", "--state", "byteorder", "--dtype", "int8"], "int8 cannot be byteorder"),
        (["numpy", "numpy", "--shape", "99999999999,9999999"], "Unable to allocate"),
        (["--from", "numpy", "--to", "dask"], "dask has no arrays in memory"),
        (["--from", "numpy", "--to", "polars"], "inputs only, so convert to 'numpy'"),
        (["--from", "pyarrow", "--to", "numpy", "--dtype", "bool"], "use pyarrow.Array"),
    ],
)
def test_explain_tells_what_is_wrong(capsys, args, message) -> None:
    for name in {"torch", "pyarrow"} & {*args}:
        pytest.importorskip(name)
    with pytest.raises(SystemExit) as ended:
        main(["explain", *args])
    assert ended.value.code == 2
    said = " ".join(capsys.readouterr().err.split())
    assert message in said
    assert said.startswith("arraybridge explain: error: ")
    assert said.endswith("Try: arraybridge explain --help")


@pytest.mark.skipif(installed("cupy"), reason="what has been loaded cannot be missed")
@pytest.mark.parametrize("pair", [("numpy", "cupy"), ("cupy", "numpy")])
def test_a_missing_library_is_no_refusal(monkeypatch, capsys, pair) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.delitem(sys.modules, "arraybridge.libraries.cupy.exchange", raising=False)
    with pytest.raises(SystemExit) as ended:
        main(["explain", "--from", pair[0], "--to", pair[1]])
    assert ended.value.code == Status.MISSING == 3
    said = " ".join(capsys.readouterr().err.split())
    assert said.startswith("arraybridge explain: cupy is not installed")
    assert said.endswith("pip install 'cupy-cuda12x'")
    with pytest.raises(SystemExit):
        main(["explain", *pair, "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert answer["status"] == Status.MISSING
    assert answer["error"].endswith("pip install 'cupy-cuda12x'")


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (("explain", "numpy"), "name two libraries"),
        (("explain", "numpy", "torhc"), "no library 'torhc': did you mean 'torch'?"),
        (("explain", "--dtype", "flot32"), "argument --dtype: invalid choice 'flot32'"),
        (("info", "nothing"), "no library 'nothing'"),
        (("info", "--chekc"), "unrecognized arguments: --chekc"),
        (("inof",), "invalid choice 'inof': did you mean 'info'?"),
        (("it's",), 'invalid choice "it\'s"; expected info'),
    ],
)
def test_json_has_the_error(capsys, args, error) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*args, "--json"])
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert answer["status"] == ended.value.code == Status.USAGE == 2
    assert error in answer["error"]
    assert error in " ".join(err.split())


def test_info_knows_versions_and_what_is_missing(tmp_path) -> None:
    pytest.importorskip("pyarrow")
    done = command("info", "--json", "numpy", "pyarrow.Array", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    numpy = answer["libraries"]["numpy"]
    assert numpy["version"] == answer["versions"]["numpy"] == np.__version__
    assert numpy["accepts"]["strides"] == "any"
    assert numpy["devices"] == ["cpu"]
    assert "float32" in numpy["accepts"]["dtypes"]
    assert answer["libraries"]["pyarrow.Array"]["state"] == "ready"
    assert answer["versions"]["arraybridge"] == ab.__version__
    assert answer["installation"]["folder"] == str(Path(ab.__file__).parent)
    assert answer["cpu"]["threads"] >= 1
    assert answer["optional"]["rich"]["install"] == "pip install 'rich'"
    for name, record in answer["libraries"].items():
        assert (record["state"] == "not installed") is not libraries.present(name), record
        assert record["install"].startswith("pip install ")


def test_info_imports_no_library(tmp_path) -> None:
    (tmp_path / "tvm_ffi.py").write_text("import os; os.abort()")
    path = os.pathsep.join((str(tmp_path), str(ROOT)))
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    (cache / "nest-0.kernel").write_bytes(bytes(2500))
    done = command("info", cwd=tmp_path, PYTHONPATH=path, ARRAYBRIDGE_CACHE_DIR=str(cache))
    assert done.returncode == 0, done.stderr
    rows = dict(line.split(maxsplit=1) for line in done.stdout.splitlines() if " " in line)
    assert rows["numpy"] == np.__version__
    assert rows["disk"] == f"cache    1 kernels, 2.5 kB, in {cache}"
    assert rows["installation"].startswith(f"arraybridge is loaded from {Path(ab.__file__).parent}")
    assert ("missing" in rows) is not all(map(libraries.present, libraries.INSTALL))
    for what, _package, _pip in info.OPTIONAL:  # there or missing
        assert sum(line.startswith(f"{what}  ") for line in done.stdout.splitlines()) == 1


@pytest.mark.parametrize("off", ["0", "1"])
def test_info_says_which_native_code_runs_and_why_not(tmp_path, off: str) -> None:
    answers = [
        command("info", *json_or_not, cwd=tmp_path, ARRAYBRIDGE_NO_NATIVE=off).stdout
        for json_or_not in ((), ("--json",))
    ]
    (row,) = (line for line in answers[0].splitlines() if line.startswith("C extension"))
    said = row.removeprefix("C extension").strip()
    extension = json.loads(answers[1])["extension"]
    file, problem = extension.pop("file"), extension.pop("problem")
    assert extension == {}
    if off == "1":
        assert (file, problem) == (None, "ARRAYBRIDGE_NO_NATIVE is set")
    if file is None:
        assert said.endswith(problem)
    else:
        assert problem is None
        assert said == file
        assert Path(file).parent == Path(ab.__file__).parent


def test_folders_of_any_name_are_printed(tmp_path) -> None:
    folder = str(tmp_path / "K\u00e4lte\u6c34")
    done = command("info", cwd=tmp_path, PYTHONIOENCODING="ascii", ARRAYBRIDGE_CACHE_DIR=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "K\\xe4lte\\u6c34" in done.stdout


def test_info_outlives_a_crashing_import(tmp_path) -> None:
    (tmp_path / "tvm_ffi.py").write_text("import os; os.abort()")
    path = os.pathsep.join((str(tmp_path), str(ROOT)))
    done = command("info", "tvm_ffi", "numpy", cwd=tmp_path, PYTHONPATH=path)
    assert done.returncode == Status.MISSING, done.stderr
    assert "tvm_ffi  does not work: crash: SIGABRT" in done.stdout
    views = "any strides, 0 to 64 dimensions"
    expected = f"numpy {np.__version__} on cpu views {views} read-only memory stays read-only"
    assert expected in " ".join(done.stdout.split())


def test_info_of_all_that_are_installed(monkeypatch, capsys) -> None:
    """One that does not load is no failure, unless it was named."""
    monkeypatch.setattr(info, "INSTALL", {"numpy": "numpy", "array_api_strict": "nothing"})
    monkeypatch.setattr(libraries, "apart", lambda *_: iter([{"state": "does not work: crash"}]))
    assert main(["info", "--check"]) == 0
    assert main(["info", "numpy"]) == Status.MISSING
    out = capsys.readouterr().out
    assert out.count("numpy  does not work") == 2
    assert out.count("array_api_strict  does not work") == 1


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "any strides, 0 to 64 dimensions"),
        ({"broadcast": False}, "any strides, 0 to 64 dimensions, no zero strides"),
        ({"alignment": 64}, "any strides, 0 to 64 dimensions, aligned to 64 bytes"),
        ({"aligned": ["float32"]}, "any strides, 0 to 64 dimensions, float32 aligned to its size"),
        ({"aligned": [*"abcd"]}, "any strides, 0 to 64 dimensions, elements aligned to their size"),
        ({"copies": True}, "none: it copies every array"),
        ({"readonly": False}, "copied"),
        ({"tested": "1.0"}, "1.0"),
    ],
)
def test_info_of_what_a_library_accepts(changed: dict, said: str) -> None:
    found = next(libraries.record("numpy"))
    found = {"version": found["accepts"]["tested"], **found}
    plain = dict(libraries.described("numpy", found))
    told = dict(libraries.described("numpy", found | {"accepts": found["accepts"] | changed}))
    assert [value for name, value in told.items() if plain.get(name) != value] == [said] * bool(
        changed
    )
    assert said in told.values()


def test_info_of_what_has_no_package_of_its_own() -> None:
    assert libraries.present("pyarrow.Array") is libraries.present("pyarrow")
    if libraries.present("dask"):
        lazy = [library_named(name).lazy for name in (*libraries.GRAPHS, "numpy")]
        assert lazy == [True, False]


def test_info_tells_numba_cuda_from_numba() -> None:
    """They are two distributions, and the record belongs to the second."""
    if not libraries.present("numba"):
        pytest.skip("no numba-cuda")
    assert libraries.version_of(libraries.package("numba")) == version("numba-cuda")
    assert libraries.version_of("numba") == version("numba")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--help",), "warmup"),
        (("matrix", "--help"), "--libraries"),
        (("matrix", "--list"), "int8 contiguous"),
        (("--version",), f"arraybridge {ab.__version__}"),
        ((), "arraybridge explain numpy torch"),
    ],
)
def test_what_it_says(capsys, args, said) -> None:
    with contextlib.suppress(SystemExit):
        main(args)
    assert said in capsys.readouterr().out


def test_it_runs_as_a_module(tmp_path) -> None:
    done = command("explain", "--from", "numpy", "--to", "numpy", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "view: numpy -> numpy on cpu" in done.stdout
