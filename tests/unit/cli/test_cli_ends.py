"""How the commands print and end: folded, in color; by a signal, by a closed pipe."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from arraybridge.cli import Status, main, screen
from tests.support.optional import needs
from tests.support.processes import ROOT, python

COMMAND = (sys.executable, "-m", "arraybridge")
#: A library whose import never ends, for the processes that `matrix` and `info` start.
ENDLESS = """
import os, pathlib, time
(pathlib.Path(__file__).parent / f"{os.getpid()}.started").touch()
time.sleep(600)
"""
#: The same before multiprocessing has begun, in processes that it starts.
ENDLESS_START = f"""
import sys
if "spawn_main" in str(sys.orig_argv):
    exec({ENDLESS!r})
"""
PROGRAM = """
import time
import numpy as np
np.array(np.ones(3))
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def interruptible():
    """Processes that take SIGINT, though a shell in the background starts all with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def start(*args: str, cwd: Path, **environ: str) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": f"{cwd}{os.pathsep}{ROOT}", **environ}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = (*COMMAND, *args)
    return subprocess.Popen(command, cwd=cwd, env=env, start_new_session=True, **pipes)


def waited(condition, seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # One that has ended stays in the table until somebody asks how: in a container, maybe nobody.
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


@pytest.mark.parametrize(
    ("args", "number", "to_all"),
    [
        (("matrix", "--libraries", "numpy,tvm_ffi"), signal.SIGINT, True),
        (("matrix", "--libraries", "numpy,tvm_ffi"), signal.SIGINT, False),
        (("matrix", "--libraries", "numpy,tvm_ffi"), signal.SIGKILL, False),
        (("info", "tvm_ffi"), signal.SIGINT, True),
        (("info", "tvm_ffi"), signal.SIGTERM, False),
    ],
)
def test_nothing_is_left_running(tmp_path: Path, args, number, to_all: bool) -> None:
    (tmp_path / "tvm_ffi.py").write_text(ENDLESS)
    ends(start(*args, cwd=tmp_path), tmp_path, number, to_all)


def test_processes_that_have_hardly_begun(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(ENDLESS_START)
    command = start("matrix", "--libraries", "numpy,array_api_strict", cwd=tmp_path)
    ends(command, tmp_path, signal.SIGINT, to_all=True)


def ends(command: subprocess.Popen[str], tmp_path: Path, number: int, to_all: bool) -> None:
    """Send a signal once processes have started: nothing is said, and none is left."""
    assert waited(lambda: [*tmp_path.glob("*.started")])
    children = [int(path.stem) for path in tmp_path.glob("*.started")]
    (os.killpg if to_all else os.kill)(command.pid, number)  # all: as a terminal does
    out, err = command.communicate(timeout=30)
    assert command.returncode == (Status.INTERRUPTED if number == signal.SIGINT else -number)
    assert (out, err) == ("", "")
    assert waited(lambda: not any(map(runs, children)), 10)


def test_an_interrupted_import(tmp_path: Path) -> None:
    (tmp_path / "tvm_ffi.py").write_text(ENDLESS)
    command = start("explain", "--from", "numpy", "--to", "tvm_ffi", cwd=tmp_path)
    assert waited(lambda: [*tmp_path.glob("*.started")])
    command.send_signal(signal.SIGINT)
    assert command.communicate(timeout=30) == ("", "")
    assert command.returncode == Status.INTERRUPTED


def test_an_interrupted_program_is_reported(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = start("audit", "program.py", cwd=tmp_path)
    assert command.stdout.readline() == "ready\n"
    command.send_signal(signal.SIGINT)
    _, err = command.communicate(timeout=30)
    assert command.returncode == Status.INTERRUPTED
    assert "Traceback" not in err
    assert re.search(rf"interrupted at {tmp_path}/program.py:[56]\n", err)
    assert "1 route, 1 copy of 24 bytes" in err


def test_a_report_on_a_narrow_screen(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("600", "0"))
    command = start("audit", "program.py", cwd=tmp_path, COLUMNS="60")
    _, err = command.communicate(timeout=60)
    assert "program.py:4: 24 bytes, copies: 1, calls: 1" in " ".join(err.split())
    assert "numpy.array, numpy -> numpy: copied: numpy.array copies" in " ".join(err.split())
    assert [line for line in err.splitlines() if len(line) > 60] == []


@pytest.mark.parametrize(
    "args", [("matrix", "--list"), ("--help",), ("info", "--json"), ("explain", "--help")]
)
def test_a_closed_pipe_ends_quietly(tmp_path: Path, args) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""}
    done = subprocess.run(
        (*COMMAND, *args), env=env, stdout=theirs, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(theirs)
    assert (done.returncode, done.stderr) == (Status.CLOSED_PIPE, "")


#: In the command's own process, and not in those that it starts.
OPENS = 'import os, sys; "-m" in sys.orig_argv and os.open(os.devnull, os.O_RDONLY)'


@needs("torch")
@pytest.mark.parametrize(
    ("redirected", "status", "said"),
    [
        (">&-", 0, ""),
        ("2>&- >&-", 0, ""),
        ("<&- 2>&- >&-", 0, ""),
        (">/dev/full", 1, "arraybridge: cannot write: [Errno 28] No space left on device\n"),
    ],
)
@pytest.mark.parametrize("start", ["", OPENS])
def test_output_that_cannot_be_written(
    redirected: str, status: int, said: str, start: str, tmp_path: Path
) -> None:
    """Also where a library has opened a file before, which got the number of what was closed."""
    (tmp_path / "sitecustomize.py").write_text(start)
    done = subprocess.run(
        ["sh", "-c", f'"$@" {redirected}', "sh", *COMMAND, "info", "numpy"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))},
        capture_output=True, text=True, timeout=60, cwd=ROOT, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (status, said)


def test_help_and_version_import_no_library() -> None:
    said = python(
        """
