"""What `make gpu` does around the measuring: rows, time limits, verdicts, the file."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from arraybridge.kernels.cuda import build
from arraybridge.kernels.cuda.family import FAMILY
from benchmarks.gpu import counters, goals, kernels, machine, parts, report, sanitizers, suite
from benchmarks.gpu.clock import in_turns
from benchmarks.gpu.parts import CALLS, PARTS, Part
from benchmarks.gpu.record import Outcome, Record, append, outcomes, rows
from benchmarks.gpu.sanitized import NESTS, of_layout
from benchmarks.layouts import LAYOUTS
from tests.support import stub_driver
from tests.support.processes import ROOT, run_python
from tests.support.stub_driver import Stub


def outcome(name, *found):
    return {name: Outcome(list(found), 1.0, ())}


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
    (line,) = (x for x in report.bandwidth(outcomes) if x.startswith(f"| {found[3]['name']} |"))
    assert line.endswith("| **0.71** |  |  |  |  |")


def test_jax_is_compared_where_the_device_was_the_limit():
    values = {
        "seconds": 20e-6,
        "dispatch": 5e-6,
        "platform": "gpu",
        "spread": 0.0,
    }
    bound = {**values, "dispatch": 19e-6}
    rows = [{"name": LAYOUTS[0].name, "values": values}, {"name": LAYOUTS[1].name, "values": bound}]
    both = {**outcome("bandwidth", *bandwidth(0.95)), **outcome("bandwidth_jax", *rows)}
    first, second, *_ = goals.layouts(both)
    assert first.ratio("jax") == pytest.approx(20 / 40 * 0.95)
    assert second.ratio("jax") is None


@pytest.fixture
def sample(tmp_path, monkeypatch):
    """Runs a part of this source; `found` says what came of it."""
    package = tmp_path / "benchmarks" / "gpu"
    package.mkdir(parents=True)
    (tmp_path / "benchmarks" / "__init__.py").touch()
    for name in ("__init__.py", "part.py", "record.py", "rehearsal.py"):
        (package / name).write_text((ROOT / "benchmarks" / "gpu" / name).read_text())
    monkeypatch.chdir(tmp_path)
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(source, seconds=60, name="sample", silence=30):
        (package / f"{name}.py").write_text(source)
        path = tmp_path / "rows.jsonl"
        parts.run(Part(name, "", seconds, silence), path, env, seconds, tmp_path)
        return outcomes(path)

    return run


def test_a_part_that_crashes_goes_on_behind_the_item(sample):
    """One item raises, one ends the process, one hangs; the others are done, each once."""
    found = sample(
        "import os, time\n"
        "def work(n):\n"
        "    if n == 1: raise ValueError('one')\n"
        "    if n == 2: os._exit(3)\n"
        "    if n == 3: time.sleep(60)\n"
        "    return {'n': n}\n"
        "def run(record):\n"
        "    for n in range(5): record.attempt(f'item {n}', work, n)\n",
        silence=6,
    )
    assert [row["n"] for _, row in goals.values(found, "sample")] == [0, 4]
    failed = [name for name, _ in goals.failures(found, "sample")]
    assert failed == ["item 1", "item 2", "item 3"]
    notes = found["sample"].notes
    assert len(notes) == 2
    assert "status 3" in notes[0]
    assert "silent" in notes[1]


def test_what_an_item_found_before_it_raised_or_died_is_kept(sample):
    found = sample(
        "import os\n"
        "def work(n):\n"
        "    yield {'n': n}\n"
        "    if n == 0: raise ValueError('checked, and wrong')\n"
        "    if n == 1: os._exit(3)\n"
        "    yield {'right': True}\n"
        "def run(record):\n"
        "    for n in range(3): record.attempt(f'item {n}', work, n)\n"
    )
    values = goals.values(found, "sample")
    assert [row["n"] for _, row in values if "n" in row] == [0, 1, 2]
    assert [name for name, row in values if "right" in row] == ["item 2"]
    ((name, why),) = goals.failures(found, "sample")
    assert name == "item 0"
    assert "checked, and wrong" in why
    assert "status 3" in found["sample"].notes[0]
    assert "item 1" in found["sample"].notes[0]


def test_a_part_that_is_run_again_replaces_its_rows_alone(sample, tmp_path):
    item = "def run(record): record.attempt('item', lambda: {'n': %d})\n"
    sample(item % 1, name="first")
    sample(item % 2, name="second")
    found = sample(item % 3, name="first")
    assert goals.values(found, "first") == [("item", {"n": 3})]
    assert goals.values(found, "second") == [("item", {"n": 2})]
    assert found["first"].notes == []
    found = sample(item % 4, name="first", seconds=2)  # no time to begin
    assert goals.values(found, "first") == [("item", {"n": 3})]


def test_the_file_has_what_several_calls_found(tmp_path):
    path = tmp_path / "gpu-x.jsonl"
    about = {"device": "X", "date": "today", "rehearsed": False, "lines": ["- 16 cores"]}
    append(path, part="machine", name="machine", values=about)
    for row in bandwidth(0.95):
        append(path, part="bandwidth", **row)
    append(path, part="bandwidth", ended={"seconds": 50, "notes": []})
    name = "tests/gpu/test_gpu_streams.py::test_copies_are_captured[flat]"
    append(path, part="suite", name=name, values={"outcome": "passed", "seconds": 1})
    report.write(path)
    text = path.with_suffix(".md").read_text()
    assert "- 16 cores" in text
    assert "| geometric mean of the 24 layouts without a step: >= 0.90 | **met** |" in text
    assert "| copies are captured in graphs | **met** | 1 tests passed |" in text
    assert "| transfers are right | **not measured** |" in text
    assert "came to no end: the call was stopped" in text  # the suite has no last row
    assert "Not measured: its turn did not come." in text
    assert path.with_suffix(".svg").exists()


@pytest.mark.parametrize("call", CALLS)
def test_the_parts_of_a_call_fit_its_time(call):
    assert sum(part.seconds for part in CALLS[call]) + parts.OVERHEAD <= parts.BUDGET


def test_both_calls_fit_the_time_that_a_machine_is_lent_for():
    assert len(CALLS) * parts.BUDGET <= 15 * 60 - 2 * 60  # two minutes to start it


def test_each_part_is_in_the_file():
    assert set(report.SECTIONS) == {part.name for part in PARTS}


def test_the_suite_has_every_file_of_tests():
    assert sorted(suite.paths()) == sorted((ROOT / "tests" / "gpu").glob("test_*.py"))


def test_kernels_that_are_compiled_ahead_are_those_of_layouts_and_nests():
    ahead = {plan[:2] for plan in kernels.plans()}
    wanted = {plan[:2] for nest in [*NESTS, *map(of_layout, LAYOUTS)] for plan in nest.plans}
    assert wanted - {("memcpy", ())} <= ahead


def test_a_kernel_is_compiled_once(tmp_path, monkeypatch):
    monkeypatch.setenv("ARRAYBRIDGE_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setattr(build, "ptx", stub_driver.ptx)
    plan = next(kernels.plans())
    with stub_driver.installed(Stub((9, 0))):
        assert kernels.compiled(plan) > 0
        assert kernels.compiled(plan) is None
        monkeypatch.setenv("ARRAYBRIDGE_CACHE_DIR", os.devnull)
        with pytest.raises(OSError, match="not kept in"):
            kernels.compiled(plan)


def test_a_part_without_time_is_not_begun(tmp_path):
    path = tmp_path / "rows.jsonl"
    parts.run(PARTS[0], path, dict(os.environ), 2, tmp_path)
    assert outcomes(path) == {}


def test_a_line_that_was_cut_off_is_left_out(tmp_path):
    path = tmp_path / "rows.jsonl"
    record = Record(path, "a part")
    record.attempt("whole", lambda: {"n": 1})
    with path.open("a") as file:
        file.write('{"part": "a part", "name": "ha')
    assert [row["name"] for row in rows(path)] == ["whole", "whole"]
    record.write(name="next", values={})
    assert [row["name"] for row in rows(path)] == ["whole", "whole", "next"]


def test_an_item_without_time_is_said_to_be_cut(tmp_path):
    record = Record(tmp_path / "rows.jsonl", "a part", seconds=1)
    record.attempt("long", lambda: {"n": 1}, needs=5)
    (row,) = rows(record.path)
    assert row["failed"] == "cut: no time was left for it"


def program(folder, name, *lines):
    path = folder / name
    path.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
    path.chmod(0o755)
    return path


FAULT = """
import sys
from pathlib import Path
import arraybridge as ab
from benchmarks.gpu import bandwidth, rehearsal
from benchmarks.gpu.record import Record
rehearsal.install()
def broken(*_, **__):
    raise RuntimeError("a fault of transfers")
