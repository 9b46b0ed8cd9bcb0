"""The command line: every command run small, and a matrix that outlives what it measures."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.cli import Status, accepts, arrays, child, info, main, matrix, versions
from arraybridge.dispatch.registry import library_named

from .support.optional import needs
from .support.processes import python

ROOT = Path(__file__).resolve().parents[1]


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
    done = run("explain", "jax", "numpy", "--dtype", "float64", cwd=tmp_path)
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
        pytest.param(
            *(
                ["--from", "torch", "--to", "numpy", "--layout", "negative"],
                "takes no negative strides",
            ),
            marks=needs("torch"),
        ),
        pytest.param(
            *(["--from", "torch", "--to", "numpy", "--state", "masked"], "only numpy can be so"),
            marks=needs("torch"),
        ),
        (["--from", "array_api_strict", "--to", "numpy", "--dtype", "float16"], "no such array"),
        pytest.param(
            *(["torch", "numpy", "--state", "requires_grad", "--dtype", "int8"], "floating point"),
            marks=needs("torch"),
        ),
        (["numpy", "numpy", "--state", "byteorder", "--dtype", "int8"], "int8 cannot be byteorder"),
        (["numpy", "numpy", "--shape", "99999999999,9999999"], "Unable to allocate"),
        (["--from", "numpy", "--to", "dask"], "dask has no arrays in memory"),
        (["--from", "numpy", "--to", "polars"], "not made: convert to 'numpy'"),
        pytest.param(
            *(
                ["--from", "pyarrow", "--to", "numpy", "--dtype", "bool"],
                "is a pyarrow.Array",
            ),
            marks=needs("pyarrow"),
        ),
    ],
)
def test_explain_tells_what_is_wrong(capsys, args, message) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["explain", *args])
    assert ended.value.code == 2
    said = " ".join(capsys.readouterr().err.split())
    assert message in said
    assert said.startswith("arraybridge explain: error: ")
    assert said.endswith("Try: arraybridge explain --help")


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
    done = run("info", "--json", "numpy", "pyarrow.Array", cwd=tmp_path)
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
        assert (record["state"] == "not installed") is not versions.present(name), record
        assert record["install"].startswith("pip install ")


def test_info_imports_no_library(tmp_path) -> None:
    (tmp_path / "tvm_ffi.py").write_text("import os; os.abort()")
    path = os.pathsep.join((str(tmp_path), str(ROOT)))
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    (cache / "nest-0.kernel").write_bytes(bytes(2500))
    done = run("info", cwd=tmp_path, PYTHONPATH=path, ARRAYBRIDGE_CACHE_DIR=str(cache))
    assert done.returncode == 0, done.stderr
    rows = dict(line.split(maxsplit=1) for line in done.stdout.splitlines() if " " in line)
    assert rows["numpy"] == np.__version__
    assert rows["disk"] == f"cache    1 kernels, 2.5 kB, in {cache}"
    assert rows["installation"].startswith(f"arraybridge is loaded from {Path(ab.__file__).parent}")
    assert ("missing" in rows) is not all(map(versions.present, versions.INSTALL))
    for what, _package, _pip in info.OPTIONAL:  # there or missing
        assert sum(line.startswith(f"{what}  ") for line in done.stdout.splitlines()) == 1


def test_folders_of_any_name_are_printed(tmp_path) -> None:
    folder = str(tmp_path / "K\u00e4lte\u6c34")
    done = run("info", cwd=tmp_path, PYTHONIOENCODING="ascii", ARRAYBRIDGE_CACHE_DIR=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "K\\xe4lte\\u6c34" in done.stdout


def test_info_outlives_a_crashing_import(tmp_path) -> None:
    (tmp_path / "tvm_ffi.py").write_text("import os; os.abort()")
    path = os.pathsep.join((str(tmp_path), str(ROOT)))
    done = run("info", "tvm_ffi", "numpy", cwd=tmp_path, PYTHONPATH=path)
    assert done.returncode == Status.MISSING, done.stderr
    assert "tvm_ffi  does not work: crash: SIGABRT" in done.stdout
    views = "any strides, 0 to 64 dimensions"
    expected = f"numpy {np.__version__} on cpu views {views} read-only memory kept so"
    assert expected in " ".join(done.stdout.split())


def test_info_of_all_that_are_installed(monkeypatch, capsys) -> None:
    """One that does not load is no failure, unless it was named."""
    monkeypatch.setattr(info, "INSTALL", {"numpy": "numpy", "array_api_strict": "nothing"})
    monkeypatch.setattr(accepts, "apart", lambda *_: iter([{"state": "does not work: crash"}]))
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
        ({"copies": True}, "none: it copies whatever it takes"),
        ({"readonly": False}, "copied"),
        ({"tested": "1.0"}, "1.0"),
    ],
)
def test_info_of_what_a_library_accepts(changed: dict, said: str) -> None:
    found = next(accepts.record("numpy"))
    found = {"version": found["accepts"]["tested"], **found}
    plain = dict(accepts.described("numpy", found))
    told = dict(accepts.described("numpy", found | {"accepts": found["accepts"] | changed}))
    assert [value for name, value in told.items() if plain.get(name) != value] == [said] * bool(
        changed
    )
    assert said in told.values()


def test_info_of_what_has_no_package_of_its_own() -> None:
    assert versions.present("pyarrow.Array") is versions.present("pyarrow")
    if versions.present("dask"):
        lazy = [library_named(name).lazy for name in (*versions.GRAPHS, "numpy")]
        assert lazy == [True, False]


def test_info_tells_numba_cuda_from_numba() -> None:
    """They are two distributions, and the record is of the second."""
    if not versions.present("numba"):
        pytest.skip("no numba-cuda")
    assert versions.version_of(versions.package("numba")) == version("numba-cuda")
    assert versions.version_of("numba") == version("numba")


def test_matrix_writes_its_tables(tmp_path) -> None:
    done = run(
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
        (["--libraries", "numpy,dask"], "dask has no arrays in memory: name others"),
        (["--libraries", "numpy,cupy"], "cupy is not installed: pip install 'cupy-cuda12x'"),
        (["--jobs", "0"], "--jobs is a number of processes, got 0"),
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


UNRULY = """
import ctypes, os, time
import numpy as np
from arraybridge import register_library
from arraybridge.libraries.numpy.exchange import NumPy