import contextlib, io, sys
from arraybridge.cli import main
for args in (["--version"], ["--help"], [], ["explain", "--help"], ["warmup", "--help"]):
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        main(args)
heavy = {"numba", "llvmlite", "torch", "jax", "rich", "multiprocessing", "arraybridge.auditing"}
print(sorted(heavy & set(sys.modules)))
"""
    )
    assert said == "[]\n"


def test_the_script_is_the_module() -> None:
    from importlib.metadata import entry_points

    import arraybridge.__main__

    found = entry_points(group="console_scripts", name="arraybridge")
    ours = [each for each in found if each.dist and each.dist.name == "arraybridge-dlpack"]
    if not ours:
        pytest.skip("arraybridge is not installed, only on the path")
    module, _, function = ours[0].value.partition(":")
    assert (module.split(".")[0], function) == ("arraybridge", arraybridge.__main__.main.__name__)


ENDLESS_PROGRAMS = {
    "functions of a library": "while True:\n    np.asarray(np.array(np.ones(9)))",
    "conversions": "while True:\n    ab.convert(np.ones((30, 40))[::-1], 'numpy', copy=True)",
    "a pool": "with ThreadPoolExecutor(2) as pool:\n    pool.submit(time.sleep, 1).result()\n"
    "    time.sleep(600)",
    "a thread": "threading.Thread(target=time.sleep, args=(1,)).start()\ntime.sleep(600)",
    "a task": "asyncio.run(asyncio.sleep(600))",
}


@pytest.mark.parametrize("how", ENDLESS_PROGRAMS)
def test_every_interrupted_program_ends(how: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import asyncio, threading, time\nfrom concurrent.futures import ThreadPoolExecutor\n"
        "import numpy as np\nimport arraybridge as ab\n"
        f"print('ready', flush=True)\n{ENDLESS_PROGRAMS[how]}\n"
    )
    command = start("audit", "program.py", cwd=tmp_path)
    assert command.stdout.readline() == "ready\n"
    time.sleep(0.2)
    command.send_signal(signal.SIGINT)
    _, err = command.communicate(timeout=60)
    assert command.returncode == Status.INTERRUPTED
    assert "interrupted at " in err
    assert "\ncopies in program.py" in err
    assert "Traceback" not in err


ESCAPE = "\x1b["
ROWS = [("array", "numpy float32 (3, 4) on cpu"), ("why", "word " * 30)]
COUNTS = [(f"library{i}", *["250v 10c 7r"] * 7) for i in range(3)]
HEADER = ("from", *(f"library{i}" for i in range(7)))
WITHOUT_RICH = (
    *(sys.executable, "-c"),
    "import sys; sys.modules['rich'] = None; from arraybridge.cli import main; sys.exit(main())",
)


def plain(monkeypatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("colored", [False, pytest.param(True, marks=needs("rich"))])
def test_tables_are_folded(monkeypatch, columns: int, colored: bool) -> None:
    plain(monkeypatch, columns)
    if colored:
        monkeypatch.delenv("NO_COLOR")
        monkeypatch.setenv("FORCE_COLOR", "1")
    told, counted = screen.table(ROWS), screen.counts(COUNTS, HEADER)
    assert (ESCAPE in told) is (ESCAPE in counted) is colored
    told, counted = (re.sub(r"\x1b\[[0-9;]*m", "", text) for text in (told, counted))
    folded = screen.fold(ROWS[1][1])
    for text in (told, counted, folded):
        assert max(map(len, text.splitlines())) <= columns
    assert told.count("word") == folded.count("word") == 30
    assert counted.count("250v 10c 7r") == 21
    assert [counted.count(f"library{i}") for i in (6, 2)] == [1, 1 + counted.count("from")]
    assert counted.count("from") == {40: 4, 80: 2, 200: 1}[columns]


@pytest.mark.parametrize("columns", [40, 200])
@pytest.mark.parametrize("args", [(), ("explain", "--help"), ("audit", "--help"), ("info",)])
def test_help_and_info_are_folded(monkeypatch, capsys, columns: int, args) -> None:
    plain(monkeypatch, columns)
    try:
        status = main(args)
    except SystemExit as ended:
        status = ended.code
    assert status == 0
    words = [line for line in capsys.readouterr().out.splitlines() if line.count(" ") > 4]
    assert words
    narrow = [line for line in words if not line.startswith(("  arraybridge", "      "))]
    assert [line for line in narrow if len(line) > columns] == []


def test_a_terminal_that_does_not_know_its_width(monkeypatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    ours, theirs = pty.openpty()  # 0 columns
    with open(theirs, "w") as stream:
        assert screen.room(stream) == screen.WIDE
    os.close(ours)


def on_terminal(command, columns: int, **environ: str) -> str:
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    names = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "CI")
    inherited = {key: x for key, x in os.environ.items() if key not in names}
    env = {**inherited, "PYTHONPATH": str(ROOT), "TERM": "xterm", **environ}
    env["COLUMNS"] = str(columns)
    done = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    said = b""
    try:
        while select.select([ours], [], [], 60)[0]:
            if not (part := os.read(ours, 65536)):
                break
            said += part
    except OSError:  # Linux's way to say that the other end is closed
        pass
    finally:
        os.close(ours)
        done.wait(60)
    assert done.returncode == 0, said
    return said.decode()


EXPLAIN = ("explain", "--from", "numpy", "--to", "array_api_strict")
MATRIX = ("matrix", "--libraries", "numpy,array_api_strict", "--cases", "contiguous,0-d")


@needs("rich", "array_api_strict")
def test_colors_on_a_terminal() -> None:
    said = on_terminal((*COMMAND, *EXPLAIN), 80)
    assert "\x1b[32mview" in said
    assert ESCAPE not in on_terminal((*COMMAND, *EXPLAIN), 80, NO_COLOR="1")
    assert ESCAPE not in on_terminal((*COMMAND, *EXPLAIN), 80, TERM="dumb")


@needs("array_api_strict")
def test_without_rich() -> None:
    said = on_terminal((*WITHOUT_RICH, *EXPLAIN), 80)
    assert ESCAPE not in said
    assert "importing numpy and array_api_strict ..." in said
    assert "\nroute   view: numpy -> array_api_strict on cpu" in said
    said = on_terminal((*WITHOUT_RICH, *MATRIX), 80)
    assert ESCAPE not in said
    assert "\r4 of 4  " in said
    assert "4 cells, 0 failures" in said


@needs("rich", "array_api_strict")
def test_a_bar_on_a_terminal() -> None:
    said = on_terminal((*COMMAND, *MATRIX), 80)
    assert "4/4" in said
    assert " -> " in said


@needs("array_api_strict")
@pytest.mark.parametrize(
    ("asked", "colored"),
    [
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"FORCE_COLOR": "0"}, False),
        ({}, False),
    ],
)
def test_a_pipe_has_no_colors_unless_forced(asked: dict[str, str], colored: bool) -> None:
    pytest.importorskip("rich")
    env = {key: x for key, x in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    env |= asked | {"PYTHONPATH": str(ROOT), "TERM": "xterm"}
    done = subprocess.run((*COMMAND, *EXPLAIN), env=env, capture_output=True, text=True, check=True)
    assert (ESCAPE in done.stdout) is colored
    assert done.stderr == ""