ab.convert = broken
bandwidth.ROUNDS = bandwidth.CALLS = 1
record = Record(Path(sys.argv[1]), "bandwidth")
layouts = {layout.name: layout for layout in bandwidth.layouts()}
for name in ("inner slice", "rows flipped"):  # of PyTorch, and of CuPy
    record.attempt(name, bandwidth.measure, layouts[name])
right = ab.contiguous
ab.contiguous = lambda x: right(x) * 0
record.attempt("three axes reversed", bandwidth.measure, layouts["three axes reversed"])
"""


def test_times_of_layouts_stay_whatever_their_check_says(tmp_path):
    """A fault of transfers is none of copies; a copy that is wrong has its times, and is named."""
    pytest.importorskip("torch")
    path = tmp_path / "rows.jsonl"
    env = {**os.environ, "ARRAYBRIDGE_REHEARSAL": "1", "PYTHONPATH": str(ROOT)}
    run_python("-c", FAULT, str(path), env=env, check=True)
    found = outcomes(path)
    timed = [row.name for row in goals.layouts(found)]
    assert timed == ["inner slice", "rows flipped", "three axes reversed"]
    right = [name for name, row in goals.values(found, "bandwidth") if "right" in row]
    assert right == timed[:2]
    ((name, why),) = goals.failures(found, "bandwidth")
    assert name == timed[2]
    assert "ab.contiguous's has " in why
    goal = next(goal for goal in goals.goals(found) if goal.wanted.startswith("the 26 layouts'"))
    assert goal.verdict == "missed"
    assert timed[2] in goal.figures


def test_a_contender_that_raises_is_left_out_and_named():
    failed = {}
    times = in_turns(
        {"good": abs, "bad": lambda turn: 1 / (turn - turn)},
        lambda work, calls: float(work(-calls)),
        rounds=3,
        calls=2,
        failed=failed,
    )
    assert times == {"good": [2.0, 2.0, 2.0]}
    assert failed == {"bad": "ZeroDivisionError: division by zero"}


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """Puts a sanitizer on the path that prints a nest, then these lines."""
    monkeypatch.setattr(sanitizers, "NESTS", NESTS[:1])
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    def make(*lines, status=0, nest="a nest | tile | right"):
        said = [f"echo '{line}'" for line in (nest, *lines)]
        program(tmp_path, "compute-sanitizer", *said, f"exit {status}")

    return make


@pytest.mark.parametrize(
    "summary",
    ["ERROR SUMMARY: 0 errors", "RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"],
)
def test_a_sanitizer_that_finds_nothing(tool, summary):
    tool(f"========= {summary}", f"========= {summary}")
    assert sanitizers.under("memcheck", 20) == {"summary": summary, "nests": 1}


@pytest.mark.parametrize(
    "lines",
    [
        ("ERROR SUMMARY: 10 errors",),
        ("ERROR SUMMARY: 0 errors", "ERROR SUMMARY: 1 error"),
        ("ERROR SUMMARY: 1 error", "ERROR SUMMARY: 0 errors"),
        ("RACECHECK SUMMARY: 2 hazards displayed (0 errors, 2 warnings)",),
        ("RACECHECK SUMMARY: 0 hazards displayed (0 errors, 1 warning)",),
        ("RACECHECK SUMMARY: 10 hazards displayed (0 errors, 0 warnings)",),
        ("ERROR SUMMARY: 0 errors were looked for",),
        ("Target application terminated before first instrumented API call",),
    ],
)
def test_a_sanitizer_that_finds_something_or_says_nothing(tool, lines):
    tool("========= Invalid __global__ read", *(f"========= {line}" for line in lines))
    with pytest.raises(AssertionError, match="Invalid __global__ read"):
        sanitizers.under("memcheck", 20)


def test_a_sanitizer_whose_program_fails_or_leaves_nests_out(tool):
    clean = "========= ERROR SUMMARY: 0 errors"
    tool(clean, status=sanitizers.FAILED)
    with pytest.raises(AssertionError, match="status 77"):
        sanitizers.under("memcheck", 20)
    tool(clean, nest="time ran out")
    with pytest.raises(AssertionError, match="0 of 1 nests"):
        sanitizers.under("memcheck", 20)


def test_a_tool_that_is_stopped_leaves_nothing_running(tmp_path):
    child = (
        "import time; print('a nest | tile | right', flush=True); time.sleep(2); open('late', 'w')"
    )
    command = ["sh", "-c", f'cd {tmp_path}; "{sys.executable}" -c "{child}"; true']
    status, said = sanitizers.run_program(command, 1)
    assert status is None
    assert sanitizers.copies(said) == [["a nest", "tile", "right"]]
    time.sleep(2)
    assert not (tmp_path / "late").exists()


TABLE = """==PROF== Connected to process 7
"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","7","arraybridge_tile","dram__bytes_read.sum","Mbyte","67.11"
"0","7","arraybridge_tile","launch__registers_per_thread","register/thread","39"
"1","7","arraybridge_box","dram__bytes_read.sum","Mbyte","67.20"
"2","7","arraybridge_box","dram__bytes_read.sum","Mbyte","1.25"
"""


def test_counters_are_those_of_their_layout(tmp_path, monkeypatch):
    """A layout of one launch, of none, and of two; ncu's table is in a file of its own."""
    (tmp_path / "table").write_text(TABLE)
    find = 'while [ "$1" != "--log-file" ]; do shift; done'
    said = ["one | tile | copied", "none | memcpy | copied", "two | box, box | copied"]
    program(tmp_path, "ncu", find, f'cp {tmp_path}/table "$2"', *(f"echo '{x}'" for x in said))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert counters.counted(20) == [
        ["one", {"kernel": "tile", "read": "67.11 Mbyte", "registers": "39 register/thread"}],
        ["none"],
        ["two", {"kernel": "box", "read": "67.20 Mbyte"}, {"kernel": "box", "read": "1.25 Mbyte"}],
    ]
    program(tmp_path, "ncu", find, f'cp {tmp_path}/table "$2"', *(f"echo '{x}'" for x in said[1:]))
    with pytest.raises(AssertionError, match="two launches"):
        counters.counted(20)


