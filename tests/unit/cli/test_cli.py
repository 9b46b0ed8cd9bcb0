"""The command line: what `info` and `explain` print, their JSON, and their exit statuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import arraybridge as ab
from arraybridge import cli
from arraybridge.cli import LAYOUTS, main
from tests.support.optional import needs
from tests.support.processes import python


def explained(capsys, *args: str) -> dict:
    status = main(["explain", *args, "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert status == (answer["route"]["kind"] == "refuse")
    return answer


@needs("torch")
def test_explain_is_the_route_of_the_described_array(capsys) -> None:
    args = ("numpy", "torch", "--shape", "5,7", "--layout", "negative", "--dtype", "float64")
    answer = explained(capsys, *args)
    names = ("library", "dtype", "shape", "strides", "device", "readonly")
    expected = ("numpy", "float64", [5, 7], [-7, -1], "cpu", False)
    assert tuple(answer["array"][name] for name in names) == expected
    assert answer["route"]["nbytes"] == 5 * 7 * 8
    assert "negative" in answer["route"]["why"]
    assert explained(capsys, *args, "--copy", "false")["route"]["kind"] == "refuse"
    assert main(["explain", *args]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("numpy -> torch on cpu: copied")


@needs("torch")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["bool", "bfloat16", "complex128"])
def test_every_layout_can_be_explained(capsys, layout, dtype) -> None:
    array = explained(capsys, "numpy", "torch", "--layout", layout, "--dtype", dtype)["array"]
    assert array["shape"] == [3, 4]
    assert (array["strides"] == [4, 1]) is (layout == "contiguous")


@needs("torch")
def test_keywords_are_those_of_convert(capsys) -> None:
    assert explained(capsys, "numpy", "torch", "--readonly")["route"]["nbytes"] == 48
    alias = explained(capsys, "numpy", "torch", "--readonly", "--alias-readonly")
    assert alias["route"]["kind"] == "view"
    copied = explained(capsys, "numpy", "numpy", "--copy", "true", "--device", "cpu")
    assert copied["route"]["nbytes"] == 48


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["numpy"], "TARGET"),
        (["numpy", "nothing"], "no library 'nothing'"),
        (["numpy", "numpy", "--dtype", "flot32"], "flot32"),
        (["numpy", "numpy", "--layout", "negativ"], "choose from"),
        (["numpy", "numpy", "--shape", "3,x"], "argument --shape"),
        (["numpy", "numpy", "--shape", "", "--layout", "negative"], "without axes"),
        (["numpy", "numpy", "--device", "foo"], "unknown device 'foo'"),
        (["numpy", "numpy", "--shape", "99999999999,9999999"], "allocate"),
        pytest.param(
            ["torch", "numpy", "--layout", "negative"], "has no negative", marks=needs("torch")
        ),
        pytest.param(["torch", "numpy", "--readonly"], "has no read-only", marks=needs("torch")),
    ],
)
def test_wrong_usage(capsys, args, message) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["explain", *args])
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("args", [["explain", "cupy", "numpy"], ["info", "cupy"]])
def test_a_missing_library_is_no_refusal(monkeypatch, capsys, args) -> None:
    def missing(name):
        raise ImportError(f"{name} is not installed: pip install {name}")

    monkeypatch.setattr("arraybridge.cli.library_named", missing)
    assert main(args) == 3
    assert "pip install" in capsys.readouterr().err


def test_info_imports_no_library(tmp_path: Path) -> None:
    said = python(
        "import sys; from arraybridge.cli import main; main(['info', '--json']); "
        "assert not {'numba', 'llvmlite', 'torch', 'jax', 'pyarrow'} & {*sys.modules}"
    )
    answer = json.loads(said)
    assert answer["arraybridge"]["version"] == ab.__version__
    assert answer["arraybridge"]["folder"] == str(Path(ab.__file__).parent)
    assert answer["libraries"]["numpy"].split(".")[0].isdigit()


def test_info_of_a_package_without_metadata() -> None:
    """Such as sources on the path, or any folder of that name."""
    assert cli._version("numpy", "no-distribution", {}) == "of unknown version"


def test_info_of_what_a_library_accepts(capsys) -> None:
    assert main(["info", "numpy", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert "float32" in answer["numpy"]["dtypes"]
    assert main(["info", "numpy"]) == 0
    assert "float32, " in capsys.readouterr().out
