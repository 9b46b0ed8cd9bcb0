"""How the commands end: by a signal, by a closed pipe, and what they import before they do."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from arraybridge.cli import Status
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
    return subprocess.Popen(
        (*COMMAND, *args),
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


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
    "args",
    [("matrix", "--list"), ("--help",), ("info", "--json"), ("explain", "--help")],
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
    assert "\ncopies of program.py" in err
    assert "Traceback" not in err