def test_counters_that_are_refused(tmp_path, monkeypatch):
    """All metrics, then a few; the reason is kept, and the sanitizers go on."""
    program(tmp_path, "ncu", "echo '==ERROR== ERR_NVGPUCTRPERM'", "exit 1")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(counters, "under", lambda tool, _: {"nests": 1, "summary": tool})
    record = Record(tmp_path / "rows.jsonl", "counters", 60)
    counters.run(record)
    found = outcomes(record.path)
    failed = dict(goals.failures(found, "counters"))
    assert list(failed) == ["ncu", "ncu, few metrics"]
    assert all("ERR_NVGPUCTRPERM" in why for why in failed.values())
    assert report.counters(found) == [f"- {x}: 1 nests; {x}" for x in sanitizers.OTHERS]


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


#: Stands for both tools: runs the program behind the options, and says what the tool would.
TOOL = f"""#!{sys.executable}
import subprocess, sys
at = sys.argv.index(sys.executable)
run = subprocess.run(sys.argv[at:], stdout=subprocess.PIPE, text=True)
print(run.stdout, "========= ERROR SUMMARY: 0 errors", sep="")
options = sys.argv[1:at]
if "--log-file" in options:
    names = [line.split(" | ")[1] for line in run.stdout.splitlines() if line.count(" | ") == 2]
    with open(options[options.index("--log-file") + 1], "w") as table:
        print('"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"', file=table)
        for i, name in enumerate(name for each in names for name in each.split(", ")):
            if name != "memcpy":
                kernel = f"arraybridge_{{name}}"
                print(f'"{{i}}","{{kernel}}","gpu__time_duration.sum","us","60.1"', file=table)
sys.exit(run.returncode)
"""


