"""What the commands print: folded to the screen, in color on a terminal alone, a bar meanwhile."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys

import pytest

from arraybridge.cli import main, screen
from tests.support.optional import needs
from tests.support.processes import ROOT

ESCAPE = "\x1b["
ROWS = [("array", "numpy float32 (3, 4) on cpu"), ("why", "word " * 30)]
COUNTS = [(f"library{i}", *["250v 10c 7r"] * 7) for i in range(3)]
HEADER = ("from", *(f"library{i}" for i in range(7)))
COMMAND = (sys.executable, "-m", "arraybridge")
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


@pytest.mark.parametrize("columns", [40, 80, 200])
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