kept = {}

class Unruly(NumPy):
    name, doors = "unruly", {}
    def owns(self, array_type):
        return False
    def wrap(self, tensor, **how):
        result = super().wrap(tensor, **how)
        match result.dtype.name:
            case "int8":
                os.abort()
            case "int16":
                time.sleep(600)
            case "int32":
                return result + 1
            case "int64":
                return result.copy()
            case "uint8":
                raise RuntimeError("not today")
            case "uint16":
                os._exit(0)
            case "uint32":
                return kept.setdefault("first", result)
            case "complex64" if not result.flags.writeable:
                memory = (ctypes.c_char * result.nbytes).from_address(result.ctypes.data)
                return np.ndarray(result.shape, result.dtype, memory)
        return result

register_library(Unruly())
"""


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
        ("int16 contiguous", "HANG", "nothing for 10 s"),
        ("int32 contiguous", "WRONG", "the values differ"),
        ("int64 contiguous", "WRONG", "explain says view, convert does not"),
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


def test_the_example(tmp_path) -> None:
    for name in ("torch", "jax", "sklearn", "PIL"):
        pytest.importorskip(name)
    from PIL import Image
    from sklearn.datasets import load_sample_image

    example = ROOT / "examples" / "photograph.py"
    done = subprocess.run(
        [sys.executable, str(example), "here.png"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for word in ("view", "copied", "refused", "torch -> jax", "here.png"):
        assert word in done.stdout
    picture = np.asarray(Image.open(tmp_path / "here.png"))
    pixels = load_sample_image("china.jpg")
    height, width, _ = pixels.shape
    assert picture.shape == (height, 2 * width, 3)
    np.testing.assert_array_equal(picture[:, :width], pixels)
    # Sharpened: another picture, of the same brightness, with more detail.
    sharp, plain = picture[:, width:].astype(float), pixels.astype(float)
    assert abs(sharp.mean() - plain.mean()) < 2
    assert np.abs(np.diff(sharp, axis=1)).mean() > 1.3 * np.abs(np.diff(plain, axis=1)).mean()
    sharpen = runpy.run_path(str(example))["sharpen"]
    again = np.moveaxis(sharpen(np.moveaxis(pixels / 255, 2, 0)), 0, 2) * 255  # in float64
    assert np.abs(again - sharp).max() <= 0.51


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--help",), "warmup"),
        (("matrix", "--help"), "--libraries"),
        (("matrix", "--list"), "int8 contiguous"),
        (("--version",), f"arraybridge {ab.__version__}"),
        (("explain", "--from", "numpy", "--to", "numpy"), "view: numpy -> numpy on cpu"),
        (("warmup", "--item-sizes", "16"), "kernels in"),
        ((), "arraybridge explain numpy torch"),
    ],
)
def test_it_runs_as_a_module(tmp_path, args, said) -> None:
    done = run(*args, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert said in done.stdout


def test_what_cannot_be_copied_as_it_is_is_no_failure() -> None:
    """Arrow has packed booleans: a view, and copy=True is refused."""
    pytest.importorskip("pyarrow")
    (cell,) = matrix.pair("pyarrow.Array", "pyarrow", ["bool contiguous"])
    assert (cell.verdict, cell.why) == ("view", "it is one already")