@pytest.mark.heavy
def test_rehearsal(tmp_path):
    """All parts but the suite run to their end on the host; the file says what it is."""
    for name in ("torch", "jax", "numba_cuda"):
        pytest.importorskip(name)
    for name in ("compute-sanitizer", "ncu"):
        (tmp_path / name).write_text(TOOL)
        (tmp_path / name).chmod(0o755)
    out = tmp_path / "out"
    command = [sys.executable, "-m", "benchmarks.gpu", "--rehearse", "--output", str(out)]
    command += ["--only", *(part.name for part in PARTS if part.name != "suite")]
    env = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    run = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=800)
    assert run.returncode == 0, run.stderr
    (text,) = [path.read_text() for path in out.glob("*.md")]
    assert "no figure here means anything" in text
    assert "| sanitizers clean | **met** |" in text
    assert "60.1 us" in text
    assert len(list(out.glob("*.svg"))) == 1
    for error in ("NameError", "TypeError", "AttributeError", "KeyError", "ended by", "stopped"):
        assert error not in text


def test_goals_of_callbacks():
    def verdicts(copies, seconds):
        row = {"bytes": 4096, "waited": {"arraybridge, views": seconds, "torch2jax": 1e-4}}
        rows = [{"name": "a", "values": row}, {"name": "b", "values": {"copies": copies}}]
        return [goal.verdict for goal in goals.goals(outcome("callbacks", *rows))[-2:]]

    assert verdicts({"arraybridge": 0, "jax.pure_callback": 2}, 1.1e-4) == ["met", "met"]
    assert verdicts({"arraybridge": 1}, 1.3e-4) == ["missed", "missed"]
    assert [goal.verdict for goal in goals.goals({})[-2:]] == ["not measured"] * 2
