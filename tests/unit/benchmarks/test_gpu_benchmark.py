"""What `make gpu` does around the measuring: rows, time limits, verdicts, the file."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from arraybridge.kernels.cuda.family import FAMILY
from benchmarks.gpu import goals, machine, parts, report, sanitizers
from benchmarks.gpu.parts import Outcome, Part
from benchmarks.gpu.record import Record, rows
from benchmarks.gpu.sanitized import NESTS
from benchmarks.layouts import LAYOUTS
from tests.support.processes import ROOT


def outcome(name, *found):
    part = next(part for part in parts.PARTS if part.name == name)
    return {name: Outcome(part, list(found), 1.0, [])}


def bandwidth(speed):
    """Every layout, a copy of 64 MB from device to device in 40 us, and ours at a share of that."""
    limit = 40e-6
    return [
        {
            "name": layout.name,
            "values": {
                "bytes": 128 << 20,
                "result": 64 << 20,
                "plan": "cuda tile 4 bytes",
                "right": "right",
                "seconds": {
                    "memcpy": limit,
                    "memcpy again": limit * 1.01,
                    "kernel": limit / speed,
                    "arraybridge": limit / speed,
                    "torch": limit * 8,
                    "cupy": limit * 8,
                },
                "spread": {"arraybridge": 0.01},
                "failed": {},
                "rounds": 9,
            },
        }
        for layout in LAYOUTS
    ]


def verdicts(outcomes):
    return {goal.wanted: goal.verdict for goal in goals.goals(outcomes)}


def test_every_kernel_is_in_the_sanitized_program():
    assert set().union(*(nest.kernels for nest in NESTS)) == {*FAMILY, "memcpy"}


def test_names_of_goals_are_names_of_layouts():
    names = {layout.name for layout in LAYOUTS}
    assert {f"transpose, {name}" for name in (*goals.WIDE, *goals.NARROW)} <= names
    assert set(goals.STEPPED) <= names
    assert len(names - set(goals.STEPPED)) == 24


def test_what_is_not_measured_is_neither_met_nor_missed():
    assert set(verdicts({}).values()) == {"not measured"}


@pytest.mark.parametrize(("speed", "verdict"), [(0.95, "met"), (0.5, "missed")])
def test_shares_are_judged(speed, verdict):
    found = verdicts(outcome("bandwidth", *bandwidth(speed)))
    assert found["geometric mean of the 24 layouts without a step: >= 0.90"] == verdict
    assert found["aligned transposes of 4 to 16 bytes: share >= 0.92"] == verdict
    assert found["no share below 0.70"] == verdict
    assert found["no layout behind PyTorch"] == "met"
    assert found["no layout behind JAX"] == "not measured"
    assert found["byte transposes >= 6 times PyTorch's copy"] == verdict


def test_one_layout_that_is_behind_is_a_loss_and_named():
    found = bandwidth(0.95)
    found[3]["values"]["seconds"]["cupy"] = 30e-6
    outcomes = outcome("bandwidth", *found)
    goal = next(g for g in goals.goals(outcomes) if g.wanted == "no layout behind CuPy")
    assert goal.verdict == "missed"
    assert found[3]["name"] in goal.figures
    assert f"{found[3]['name']} (CuPy, 0.71)" in "\n".join(report.bandwidth(outcomes))


def test_jax_is_compared_where_the_device_was_the_limit():
    values = {
        "seconds": 20e-6,
        "dispatch": 5e-6,
        "platform": "gpu",
        "right": "right",
        "spread": 0.0,
    }
    bound = {**values, "dispatch": 19e-6}
    rows = [{"name": LAYOUTS[0].name, "values": values}, {"name": LAYOUTS[1].name, "values": bound}]
    both = {**outcome("bandwidth", *bandwidth(0.95)), **outcome("bandwidth_jax", *rows)}
    first, second, *_ = goals.layouts(both)
    assert first.ratio("jax") == pytest.approx(20 / 40 * 0.95)
    assert second.ratio("jax") is None


def test_a_part_that_crashes_goes_on_behind_the_item(tmp_path, monkeypatch):
    """One item raises, one ends the process, one hangs; the others are done, each once."""
    (tmp_path / "benchmarks").mkdir()
    package = tmp_path / "benchmarks" / "gpu"
    (tmp_path / "benchmarks" / "__init__.py").touch()
    package.mkdir()
    for name in ("__init__.py", "part.py", "record.py", "rehearsal.py"):
        (package / name).write_text((ROOT / "benchmarks" / "gpu" / name).read_text())
    (package / "sample.py").write_text(
        "import os, time\n"
        "def work(n):\n"
        "    if n == 1: raise ValueError('one')\n"
        "    if n == 2: os._exit(3)\n"
        "    if n == 3: time.sleep(60)\n"
        "    return {'n': n}\n"
        "def run(record):\n"
        "    for n in range(5): record.attempt(f'item {n}', work, n)\n"
    )
    monkeypatch.chdir(tmp_path)
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    start = time.monotonic()
    found = parts.run(Part("sample", "", 60, 3), tmp_path, env, 60)
    assert time.monotonic() - start < 30
    outcomes = {"sample": found}
    assert [row["n"] for _, row in goals.values(outcomes, "sample")] == [0, 4]
    failed = [name for name, _ in goals.failures(outcomes, "sample")]
    assert failed == ["item 1", "item 2", "item 3"]
    assert len(found.notes) == 2
    assert "status 3" in found.notes[0]
    assert "silent" in found.notes[1]


def test_a_part_without_time_is_not_begun(tmp_path):
    found = parts.run(parts.PARTS[0], tmp_path, dict(os.environ), 2)
    assert found.rows == []
    assert found.notes == ["not begun: no time was left, before its first item"]


def test_a_line_that_was_cut_off_is_left_out(tmp_path):
    path = tmp_path / "rows.jsonl"
    record = Record(path)
    record.attempt("whole", lambda: {"n": 1})
    with path.open("a") as file:
        file.write('{"name": "ha')
    assert [row["name"] for row in rows(path)] == ["whole", "whole"]


def test_an_item_without_time_is_said_to_be_cut(tmp_path):
    record = Record(tmp_path / "rows.jsonl", seconds=1)
    record.attempt("long", lambda: {"n": 1}, needs=5)
    assert rows(record.path) == [{"name": "long", "failed": "cut: no time was left for it"}]


def program(folder, name, *lines):
    path = folder / name
    path.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("said", "summary", "clean"),
    [
        ("a nest | tile | right", "ERROR SUMMARY: 0 errors", True),
        ("a nest | tile | right", "RACECHECK SUMMARY: 0 hazards displayed (0 errors)", True),
        ("========= Invalid __global__ read", "ERROR SUMMARY: 10 errors", False),
        ("========= Invalid __global__ read", "RACECHECK SUMMARY: 10 hazards displayed", False),
        ("========= Invalid __global__ read", "none", False),
    ],
)
def test_a_sanitizer(tmp_path, monkeypatch, said, summary, clean):
    program(tmp_path, "compute-sanitizer", f"echo '{said}'", f"echo '========= {summary}'")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    if clean:
        assert sanitizers.under("memcheck", 20) == {"summary": summary, "nests": 1}
    else:
        with pytest.raises(AssertionError, match="Invalid __global__ read"):
            sanitizers.under("memcheck", 20)


def test_a_toolkit_whose_nvvm_lies_elsewhere_is_shown_to_the_loader(tmp_path, monkeypatch):
    root, scratch = tmp_path / "toolkit", tmp_path / "scratch"
    (root / "nvvm" / "libdevice").mkdir(parents=True)
    (root / "lib").mkdir()
    (root / "lib" / "libnvvm.so.4").touch()
    scratch.mkdir()
    monkeypatch.setenv("CUDA_PATH", str(root))
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    env = machine.environment(scratch)
    folder = Path(env["LD_LIBRARY_PATH"])
    assert (folder / "libnvvm.so.4").resolve() == root / "lib" / "libnvvm.so.4"
    (root / "nvvm" / "lib64").mkdir()
    assert "LD_LIBRARY_PATH" not in machine.environment(scratch)


def test_a_toolkit_without_headers_is_not_shown_to_other_libraries(tmp_path, monkeypatch):
    root = tmp_path / "toolkit"
    (root / "nvvm").mkdir(parents=True)
    monkeypatch.setattr(machine, "toolkit", lambda: root)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.delenv("CUDA_HOME", raising=False)
    assert not {"CUDA_PATH", "CUDA_HOME"} & machine.environment(tmp_path).keys()
    (root / "include").mkdir()
    (root / "include" / "cuda_runtime.h").touch()
    env = machine.environment(tmp_path)
    assert env["CUDA_HOME"] == env["CUDA_PATH"] == str(root)


def test_without_a_device_nothing_is_written(tmp_path, monkeypatch, capsys):
    if pytest.importorskip("torch").cuda.is_available():
        pytest.skip("here is one")
    from benchmarks.gpu.__main__ import main

    monkeypatch.setattr(sys, "argv", ["gpu", "--output", str(tmp_path)])
    assert main() == 1
    assert "a CUDA device" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def passing_on(folder, name, *lines):
    """A program that runs what it is given behind its own options."""
    skip = f'while [ "$1" != "{sys.executable}" ]; do shift; done'
    program(folder, name, skip, '"$@" || exit 9', *lines)


@pytest.mark.heavy
def test_rehearsal(tmp_path):
    """Each part runs to its end on the host, and the file says that no figure means anything."""
    pytest.importorskip("torch"), pytest.importorskip("jax")
    passing_on(tmp_path, "compute-sanitizer", "echo '========= ERROR SUMMARY: 0 errors'")
    table = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'
    row = '"0","arraybridge_tile","gpu__time_duration.sum","us","60.1"'
    passing_on(tmp_path, "ncu", f"echo '{table}'", f"echo '{row}'")
    # The tests of `suite` want a device.
    wanted = [part.name for part in parts.PARTS if part.name != "suite"]
    out = tmp_path / "out"
    command = [sys.executable, "-m", "benchmarks.gpu", "--rehearse", "--output", str(out)]
    env = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    command += ["--only", *wanted]
    run = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=800)
    assert run.returncode == 0, run.stderr
    (text,) = [path.read_text() for path in out.glob("*.md")]
    assert "no figure here means anything" in text
    assert "| sanitizers clean | **met** |" in text
    assert "60.1 us" in text
    assert len(list(out.glob("*.svg"))) == 1
    for error in ("NameError", "TypeError", "AttributeError", "KeyError", "ended by", "stopped"):
        assert error not in text
