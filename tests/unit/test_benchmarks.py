"""Benchmarks stay runnable: every module imports, a quick run ends, a GPU's rows become a page."""

import importlib
import importlib.util
import pkgutil
import subprocess
import sys
from zipfile import ZipFile

import pytest

import benchmarks

MODULES = [
    found.name
    for found in pkgutil.walk_packages(benchmarks.__path__, "benchmarks.")
    if not found.name.endswith("__main__")
]
#: Of the CI's optional packages.
NEEDED = {
    "benchmarks.calls": "tvm_ffi",
    "benchmarks.gpu.ndbuffer": "nvmath",
    "benchmarks.wrapper": "array_api_strict",
}


@pytest.mark.parametrize("name", MODULES)
def test_module_imports(name):
    if name in NEEDED and importlib.util.find_spec(NEEDED[name]) is None:
        pytest.skip(f"{NEEDED[name]} is not installed")
    importlib.import_module(name)


@pytest.mark.heavy
@pytest.mark.parametrize("module", ["core", "threads"])
def test_quick_run_prints_a_table(module):
    command = [sys.executable, "-m", f"benchmarks.{module}", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert len(rows) > 4
    assert len({row.count("|") for row in rows}) == 1


def test_results_keep_the_other_sections(tmp_path):
    from benchmarks.results import sections, tables, write

    path = tmp_path / "RESULTS.md"
    write("| a | b |\n| --- | --- |\n| 1 | 2 |", "one", path)
    write("text", "two", path)
    assert list(sections(path.read_text())) == ["one", "two"]
    assert tables(sections(path.read_text())["one"]) == {"": [{"a": "1", "b": "2"}]}


def test_gpu_rows_become_a_page(tmp_path):
    from benchmarks.gpu import report
    from benchmarks.gpu.record import Record, append

    path = tmp_path / "gpu.jsonl"
    about = {"device": "A GPU", "date": "2026-11-28", "lines": ["- a machine"]}
    append(path, part="machine", name="machine", values=about)
    record = Record(path, "bandwidth")
    times = {"memcpy": 1e-4, "memcpy again": 1e-4, "arraybridge": 1e-4, "torch": 2e-4}
    measured = {"bytes": 10**8, "result": 5 * 10**7, "plan": "tiles", "seconds": times}
    record.attempt("rows flipped", lambda: {**measured, "spread": {}, "failed": {}})
    record.attempt("columns flipped", lambda: 1 // 0)
    append(path, part="bandwidth", ended={"seconds": 1.0, "notes": []})
    report.write(path)
    page = path.with_suffix(".md").read_text()
    assert "| rows flipped | tiles | 1000 | 1000 | 1.00 |" in page
    assert "ZeroDivisionError" in page


@pytest.mark.heavy
def test_gpu_without_a_device_measures_nothing(tmp_path):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a device")
    command = [sys.executable, "-m", "benchmarks.gpu", "--output", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "a CUDA device: " in done.stderr
    assert not list(tmp_path.iterdir())


def test_carried_wheels_hold_only_what_numba_loads(tmp_path):
    from benchmarks.gpu.carry import trim

    wheel = tmp_path / "nvidia_nvvm-13.0-py3-none-any.whl"
    with ZipFile(wheel, "w") as file:
        for name in ("nvidia/lib/libnvvm.so.4", "nvidia/bin/cicc", "nvvm.dist-info/METADATA"):
            file.writestr(name, name)
    trim(wheel)
    assert ZipFile(wheel).namelist() == ["nvidia/lib/libnvvm.so.4", "nvvm.dist-info/METADATA"]
